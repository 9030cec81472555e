"""What searches can cost at most: no search ever costs more, and where little fits the bound is what it costs."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corag.memo import Memo
from corag.order_scorer import OrderScorer, PairCount
from corag.search import search
from corag.selection import Selection, select
from corag.settings import SearchSettings, SweepSettings
from corag.sweep_bounds import most_pairs, most_work, order_bounds
from corag.sweep_plan import grid
from tests.search_cases import Case, FakeReranker, candidates, cases, made_up

STRATEGIES = ("mcts", "exhaustive", "branch-and-bound", "greedy", "document-order", "shuffle", "naive")
SWEEP = SweepSettings(iterations=(2, 6), cost_coefficients=(0.0, 0.3), exploration_coefficients=(0.0, 2.4))
GRID = grid(["one", "two"], SWEEP)


@given(cases())
def test_no_tree_scores_more_orders_than_its_bound(case: Case) -> None:
    """One tree asks for at most the orders that its expansions can reach; more expansions never lower the bound."""
    asked = set()

    def benefit(orders):
        asked.update(orders)
        return case.benefit(orders)

    search(case.costs, benefit, case.parameters)
    bounds = order_bounds(case.costs, case.parameters.budget, case.parameters.iterations - 1)
    assert len(asked) <= bounds[-1]
    assert bounds == sorted(bounds)


@given(
    st.lists(st.integers(1, 60), max_size=6),
    st.integers(1, 150),
    st.sampled_from(STRATEGIES),
    st.sampled_from(["uct", "best-first"]),
)
@settings(deadline=None, max_examples=60)
def test_no_sweep_of_a_question_scores_more_pairs_than_its_bound(costs, budget, strategy, selection) -> None:
    """Under every strategy and rule, all configurations together."""
    settings = SearchSettings(budget=budget, strategy=strategy, selection=selection, max_chunks=3)
    found = [
        replace(one, chunk=replace(one.chunk, tokens=cost))
        for one, cost in zip(candidates([f"text {index}" for index in range(len(costs))]), costs, strict=True)
    ]
    count, table = PairCount(), Memo(None).table("scores")
    scorers = {
        name: OrderScorer(FakeReranker(made_up, name, f"{name} r1"), table, "per_query", count)
        for name in ("one", "two")
    }
    select([Selection("q", "what?", found, one) for one in GRID], scorers, settings)
    assert count.scored <= most_pairs(GRID, costs, settings)


@pytest.mark.parametrize(
    ("costs", "budget", "bounds"),
    [
        ([], 10, [0]),
        ([5, 20], 10, [2]),
        ([10] * 3, 20, [3, 5, 7, 9]),
        ([10] * 3, 30, [3, 5, 7, 9, 10, 11, 12, 13, 14, 15]),
    ],
)
def test_the_bound_counts_what_fits(costs, budget, bounds) -> None:
    """Singles whatever they cost, then the children of so many nodes, the widest first, until nothing is left."""
    assert order_bounds(costs, budget, 99) == bounds
    assert order_bounds(costs, budget, 2) == bounds[:3]


def test_limits_hold_for_training_questions() -> None:
    """`limited` caps both kinds of work; calls are never more than the configurations, or the orders and none."""
    settings, search_settings = (
        SWEEP.model_copy(update={"plan": "two-stage", "max_pairs": 30, "max_generations": 4}),
        SearchSettings(budget=300),
    )
    free = most_work(GRID, settings, [10] * 8, search_settings)
    held = most_work(GRID, settings, [10] * 8, search_settings, limited=True)
    assert free.pairs > 30
    assert free.calls == len(GRID)
    assert (held.pairs, held.calls) == (30, 4)
    assert most_work(GRID, settings, [10] * 2, search_settings).calls == 2 + 2 + 1
