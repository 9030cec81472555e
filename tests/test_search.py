import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings

from benchmarks.synthetic import synthetic_benefit
from corag.search import SearchParameters, search, search_checkpoints
from tests.search_cases import Case, by_table, cases

STRATEGIES = ("mcts", "exhaustive", "branch-and-bound", "greedy", "document-order", "shuffle", "naive")
SMALL = SearchParameters(budget=40, cost_coefficient=0.2, exploration_coefficient=1.0, selection="uct")


@given(cases())
@settings(deadline=None, max_examples=120)
def test_every_strategy_keeps_the_budget_repeats_nothing_and_is_deterministic(case: Case) -> None:
    """Whatever the costs, scores and budget, an order fits, holds distinct candidates and comes out the same twice."""
    for strategy in STRATEGIES:
        first, second = (search(case.costs, case.benefit, case.parameters, strategy, case.places) for _ in range(2))
        assert first == second
        assert first.cost == sum(case.costs[index] for index in first.order) <= case.parameters.budget
        assert len(set(first.order)) == len(first.order)
        assert math.isfinite(first.value)


@given(cases())
@settings(deadline=None, max_examples=120)
def test_the_value_is_that_of_the_order_and_never_below_the_empty_order(case: Case) -> None:
    """The tree search returns W − λ·cost/B of its order, which is at least 0, the value of taking nothing."""
    found = search(case.costs, case.benefit, case.parameters)
    worth = case.benefit([found.order])[0] if found.order else 0.0
    charge = case.parameters.cost_coefficient * found.cost / case.parameters.budget
    assert found.benefit == worth
    assert found.value == pytest.approx(worth - charge)
    assert found.value >= -1e-9


@given(cases())
@settings(deadline=None, max_examples=120)
def test_a_tree_that_is_grown_to_its_end_finds_the_optimum(case: Case) -> None:
    """With iterations for every order, the tree search returns what brute force does, for all its settings."""
    case = replace(case, missing=0.0, parameters=replace(case.parameters, iterations=1000, max_chunks=len(case.costs)))
    grown = search(case.costs, case.benefit, case.parameters)
    best = search(case.costs, case.benefit, case.parameters, "exhaustive")
    assert (grown.order, grown.value, grown.scored) == (best.order, pytest.approx(best.value), best.scored)


@given(cases())
@settings(deadline=None, max_examples=120)
def test_checkpoints_equal_fresh_searches(case: Case) -> None:
    """The results read off one tree at several iterations are those of separate searches."""
    read_off = search_checkpoints(case.costs, case.benefit, case.parameters, [0, 1, 3, 7, 12])
    assert list(read_off) == [0, 1, 3, 7, 12]
    for iterations, result in read_off.items():
        assert result == search(case.costs, case.benefit, replace(case.parameters, iterations=iterations))


@pytest.mark.parametrize("rule", [("best", "uct"), ("all", "uct"), ("all", "best-first")], ids=" ".join)
@pytest.mark.parametrize(
    ("table", "best"),
    [
        ({(1,): 0.6, (2,): 0.4, (3,): 0.3, (1, 3): 0.62, (3, 1): 0.62, (2, 3): 0.9, (3, 2): 0.8}, (2, 3)),
        ({(3,): 0.5, (4,): 0.4, (3, 4): 0.6, (4, 3): 0.8}, (4, 3)),
        ({(0,): 0.7, (1,): 0.6, (0, 1): 0.5, (1, 0): 0.5}, (0,)),
    ],
    ids=["pair beats the best single", "order matters", "more is worse"],
)
def test_the_tree_finds_what_greedy_selection_misses(table, best, rule) -> None:
    """Interacting pairs, the order of two chunks, and a chunk that lowers W are all found, before all is scored."""
    backup, selection = rule
    parameters = SearchParameters(budget=300, iterations=10, cost_coefficient=0.0, backup=backup, selection=selection)
    found = search([100] * 5, by_table(table), parameters)
    assert found.order == best
    assert found.scored < 5 + 20 + 60


def test_greedy_is_wrong_where_a_pair_beats_the_best_single() -> None:
    """The case above separates the two: greedy starts with the best single chunk and stays with it."""
    table = {(1,): 0.6, (2,): 0.4, (3,): 0.3, (1, 3): 0.62, (2, 3): 0.9}
    parameters = SearchParameters(budget=300, cost_coefficient=0.0)
    assert search([100] * 5, by_table(table), parameters, "greedy").order == (1, 3)


def test_no_score_at_all_chooses_nothing() -> None:
    """Where every order is NaN the empty order is returned and every NaN is counted."""
    found = search([10, 10], by_table({}, math.nan), SMALL)
    assert (found.order, found.benefit, found.value, found.nan, found.scored) == ((), 0.0, 0.0, 2, 2)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_to_choose_from_is_an_empty_result_with_a_reason(strategy) -> None:
    """No candidate, or none that fits, asks for no score and says why."""

    def never(orders):
        raise AssertionError(orders)

    none, unfit = (search(costs, never, SMALL, strategy, [("d", 0)]) for costs in ([], [41]))
    assert (none.order, none.scored, none.stopped) == ((), 0, "no candidates")
    assert (unfit.order, unfit.scored, unfit.stopped) == ((), 0, "no candidate fits the budget")


def test_the_search_stops_where_all_is_scored_or_the_iterations_are_used_up() -> None:
    """The reason of the end is part of the result."""
    ended, cut = (search([10, 10, 10], by_table({}, 0.5), replace(SMALL, iterations=count)) for count in (100, 2))
    assert (ended.stopped, ended.scored) == ("every order within the budget is scored", 3 + 6 + 6)
    assert ended.iterations < 100
    assert (cut.stopped, cut.iterations, cut.scored) == ("iterations used up", 2, 5)


@pytest.mark.parametrize("selection", ["uct", "best-first"])
def test_ten_iterations_stay_near_the_optimum_of_the_synthetic_benefits(selection) -> None:
    """Over ten instances ten iterations reach 98 % of the optimum while scoring at most 70 orders on average."""
    parameters = SearchParameters(budget=320, backup="all", selection=selection)
    ratios, scored = [], []
    for seed in range(10):
        one, costs = synthetic_benefit(seed, 8)
        found, best = (
            search(costs, lambda orders, one=one: [one(order) for order in orders], parameters, strategy)
            for strategy in ("mcts", "exhaustive")
        )
        ratios.append(found.value / best.value)
        scored.append(found.scored)
    assert sum(ratios) / len(ratios) > 0.98
    assert sum(scored) / len(scored) <= 70


def test_equal_scores_without_a_price_choose_the_nearest_chunk() -> None:
    """Saturated scores and λ = 0 leave the order of retrieval to decide, whatever the rule."""
    for backup, selection in itertools.product(("best", "all"), ("uct", "best-first")):
        parameters = replace(SMALL, cost_coefficient=0.0, backup=backup, selection=selection)
        assert search([30, 10, 20], by_table({}, 1.0), parameters).order == (0,)


def test_rounding_errors_break_no_tie() -> None:
    """0.25 − 0.10 and 0.50 − 0.35 are one value, though not as floats: the nearer chunk is chosen."""
    parameters = SearchParameters(budget=100, cost_coefficient=0.5)
    assert 0.25 - 0.5 * 20 / 100 < 0.5 - 0.5 * 70 / 100
    for strategy in ("mcts", "exhaustive", "branch-and-bound", "greedy"):
        assert search([20, 70], by_table({(0,): 0.25, (1,): 0.5}), parameters, strategy).order == (0,)
