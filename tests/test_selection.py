import math
import random
from dataclasses import replace

import pytest

from corag.memo import Memo
from corag.order_scorer import OrderScorer
from corag.selection import Selection, select
from corag.settings import SearchSettings
from corag.values import Configuration
from tests.search_cases import FakeReranker, candidates, made_up

SETTINGS = SearchSettings(budget=30)
CONFIGURATION = Configuration("fake", 10, 0.1, 2.4)
STRATEGIES = ("mcts", "exhaustive", "branch-and-bound", "greedy", "document-order", "shuffle", "naive")
NAMES = ["mills", "salt", "bridges", "bells", "maps"]


def raw(query: str, texts: tuple[str, ...]) -> float:
    """A score that looks random, in eighths so that shifting and scaling are exact."""
    return random.Random(f"{query} {texts}").randint(0, 800) / 8


def scorers(*rerankers: FakeReranker, normalize="per_query"):
    """A fresh scorer a reranker over a fresh memo."""
    table = Memo(None).table("scores")
    return {one.name: OrderScorer(one, table, normalize) for one in rerankers}


def question(qid: str, texts=NAMES, configuration=CONFIGURATION, strategy=None, **changes) -> Selection:
    """A question about `qid` whose candidates are named after it."""
    found = candidates([f"{qid} {text}" for text in texts], prefix=qid)
    return Selection(qid, f"what of {qid}?", found, replace(configuration, **changes), strategy)


def ids(chosen) -> tuple[str, ...]:
    """The chunk ids in prompt order."""
    return tuple(chunk.chunk_id for chunk in chosen.chunks)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_candidate_is_one_scored_row(strategy) -> None:
    """RER-01: a single candidate is scored once and chosen."""
    reranker = FakeReranker(raw)
    (chosen,) = select([question("q", ["mills"], strategy=strategy)], scorers(reranker), SETTINGS)
    assert (ids(chosen), chosen.scored, chosen.error) == (("q0",), 1, None)
    assert len(reranker.pairs) == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_candidate_is_an_empty_choice_with_a_reason(strategy) -> None:
    """RER-01: nothing is scored, nothing raised."""
    reranker = FakeReranker(raw)
    (chosen,) = select([question("q", [], strategy=strategy)], scorers(reranker), SETTINGS)
    assert (chosen.chunks, chosen.scored, chosen.stopped, chosen.error) == ((), 0, "no candidates", None)
    assert reranker.pairs == []


@pytest.mark.parametrize("change", [lambda score: 100 * score, lambda score: score - 50], ids=["scaled", "shifted"])
def test_a_rescaled_or_shifted_reranker_chooses_the_same(change) -> None:
    """RER-04: scores s, 100·s and s − 50 choose the same chunks of every question."""
    asked = [question(f"q{number}", iterations=4) for number in range(12)]
    changed = FakeReranker(lambda query, texts: change(raw(query, texts)))
    assert select(asked, scorers(changed), SETTINGS) == select(asked, scorers(FakeReranker(raw)), SETTINGS)


def test_saturated_scores_fall_back_to_the_order_of_retrieval() -> None:
    """RER-04: where every score is 1.0 the nearest chunk is chosen, among chunks of one cost."""
    for strategy in ("mcts", "exhaustive", "greedy"):
        (chosen,) = select([question("q", strategy=strategy)], scorers(FakeReranker(lambda *pair: 1.0)), SETTINGS)
        assert ids(chosen) == ("q0",)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_passage_without_a_score_is_never_chosen(strategy) -> None:
    """RER-08: NaN for one of five passages: it is in no choice, and the benefit is finite."""
    reranker = FakeReranker(lambda query, texts: math.nan if "q salt" in texts else raw(query, texts))
    (chosen,) = select([question("q", strategy=strategy)], scorers(reranker), SETTINGS)
    assert chosen.chunks
    assert "q1" not in ids(chosen)
    assert math.isfinite(chosen.benefit)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_question_without_any_score_fails_with_a_reason(strategy) -> None:
    """All NaN is an error, not the answer that nothing helps."""
    (chosen,) = select([question("q", strategy=strategy)], scorers(FakeReranker(lambda *pair: math.nan)), SETTINGS)
    assert (chosen.chunks, chosen.error) == ((), "reranker fake gave no finite score for any order")


