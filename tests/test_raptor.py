"""RAPTOR's tree: similar chunks share a summary, summaries are summarised again, and a context stays in the budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corag.evaluation_settings import RaptorSettings
from corag.generation_memo import GenerationMemo
from corag.memo import Memo
from corag.raptor import build_tree, cluster, tree_chunks, tree_contexts
from corag.retrieval import Retrieval
from corag.values import Candidate, Chunk, Generation

SUBJECTS = ("mill", "bridge", "library")
SMALL = RaptorSettings(cluster_size=4, layers=3, dimensions=4, input_tokens=60)


class Words:
    """A token a word."""

    name = "words"

    def count(self, text):
        return len(text.split())

    def counts(self, texts):
        return [self.count(text) for text in texts]

    def offsets(self, text):
        return []


class Summariser:
    """Names the subject that it read most of; fails where it is told to."""

    def __init__(self, fails_on="nothing"):
        self.fails_on, self.seen = fails_on, []

    def generate(self, prompts):
        self.seen += [prompt.user for prompt in prompts]
        return [self._summary(prompt.user) for prompt in prompts]

    def _summary(self, text):
        if self.fails_on in text:
            return Generation("", 1, 0, "error", "server gone")
        subject = max(SUBJECTS, key=text.count)
        return Generation(f"In short: {subject} {subject} ({len(text)})", 1, 1, "stop")


def embed(texts):
    """The share of each subject in a text, and a little of the text's own."""
    rows = []
    for text in texts:
        own = np.random.default_rng(sum(text.encode())).random(5)
        row = np.array([text.count(subject) for subject in SUBJECTS] + list(0.1 * own))
        rows.append(row / np.linalg.norm(row))
    return np.array(rows, dtype=np.float32)


def corpus(count=12):
    """So many chunks about three subjects in turn, each of a document of its own."""
    texts = [f"{SUBJECTS[number % 3]} fact {number}" for number in range(count)]
    return [
        Chunk(f"c{number:02d}", f"d{number}", 0, 0, len(text), text, len(text.split()))
        for number, text in enumerate(texts)
    ]


def tree(chunks, summariser=None, seed=0, memo=None, raptor=SMALL):
    """The tree over the chunks."""
    generator = summariser or Summariser()
    generations = GenerationMemo("fake", lambda: generator, (memo or Memo(None)).table("generations"))
    return build_tree(chunks, embed, Words(), generations, raptor, system="be brief", seed=seed)


def asked(text):
    """A retrieval with that text's vector."""
    return Retrieval("q", (), embed([text])[0])


def test_a_cluster_holds_what_is_alike():
    """Chunks about one subject are in one cluster, and every chunk is in some cluster."""
    chunks = corpus()
    groups = cluster(embed([chunk.text for chunk in chunks]), SMALL, seed=0)
    assert sorted({member for group in groups for member in group}) == list(range(12))
    assert len(groups) == 3
    assert all(len({member % 3 for member in group}) == 1 for group in groups)


def test_the_tree_has_every_chunk_and_a_summary_of_each_cluster_and_of_these():
    """Twelve leaves, three summaries of four, and one of the three."""
    summariser = Summariser()
    built = tree(corpus(), summariser)
    assert [node.chunk_id for node in built.nodes[:12]] == [chunk.chunk_id for chunk in corpus()]
    assert [node.chunk_id for node in built.nodes[12:]] == ["raptor:1:0", "raptor:1:1", "raptor:1:2", "raptor:2:0"]
    assert (built.summaries, built.failed, len(built.vectors)) == (4, 0, 16)
    first = summariser.seen[0]
    assert sum(f"fact {number}" in first for number in range(12)) >= 4
    assert all(node.tokens == len(node.text.split()) for node in built.nodes)


def test_the_same_seed_gives_the_same_tree_and_asks_nothing_twice():
    """Summaries go through the memory of generations."""
    memo, first, second = Memo(None), Summariser(), Summariser()
    before, after = tree(corpus(), first, memo=memo), tree(corpus(), second, memo=memo)
    assert before.nodes == after.nodes
    assert np.array_equal(before.vectors, after.vectors)
    assert first.seen
    assert not second.seen


def test_a_cluster_that_cannot_be_summarised_is_counted():
    """Its members are in the tree, the other summaries too."""
    built = tree(corpus(), Summariser(fails_on="mill"))
    assert built.failed >= 1
    assert {chunk.chunk_id for chunk in corpus()} <= {node.chunk_id for node in built.nodes}
    assert any(node.chunk_id.startswith("raptor:1:") for node in built.nodes)


def test_a_summary_reads_no_more_than_it_may():
    """The texts of a large cluster are cut to whole chunks within the limit."""
    summariser = Summariser()
    tree(corpus(30), summariser, raptor=SMALL.model_copy(update={"cluster_size": 15, "input_tokens": 16}))
    assert all(text.split("\n\nSummarise")[0].count("fact") <= 16 // 3 for text in summariser.seen)


def test_one_chunk_is_a_tree_without_summaries():
    """There is nothing to summarise."""
    built = tree(corpus(1))
    assert (len(built.nodes), built.summaries) == (1, 0)


@settings(max_examples=30, deadline=None)
@given(budget=st.integers(0, 40), subject=st.sampled_from(SUBJECTS))
def test_a_context_is_within_the_budget_and_distinct(budget, subject):
    """Whatever the budget, no text stands twice and the tokens fit."""
    (context,) = tree_contexts(BUILT, [asked(subject)], budget)
    assert sum(chunk.tokens for chunk in context.chunks) <= budget
    assert len({chunk.text for chunk in context.chunks}) == len(context.chunks)
    assert context.error is None


def test_the_nearest_nodes_come_first_leaves_and_summaries_alike():
    """A question about one subject gets what is about that subject, a summary among it."""
    (context,) = tree_contexts(BUILT, [asked("bridge bridge")], 16)
    assert all("bridge" in chunk.text for chunk in context.chunks)
    assert any(not chunk.doc_id for chunk in context.chunks)
    assert any(chunk.doc_id for chunk in context.chunks)


def test_a_question_without_a_vector_fails_alone():
    """It says why."""
    contexts = tree_contexts(BUILT, [Retrieval("q", (), None, "no usable vector"), asked("mill")], 16)
    assert [context.error for context in contexts] == ["no usable vector", None]


def test_of_a_large_corpus_every_candidate_is_in_the_tree():
    """The others are drawn by the seed, up to the limit."""
    chunks = corpus(30)
    found = [Retrieval("q", (Candidate(chunks[7], 0.9), Candidate(chunks[29], 0.8)), None)]
    kept = tree_chunks(chunks, found, 10, seed=1)
    assert len(kept) == 10
    assert {"c07", "c29"} <= {chunk.chunk_id for chunk in kept}
    assert kept == tree_chunks(chunks, found, 10, seed=1)
    assert tree_chunks(chunks, found, 30, seed=1) == chunks


BUILT = tree(corpus())


@pytest.mark.slow
def test_a_real_tree_of_a_finished_project(finished):
    """The real models summarise the project's chunks, and the method stands in the table beside naive."""
    out = finished.root / "with-raptor"
    ended = finished.run(
        "evaluate", "--questions", finished.root / "held-out.jsonl", "--out", out, "--methods", "naive,raptor"
    )
    assert ended.exit_code == 0, ended.output
    table = (out / "tables" / "methods.csv").read_text(encoding="utf-8")
    assert "\nraptor,3,3,0," in table
