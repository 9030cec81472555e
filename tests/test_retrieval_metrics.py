"""Recall and nDCG of retrieval against hand-made rankings."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corag.retrieval_metrics import documents_by_text, ndcg_at, recall_at, score_retrieval
from corag.values import Candidate, Chunk


def ranking(*doc_ids, text=None):
    """One candidate a document id, best first."""
    return [
        Candidate(Chunk(f"{one}#{place}", one, place, 0, 1, text or f"{one} {place}", 1), 1 - place / 100)
        for place, one in enumerate(doc_ids)
    ]


@pytest.mark.parametrize(
    ("doc_ids", "relevant", "k", "recall"),
    [
        ("abc", {"a"}, 3, 1.0),
        ("abc", {"c"}, 2, 0.0),
        ("abc", {"a", "x"}, 3, 0.5),
        ("aab", {"a", "b"}, 2, 0.5),
        ("", {"a"}, 5, 0.0),
    ],
)
def test_recall_counts_documents_among_the_first_candidates(doc_ids, relevant, k, recall):
    """Several chunks of one document count once, and take their places."""
    assert score_retrieval(ranking(*doc_ids), relevant, k).recall == recall


@pytest.mark.parametrize(
    ("doc_ids", "relevant", "ndcg"),
    [
        ("abc", {"a"}, 1.0),
        ("bac", {"a"}, 1 / math.log2(3)),
        ("bbba", {"a"}, 1 / math.log2(3)),
        ("xa", {"a", "b"}, (1 / math.log2(3)) / (1 + 1 / math.log2(3))),
        ("ab", {"a", "b"}, 1.0),
        ("xyz", {"a"}, 0.0),
        ("0123456789a", {"a"}, 0.0),
    ],
)
def test_ndcg_follows_its_definition(doc_ids, relevant, ndcg):
    """By hand: 1/log2(rank + 1) for each relevant document among ten, over the best possible sum."""
    assert score_retrieval(ranking(*doc_ids), relevant, 10).ndcg == pytest.approx(ndcg)


def test_nothing_known_to_be_relevant_is_no_score():
    """Such a question is left out of the means, not counted as a miss."""
    assert score_retrieval(ranking("a"), (), 10) is None


def test_either_copy_of_a_text_counts():
    """EVL-04: of two documents of one text retrieval returns one, and the other counts as found too."""
    chunks = [one.chunk for one in ranking("a", "b", text="same")] + [one.chunk for one in ranking("c")]
    copies = documents_by_text(chunks)
    assert copies == {"same": {"a", "b"}}
    found = ranking("a", text="same")
    assert score_retrieval(found, {"b"}, 1).recall == 0.0
    score = score_retrieval(found, {"b"}, 1, copies)
    assert (score.recall, score.ndcg) == (1.0, 1.0)


@given(
    ranked=st.lists(st.sets(st.sampled_from("abcdef"), min_size=1, max_size=3), max_size=12),
    relevant=st.sets(st.sampled_from("abcdefgh"), min_size=1),
    k=st.integers(1, 12),
)
def test_scores_are_shares(ranked, relevant, k):
    """Both lie in [0, 1], are 0 together where nothing relevant is ranked, and never fall with more candidates."""
    recall, ndcg = recall_at(ranked, relevant, k), ndcg_at(ranked, relevant, k)
    assert 0 <= recall <= 1
    assert 0 <= ndcg <= 1 + 1e-9
    if not relevant & {one for documents in ranked for one in documents}:
        assert (recall, ndcg) == (0, 0)
    assert recall_at([*ranked, relevant], relevant, k) >= recall
    assert ndcg_at([*ranked, relevant], relevant, k) >= ndcg
