import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings

from corag.search import SearchParameters, search
from tests.search_cases import Case, by_table, cases

FREE = SearchParameters(budget=30, cost_coefficient=0.0)


def brute_force(case: Case):
    """The best order among all permutations: by value, then fewer chunks, then the lower indices."""
    ranked = [(0.0, 0, ())]
    for size in range(1, case.parameters.max_chunks + 1):
        for order in itertools.permutations(range(len(case.costs)), size):
            cost, (worth,) = sum(case.costs[index] for index in order), case.benefit([order])
            if cost <= case.parameters.budget and not math.isnan(worth):
                value = worth - case.parameters.cost_coefficient * cost / case.parameters.budget
                ranked.append((-round(value, 9), size, order))
    return min(ranked)[2]


@given(cases())
@settings(deadline=None, max_examples=150)
def test_exhaustive_equals_brute_force(case: Case) -> None:
    """Of all orders of at most `max_chunks` chunks within the budget the best is returned."""
    assert search(case.costs, case.benefit, case.parameters, "exhaustive").order == brute_force(case)


@given(cases())
@settings(deadline=None, max_examples=150)
def test_branch_and_bound_equals_exhaustive_with_no_more_scores(case: Case) -> None:
    """Leaving out what cannot win changes neither the order nor its value."""
    bounded, full = (
        search(case.costs, case.benefit, case.parameters, strategy) for strategy in ("branch-and-bound", "exhaustive")
    )
    assert (bounded.order, bounded.value) == (full.order, full.value)
    assert bounded.scored <= full.scored


def test_branch_and_bound_saves_work_where_cost_counts() -> None:
    """With a good cheap chunk and a large λ, long orders are never scored."""
    parameters = SearchParameters(budget=100, cost_coefficient=0.8)
    benefit = by_table({(0,): 0.9}, 0.5)
    bounded, full = (search([10] + [40] * 5, benefit, parameters, way) for way in ("branch-and-bound", "exhaustive"))
    assert bounded.scored == 6 < full.scored


def test_greedy_appends_the_best_candidate_until_none_raises_the_value() -> None:
    """It follows the best extension at each step and stops, below the budget, where the value falls."""
    table = {(0,): 0.3, (1,): 0.5, (2,): 0.4, (1, 0): 0.55, (1, 2): 0.7, (1, 2, 0): 0.69}
    found = search([10] * 3, by_table(table), FREE, "greedy")
    assert (found.order, found.scored, found.stopped) == ((1, 2), 3 + 2 + 1, "no further chunk raises the value")


def test_greedy_takes_nothing_that_is_not_worth_its_cost() -> None:
    """With λ above every W the empty order is the answer."""
    found = search([30, 30], by_table({}, 0.2), replace(FREE, cost_coefficient=0.5), "greedy")
    assert (found.order, found.value) == ((), 0.0)


def test_naive_fills_the_budget_by_single_scores() -> None:
    """NaiveRAG takes the best single chunks that still fit, skips one that does not, and never a NaN."""
    table = {(0,): 0.2, (1,): 0.9, (2,): 0.8, (3,): 0.7, (4,): math.nan, (1, 3, 0): 0.6}
    found = search([10, 10, 25, 10, 1], by_table(table), FREE, "naive")
    assert (found.order, found.cost, found.benefit) == ((1, 3, 0), 30, 0.6)
    assert (found.scored, found.nan) == (6, 1)


def test_naive_scores_one_chunk_once() -> None:
    """Where one chunk fills the budget, its single score is the order's."""
    found = search([30, 30], by_table({(0,): 0.2, (1,): 0.9}), FREE, "naive")
    assert (found.order, found.benefit, found.scored) == ((1,), 0.9, 2)


@pytest.mark.parametrize("strategy", ["naive", "document-order"])
def test_a_baseline_whose_order_has_no_score_counts_it_and_stays_finite(strategy) -> None:
    """The baselines do not choose by the joint score: without one W counts as 0 and the NaN is reported."""
    table = {(0,): 0.4, (1,): 0.5, (1, 0): 0.9 if strategy == "document-order" else math.nan, (0, 1): math.nan}
    found = search([10, 10], by_table(table), FREE, strategy, [("a", 0), ("a", 1)])
    assert sorted(found.order) == [0, 1]
    assert (found.benefit, found.nan) == (0.0, 1 if strategy == "naive" else 2)


@given(cases())
@settings(deadline=None, max_examples=100)
def test_rearrangements_keep_the_set_that_the_tree_search_found(case: Case) -> None:
    """Document order and shuffle change the order alone, so that they isolate what the order gains."""
    found = search(case.costs, case.benefit, case.parameters)
    for strategy in ("document-order", "shuffle"):
        other = search(case.costs, case.benefit, case.parameters, strategy, case.places)
        assert sorted(other.order) == sorted(found.order)
        if strategy == "document-order":
            assert [case.places[index] for index in other.order] == sorted(case.places[index] for index in found.order)


def test_another_seed_shuffles_otherwise() -> None:
    """The shuffle depends on its seed."""
    table = {order: 0.1 * len(order) for size in (1, 2, 3) for order in itertools.permutations(range(3), size)}
    orders = {
        search([10] * 3, by_table(table), replace(FREE, seed=seed), "shuffle", [("d", 0)] * 3).order
        for seed in range(8)
    }
    assert len(orders) > 1
