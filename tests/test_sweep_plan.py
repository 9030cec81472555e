"""The plan of a sweep: the grid, its coarse part, what the second stage adds, and bounds that hold."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corag.search import search
from corag.settings import SweepSettings
from corag.sweep_plan import coarse_grid, feasible_orders, grid, most_pairs, most_work, refinement
from corag.values import Configuration, Trial
from tests.search_cases import Case, cases

SETTINGS = SweepSettings(
    iterations=(5, 10, 15, 20, 25),
    cost_coefficients=(0.0, 0.1, 0.2, 0.3),
    exploration_coefficients=(0.0, 1.0, 2.0, 2.4, 3.0),
    plan="two-stage",
)
NAMES = ("one", "two")
GRID = grid(NAMES, SETTINGS)
COSTS, BUDGET = [100] * 6, 300


def trial(configuration: Configuration, rouge_l: float) -> Trial:
    """A finished trial with an answer of its own for each score."""
    return Trial("q", configuration, ("c",), 100, 0.5, f"scored {rouge_l}", rouge_l)


def coarse_trials(best: dict[str, Configuration]) -> list[Trial]:
    """The first stage: every trial scores 0.1, but each reranker's best 0.5."""
    return [trial(one, 0.5 if one == best[one.reranker] else 0.1) for one in coarse_grid(NAMES, SETTINGS)]


BEST = {name: Configuration(name, 15, 0.2, 2.0) for name in NAMES}


def test_the_coarse_grid_keeps_the_ends_of_every_axis() -> None:
    """Every second value, the least and the greatest, for both rerankers, and nothing that the grid lacks."""
    coarse = coarse_grid(NAMES, SETTINGS)
    assert {one.iterations for one in coarse} == {5, 15, 25}
    assert {one.cost_coefficient for one in coarse} == {0.0, 0.2, 0.3}
    assert {one.exploration_coefficient for one in coarse} == {0.0, 2.0, 3.0}
    assert len(coarse) == 2 * 27
    assert set(coarse) <= set(GRID)


def test_the_second_stage_tries_what_lies_around_each_rerankers_best() -> None:
    """Untried configurations at most one step away on every axis, in the order of the grid."""
    added = refinement(coarse_trials(BEST), GRID, SETTINGS, COSTS, BUDGET)
    around = {
        Configuration(name, *values)
        for name in NAMES
        for values in itertools.product((10, 15, 20), (0.1, 0.2, 0.3), (1.0, 2.0, 2.4))
    }
    assert set(added) == around - set(coarse_grid(NAMES, SETTINGS))
    assert added == [one for one in GRID if one in set(added)]


@pytest.mark.parametrize("limit", [0, 3, 7])
def test_max_generations_limits_the_second_stage(limit) -> None:
    """So many answers more than the first stage's two at most; the better reranker's neighbourhood comes first."""
    trials = coarse_trials(BEST)
    trials = [trial(one.configuration, 0.6) if one.configuration == BEST["two"] else one for one in trials]
    settings = SETTINGS.model_copy(update={"max_generations": 3 + limit})
    added = refinement(trials, GRID, settings, COSTS, BUDGET)
    assert len(added) == limit
    assert {one.reranker for one in added} <= {"two"}


def test_max_pairs_limits_the_second_stage() -> None:
    """The bound on the question's pairs, both stages together, stays within the limit."""
    trials = coarse_trials(BEST)
    tried = [one.configuration for one in trials]
    costs, budget = [10] * 12, 120
    spent = most_pairs(tried, costs, budget)
    settings = SETTINGS.model_copy(update={"max_pairs": spent + 500})
    added = refinement(trials, GRID, settings, costs, budget)
    assert added
    assert spent < most_pairs([*tried, *added], costs, budget) <= spent + 500
    assert len(added) < len(refinement(trials, GRID, SETTINGS, costs, budget))


@given(cases(), st.integers(0, 20))
def test_no_search_scores_more_orders_than_the_bound(case: Case, more: int) -> None:
    """One tree asks for at most the orders that its expansions can reach."""
    asked = set()

    def benefit(orders):
        asked.update(orders)
        return case.benefit(orders)

    search(case.costs, benefit, case.parameters)
    bound = feasible_orders(case.costs, case.parameters.budget, case.parameters.iterations - 1)
    assert len(asked) <= bound <= feasible_orders(case.costs, case.parameters.budget, case.parameters.iterations + more)


@pytest.mark.parametrize(
    ("costs", "budget", "expansions", "orders"),
    [
        ([], 10, 5, 0),
        ([5, 20], 10, 5, 2),
        ([10] * 3, 20, 0, 3),
        ([10] * 3, 20, 2, 3 + 4),
        ([10] * 3, 30, 99, 3 + 6 + 6),
    ],
)
def test_the_bound_counts_what_fits(costs, budget, expansions, orders) -> None:
    """Singles whatever they cost, then the children of so many nodes, the widest first."""
    assert feasible_orders(costs, budget, expansions) == orders


def test_the_most_work_of_two_stages_lies_between_the_first_and_the_whole() -> None:
    """Without limits it is the whole grid's; with limits of nothing it is the first stage's."""
    coarse = coarse_grid(NAMES, SETTINGS)
    costs, budget = [10] * 12, 120
    whole = most_work(GRID, None, SETTINGS, costs, budget)
    none = SETTINGS.model_copy(update={"max_pairs": 1, "max_generations": 1})
    assert most_work(GRID, coarse, SETTINGS, costs, budget) == whole
    assert most_work(GRID, coarse, none, costs, budget) == most_work(coarse, None, SETTINGS, costs, budget)
    assert whole.pairs > most_work(GRID, coarse, none, costs, budget).pairs