def test_three_questions_in_one_batch_equal_one_at_a_time() -> None:
    """RER-10: each question gets chunks of its own topic, and batching changes nothing."""
    asked = [question(topic) for topic in ("rye", "ink", "tin")]
    together = select(asked, scorers(FakeReranker(raw)), SETTINGS)
    assert together == [select([one], scorers(FakeReranker(raw)), SETTINGS)[0] for one in asked]
    for one, chosen in zip(asked, together, strict=True):
        assert chosen.chunks
        assert all(chunk_id.startswith(one.qid) for chunk_id in ids(chosen))


def test_a_sweep_equals_separate_calls_and_scores_no_order_twice() -> None:
    """Configurations that differ in λ, c or iterations share scores and trees; each equals its own search."""
    rerankers = [FakeReranker(raw), FakeReranker(lambda query, texts: made_up(query, texts), "other", "other r1")]
    configurations = [
        Configuration(name, iterations, cost, exploration)
        for name in ("fake", "other")
        for iterations in (12, 1, 5)
        for cost in (0.0, 0.3)
        for exploration in (0.0, 2.4)
    ]
    asked = [question(qid, configuration=one) for one in configurations for qid in ("rye", "ink")]
    together = select(asked, scorers(*rerankers), SETTINGS)
    assert [len(one.pairs) for one in rerankers] == [len(set(one.pairs)) for one in rerankers]
    fresh = [scorers(FakeReranker(raw), FakeReranker(made_up, "other", "other r1")) for _ in asked]
    assert together == [select([one], own, SETTINGS)[0] for one, own in zip(asked, fresh, strict=True)]


def test_configurations_that_differ_in_iterations_cost_what_the_longest_costs() -> None:
    """The shorter searches are read off the tree of the longest one."""
    alone, shared = FakeReranker(raw), FakeReranker(raw)
    (longest,) = select([question("q", iterations=12)], scorers(alone), SETTINGS)
    chosen = select([question("q", iterations=count) for count in (3, 12, 6)], scorers(shared), SETTINGS)
    assert alone.batches == shared.batches
    assert chosen[1] == longest
    assert chosen[0].scored < chosen[2].scored < chosen[1].scored


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_reranker_that_raises_fails_its_question_only(strategy) -> None:
    """SWP-05: the failed choice carries a one-line reason; its neighbours are as without it."""

    def raising(query: str, texts: tuple[str, ...]) -> float:
        if "ink" in query:
            raise RuntimeError("out of\nmemory")
        return raw(query, texts)

    asked = [question(topic, strategy=strategy) for topic in ("rye", "ink", "tin")]
    rye, ink, tin = select(asked, scorers(FakeReranker(raising)), SETTINGS)
    assert (ink.chunks, ink.error) == ((), "reranker fake: RuntimeError: out of memory")
    assert [rye, tin] == select([asked[0], asked[2]], scorers(FakeReranker(raw)), SETTINGS)


def test_choices_come_in_the_order_of_the_selections_whatever_their_strategies() -> None:
    """Strategies named per question or configured are mixed in one call."""
    asked = [question(f"q{index}", strategy=name) for index, name in enumerate([*STRATEGIES, None])]
    settings = SETTINGS.model_copy(update={"strategy": "greedy"})
    chosen = select(asked, scorers(FakeReranker(raw)), settings)
    for one, choice in zip(asked, chosen, strict=True):
        assert [choice] == select(
            [replace(one, strategy=one.strategy or "greedy")], scorers(FakeReranker(raw)), SETTINGS
        )
        assert all(chunk_id.startswith(one.qid) for chunk_id in ids(choice))


def test_no_choice_exceeds_the_budget() -> None:
    """Whatever the strategy, the chosen chunks cost no more than the budget."""
    asked = [question(f"q{index}", strategy=name) for index, name in enumerate(STRATEGIES)]
    for budget in (9, 10, 29, 30):
        for chosen in select(asked, scorers(FakeReranker(raw)), SearchSettings(budget=budget)):
            assert sum(chunk.tokens for chunk in chosen.chunks) <= budget
            assert bool(chosen.chunks) == (budget >= 10)


def test_the_seed_decides_the_shuffle() -> None:
    """Another seed shuffles the same set otherwise; the same seed does not."""
    asked = [question("q", strategy="shuffle", cost_coefficient=0.0)]
    reranker = FakeReranker(lambda query, texts: sum(map(len, texts)) + 0.5 * len(texts))
    orders = {seed: ids(*select(asked, scorers(reranker), SETTINGS, seed)) for seed in range(8)}
    assert len({frozenset(order) for order in orders.values()}) == 1
    assert len({tuple(order) for order in orders.values()}) > 1
    assert ids(*select(asked, scorers(reranker), SETTINGS, 3)) == orders[3]
