import math
import random

import pytest

from corag.memo import Memo
from corag.order_scorer import BATCHES_PER_COMMIT, OrderScorer, PairCount
from tests.search_cases import FakeReranker, candidates

SCOPE = ("q1", "fake")
TEXTS = ("a long text about mills", "salt", "the bridge of Brock")


def length(query: str, texts: tuple[str, ...]) -> float:
    """A score that tells every pair apart, the order of the texts included."""
    return float(sum((place + 1) * len(text) for place, text in enumerate(texts)))


def scorer(reranker, table=None, normalize="none", count=None, texts=TEXTS):
    """A scorer that knows one query."""
    made = OrderScorer(reranker, table or Memo(None).table("scores"), normalize, count)
    made.add_query(SCOPE, "who?", candidates(texts))
    return made


def asked(*orders):
    """Requests of the one query."""
    return [(SCOPE, order) for order in orders]


def test_each_row_keeps_the_score_of_its_own_pair() -> None:
    """RER-02: the batch is sorted by length and two ids share a text; still each (id, text, score) belongs together."""
    reranker = FakeReranker(length)
    table = Memo(None).table("scores")
    retrieved = candidates(["the longest text of all", "twin", "middle size", "twin", "x"])
    made = OrderScorer(reranker, table, "none")
    made.add_query(SCOPE, "who?", retrieved)
    benefits, failed = made(asked((0,), (1,), (2,), (3,), (4,), (3, 0), (0, 1), (1, 0)))
    assert failed == {}
    rows = [(one.chunk.chunk_id, one.chunk.text, worth) for one, worth in zip(retrieved, benefits, strict=False)]
    assert rows == [(f"c{rank}", one.chunk.text, len(one.chunk.text) / 1000) for rank, one in enumerate(retrieved)]
    assert benefits[5] == benefits[7] == (4 + 2 * 23) / 1000
    assert benefits[6] == (23 + 2 * 4) / 1000
    sizes = [sum(map(len, texts)) for _, texts in reranker.pairs]
    assert sizes == sorted(sizes)


def test_many_requests_in_any_order_get_their_own_scores() -> None:
    """Whatever the order of the requests, the benefits come back in that order."""
    orders = [(i, j) for i in range(3) for j in range(3) if i != j] + [(i,) for i in range(3)]
    expected = {order: length("", tuple(TEXTS[index] for index in order)) / 1000 for order in orders}
    for seed in range(5):
        random.Random(seed).shuffle(orders)
        assert scorer(FakeReranker(length))(asked(*orders))[0] == [expected[order] for order in orders]


def test_what_is_remembered_is_not_scored_again() -> None:
    """A second call, and another scorer over the same memo, send no pair to the reranker and say the same."""
    table, reranker, count = Memo(None).table("scores"), FakeReranker(length), PairCount()
    first = scorer(reranker, table, count=count)
    benefits = first(asked((0,), (0, 1), (1, 0)))
    scored = len(reranker.pairs)
    assert (count.scored, count.remembered) == (scored, 0)
    assert scored == 3 + 2
    assert first(asked((1, 0), (0,), (0, 1)))[0] == [benefits[0][2], benefits[0][0], benefits[0][1]]
    other = FakeReranker(length)
    assert scorer(other, table)(asked((0,), (0, 1), (1, 0))) == benefits
    assert len(reranker.pairs) == scored
    assert other.pairs == []


def test_a_changed_text_is_scored_anew() -> None:
    """SWP-04: a chunk whose text changed under the same id has other scores, alone and in every order that holds it."""
    table = Memo(None).table("scores")
    scorer(FakeReranker(length), table)(asked((0, 1), (0, 2)))
    reranker = FakeReranker(length)
    changed = OrderScorer(reranker, table, "none")
    changed.add_query(SCOPE, "who?", candidates([TEXTS[0], "pepper", TEXTS[2]]))
    changed(asked((0, 1), (0, 2)))
    assert sorted(reranker.pairs) == [("who?", (TEXTS[0], "pepper")), ("who?", ("pepper",))]


@pytest.mark.parametrize("change", ["identity", "query"])
def test_another_reranker_or_question_shares_no_score(change) -> None:
    """SWP-04: the identity of the reranker and the question are part of what is remembered."""
    table = Memo(None).table("scores")
    scorer(FakeReranker(length), table)(asked((0, 1)))
    reranker = FakeReranker(length, identity="fake r2" if change == "identity" else "fake r1")
    made = OrderScorer(reranker, table, "none")
    made.add_query(SCOPE, "where?" if change == "query" else "who?", candidates(TEXTS))
    made(asked((0, 1)))
    assert len(reranker.pairs) == 3 + 1


def test_the_range_is_that_of_all_single_candidates() -> None:
    """Benefits do not depend on which order is asked for first, even one that alone does not fit the budget."""
    late = scorer(FakeReranker(length), normalize="per_query")
    (first,), _ = late(asked((1, 2)))
    both, _ = scorer(FakeReranker(length), normalize="per_query")(asked((0,), (1,), (2,), (1, 2)))
    assert both[:2] == [0.5, 0.0]
    assert first == both[3] > 0.5


