"""Retrieval with the packaged MiniLM on a real LanceDB table."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corag.answer_prepare import question_vectors
from corag.embedders.minilm import MiniLM
from corag.retrieval import distinct_texts, retrieve, wanted_metadata
from corag.settings import RetrievalSettings, StoreSettings
from corag.store import ChunkStore
from corag.values import Candidate, Chunk, Question

TOPICS = {
    "heron": "The grey heron hunts fish in shallow rivers.",
    "bread": "Bakers let the dough rise before the bread goes into the oven.",
    "moon": "The moon pulls the sea and makes the tides.",
    "loan": "A bank grants a loan and asks for interest.",
    "chess": "In chess the queen moves along rows, columns and diagonals.",
    "violin": "A violin has four strings that are played with a bow.",
    "volcano": "Magma rises and the volcano throws out ash.",
}
QUESTIONS = (
    Question("q1", "Which bird catches fish in rivers?"),
    Question("q2", "How is bread dough prepared for baking?"),
    Question("q3", "What causes the tides of the sea?"),
)


def make_chunk(doc_id: str, text: str, **metadata: str) -> Chunk:
    """The only chunk of `doc_id`."""
    return Chunk(f"{doc_id}#0", doc_id, 0, 0, len(text), text, 10, "", metadata)


@pytest.fixture(scope="module")
def embedder() -> MiniLM:
    """The packaged MiniLM."""
    return MiniLM(None, 512, 16)


@pytest.fixture
def store(tmp_path: Path, embedder: MiniLM) -> ChunkStore:
    """A chunk for every topic."""
    store = ChunkStore.create(str(tmp_path), StoreSettings(), embedder)
    write(store, embedder, [make_chunk(name, text, kind=name) for name, text in TOPICS.items()])
    return store


def write(store: ChunkStore, embedder: MiniLM, chunks: list[Chunk]) -> None:
    """Write `chunks` as whole documents and bring the indexes up to date."""
    hashes = {chunk.doc_id: "h" for chunk in chunks}
    store.replace_documents(chunks, hashes, embedder.embed([chunk.text for chunk in chunks]))
    store.maintain()


@pytest.mark.parametrize("mode", ["vector", "full-text", "hybrid"])
def test_each_question_gets_its_own_topic(store: ChunkStore, embedder: MiniLM, mode: str) -> None:
    """RER-10: questions on disjoint topics find their topics, and a batch gives what single questions give."""
    settings = RetrievalSettings(top_k=3, mode=mode)  # type: ignore[arg-type]
    batch = retrieve(store, embedder, QUESTIONS, settings)
    assert [one.qid for one in batch] == ["q1", "q2", "q3"]
    assert [one.candidates[0].chunk.doc_id for one in batch] == ["heron", "bread", "moon"]
    for question, together in zip(QUESTIONS, batch, strict=True):
        (alone,) = retrieve(store, embedder, [question], settings)
        assert [one.chunk for one in alone.candidates] == [one.chunk for one in together.candidates]
        assert np.allclose(
            [one.similarity for one in alone.candidates], [one.similarity for one in together.candidates], atol=1e-6
        )
        assert np.allclose(alone.vector, together.vector, atol=1e-6)


def test_more_than_there_is(store: ChunkStore, embedder: MiniLM) -> None:
    """RER-05: asking for 50 of 7 chunks gives all 7; asking nothing gives nothing."""
    (found,) = retrieve(store, embedder, QUESTIONS[:1], RetrievalSettings(top_k=50))
    assert {one.chunk.doc_id for one in found.candidates} == set(TOPICS)
    assert retrieve(store, embedder, [], RetrievalSettings()) == []


def test_the_candidates_mean_is_the_mean_of_their_vectors(store: ChunkStore, embedder: MiniLM) -> None:
    """Only where it is asked for; an agent's input is then the question's vector with the mean behind it."""
    plain, asked = (
        retrieve(store, embedder, QUESTIONS[:2], RetrievalSettings(top_k=3), mean) for mean in (False, True)
    )
    assert [one.mean for one in plain] == [None, None]
    texts = [one.chunk.text for one in asked[0].candidates]
    np.testing.assert_allclose(asked[0].mean, embedder.embed(texts).mean(axis=0), atol=1e-6)
    width = embedder.dimension
    inputs = question_vectors(asked, 2 * width)
    assert inputs.shape == (2, 2 * width)
    np.testing.assert_array_equal(inputs[:, :width], question_vectors(plain, width))
    failed = replace(asked[1], vector=None, mean=None, error="no vector")
    assert np.isnan(question_vectors([asked[0], failed], 2 * width)[1]).all()


def test_copies_are_kept_once_and_the_list_is_still_full(store: ChunkStore, embedder: MiniLM) -> None:
    """Of twenty copies under other ids the lowest id stays, and as many distinct texts come as asked for."""
    write(store, embedder, [make_chunk(f"copy{index:02d}", TOPICS["heron"]) for index in range(20)])
    (found,) = retrieve(store, embedder, QUESTIONS[:1], RetrievalSettings(top_k=5))
    assert found.candidates[0].chunk.doc_id == "copy00"
    assert len({one.chunk.text for one in found.candidates}) == 5


def test_filters_of_the_configuration_and_the_question(store: ChunkStore, embedder: MiniLM) -> None:
    """Each question is searched under its own filter, which wins over the configured one."""
    own = Question("q4", QUESTIONS[0].question, metadata={"filter.kind": "loan", "source": "ignored"})
    found = retrieve(store, embedder, [QUESTIONS[0], own], RetrievalSettings(filter={"kind": "chess"}))
    assert [[one.chunk.doc_id for one in each.candidates] for each in found] == [["chess"], ["loan"]]
    assert wanted_metadata(own, {"kind": "chess", "year": "1"}) == {"kind": "loan", "year": "1"}


@pytest.mark.parametrize("fields", [{"filter": '{"kind": "loan"}'}, {"filter.kind": "loan"}])
def test_both_ways_to_write_a_filter(store: ChunkStore, embedder: MiniLM, fields: dict[str, str]) -> None:
    """A field `filter` with an object, as in JSON lines, is the same as a field `filter.kind`, as in CSV."""
    question = Question("q", QUESTIONS[0].question, metadata=fields)
    (found,) = retrieve(store, embedder, [question], RetrievalSettings())
    assert [one.chunk.doc_id for one in found.candidates] == ["loan"]


def test_a_filter_that_is_none_fails_alone(store: ChunkStore, embedder: MiniLM) -> None:
    """It is never searched without its filter; the others are answered."""
    bad = Question("bad", "Which bird?", metadata={"filter": "kind=loan"})
    found = retrieve(store, embedder, [bad, QUESTIONS[0]], RetrievalSettings(top_k=1))
    assert "no JSON object" in (found[0].error or "")
    assert found[1].candidates[0].chunk.doc_id == "heron"


def test_nothing_found_is_no_error(store: ChunkStore, embedder: MiniLM) -> None:
    """A filter that nothing meets gives no candidate, a vector and no error."""
    (found,) = retrieve(store, embedder, QUESTIONS[:1], RetrievalSettings(filter={"kind": "'; DROP TABLE"}))
    assert (found.candidates, found.error) == ((), None)
    assert found.vector is not None


class Poisoned:
    """MiniLM that has no vector for questions with "poison", and a zero one for "zero"."""

    def __init__(self, inner: MiniLM) -> None:
        self.name, self.revision, self.dimension = inner.name, inner.revision, inner.dimension
        self.max_length, self.truncated, self.inner = inner.max_length, 0, inner

    def embed(self, texts: list[str]) -> np.ndarray:
        """The inner vectors, but for the two words."""
        vectors = self.inner.embed(texts)
        vectors[["poison" in text for text in texts]] = np.nan
        vectors[["zero" in text for text in texts]] = 0
        return vectors


def test_a_question_without_a_vector_fails_alone(store: ChunkStore, embedder: MiniLM) -> None:
    """STO-05: a NaN or zero question vector is an error of that question, not an empty result, and touches no other."""
    questions = [Question("p", "poison"), QUESTIONS[0], Question("z", "zero")]
    found = retrieve(store, Poisoned(embedder), questions, RetrievalSettings(top_k=2))
    assert [one.qid for one in found] == ["p", "q1", "z"]
    for bad in (found[0], found[2]):
        assert "no usable vector" in (bad.error or "")
        assert (bad.candidates, bad.vector) == ((), None)
    assert found[1].error is None
    assert found[1].candidates[0].chunk.doc_id == "heron"


@pytest.mark.parametrize("mode", ["vector", "full-text", "hybrid"])
def test_awkward_questions_are_searched(store: ChunkStore, embedder: MiniLM, mode: str) -> None:
    """Half a million words, control characters, a lone surrogate, or blanks break nothing in any mode."""
    texts = ["word " * 500_000, "\x00\x07 heron", "heron \ud83d", "   ", '"heron AND (']
    questions = [Question(str(index), text) for index, text in enumerate(texts)]
    found = retrieve(store, embedder, questions, RetrievalSettings(top_k=2, mode=mode))  # type: ignore[arg-type]
    assert [one.error for one in found] == [None] * 5
    assert [found[index].candidates[0].chunk.doc_id for index in (1, 2, 4)] == ["heron"] * 3


def test_near_copies_are_copies() -> None:
    """Another case, other spaces or punctuation make no other text; other words and bare symbols do."""
    texts = ["The mill, 1702.", "the  mill 1702", "The mill, 1703.", "***", "###", "磨坊。", "磨坊"]
    candidates = [Candidate(make_chunk(str(index), text), 0.5) for index, text in enumerate(texts)]
    assert [one.chunk.doc_id for one in distinct_texts(candidates, 9)] == ["0", "2", "3", "4", "5"]


def test_of_equal_texts_the_first_stays() -> None:
    """The order is kept, copies are dropped, and no more than asked for are returned."""
    candidates = [Candidate(make_chunk(str(index), text), 0.5) for index, text in enumerate("abacb")]
    assert [one.chunk.chunk_id for one in distinct_texts(candidates, 5)] == ["0#0", "1#0", "3#0"]
    assert len(distinct_texts(candidates, 2)) == 2