def test_a_missing_score_is_counted_and_spoils_no_other() -> None:
    """RER-08: NaN for one passage stays NaN, is counted and remembered, and leaves the others' benefits finite."""
    count = PairCount()
    reranker = FakeReranker(lambda query, texts: math.nan if "salt" in texts else length(query, texts))
    made = scorer(reranker, normalize="per_query", count=count)
    for _ in range(2):
        benefits, failed = made(asked((0,), (1,), (2,)))
        assert failed == {}
        assert [math.isnan(worth) for worth in benefits] == [False, True, False]
        assert (benefits[0], benefits[2]) == (0.5, 0.0)
    assert count.nan == 2
    assert len(reranker.pairs) == 3


def raising(query: str, texts: tuple[str, ...]) -> float:
    """Raises on one question, in two lines."""
    if query == "bad":
        raise RuntimeError("out of\nmemory")
    return length(query, texts)


def two_queries(reranker, table=None, normalize="per_query"):
    """A scorer of a good and a bad question."""
    made = OrderScorer(reranker, table or Memo(None).table("scores"), normalize)
    for name in ("good", "bad"):
        made.add_query((name, "fake"), name, candidates(TEXTS))
    return made


def test_a_raising_reranker_fails_only_the_question_that_it_raised_on() -> None:
    """The others of the batch are scored, and the reason is one line that names the reranker."""
    made = two_queries(FakeReranker(raising))
    benefits, failed = made([(("good", "fake"), (0,)), (("bad", "fake"), (0,)), (("good", "fake"), (1,))])
    assert failed == {("bad", "fake"): "reranker fake: RuntimeError: out of memory"}
    assert (benefits[0], benefits[2]) == (0.5, 0.0)
    assert math.isnan(benefits[1])


def test_questions_of_one_text_share_their_pairs() -> None:
    """Twins are scored once, get the same benefits, and fail together."""
    reranker = FakeReranker(raising)
    made = OrderScorer(reranker, Memo(None).table("scores"), "per_query")
    scopes = {name: (name, "fake") for name in ("good", "twin", "bad", "bad twin")}
    for name, scope in scopes.items():
        made.add_query(scope, name.split()[0].replace("twin", "good"), candidates(TEXTS))
    benefits, failed = made([(scope, (0, 1)) for scope in scopes.values()])
    assert benefits[0] == benefits[1] > 0.5
    assert failed == dict.fromkeys([scopes["bad"], scopes["bad twin"]], "reranker fake: RuntimeError: out of memory")
    assert sum(query == "good" for query, _ in reranker.pairs) == 3 + 1


def test_a_question_that_failed_once_is_scored_rightly_later() -> None:
    """After a passing failure the range comes from real scores, whatever was asked for in between."""
    broken = [True]

    def once(query: str, texts: tuple[str, ...]) -> float:
        return raising(query if broken[0] else "good", texts)

    made = two_queries(FakeReranker(once))
    assert made([(("bad", "fake"), (0,))])[1]
    made([(("good", "fake"), (0,))])
    broken[0] = False
    assert made([(("bad", "fake"), (index,)) for index in range(2)]) == ([0.5, 0.0], {})


def test_a_reranker_that_loses_a_score_fails_its_question() -> None:
    """Scores are never matched to the wrong pairs: a list of another length is an error of that question."""
    reranker = FakeReranker(length)
    reranker.score_pairs = lambda pairs: [1.0] * (len(pairs) - 1)  # type: ignore[method-assign]
    assert scorer(reranker)(asked((0,)))[1] == {SCOPE: "reranker fake: ValueError: 2 scores for 3 pairs"}


def test_other_candidates_under_a_known_name_bring_their_own_range() -> None:
    """Telling of a question again with other candidates forgets the range of the former ones."""
    made = scorer(FakeReranker(length), normalize="per_query")
    made(asked((0,)))
    made.add_query(SCOPE, "who?", candidates(["x", "y" * 500]))
    assert made(asked((0,), (1,)))[0] == [0.0, 0.5]


def test_a_killed_run_keeps_the_batches_that_were_committed() -> None:
    """What ended before the kill is not scored again, and the pairs reach the reranker in whole batches."""
    table = Memo(None).table("scores")
    texts = ["w" * (rank + 1) for rank in range(12)]
    orders = [(i, j) for i in range(12) for j in range(12) if i != j]
    piece = BATCHES_PER_COMMIT * FakeReranker.batch_pairs

    def killed(query: str, pair: tuple[str, ...]) -> float:
        if len(reranker.batches) == 1:
            raise KeyboardInterrupt
        return length(query, pair)

    reranker, again = FakeReranker(killed), FakeReranker(length)
    with pytest.raises(KeyboardInterrupt):
        scorer(reranker, table, texts=texts)(asked(*orders))
    assert table.count() == piece
    benefits, _ = scorer(again, table, texts=texts)(asked(*orders))
    assert len(again.pairs) == 12 + len(orders) - piece
    assert benefits == [length("", tuple(texts[index] for index in order)) / 1000 for order in orders]
    assert all(len(batch) == piece for batch in again.batches[:-1])


def test_texts_that_differ_in_what_utf_8_cannot_hold_are_different_texts() -> None:
    """A lone surrogate is not confused with the question mark that usually replaces it."""
    table = Memo(None).table("scores")
    reranker = FakeReranker(lambda query, texts: float(sum(map(ord, texts[0]))))
    for text in ("\ud800", "?"):
        assert scorer(reranker, table, texts=[text])(asked((0,)))[0] == [ord(text) / 1000]
