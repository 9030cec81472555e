"""The plan of a sweep: the grid, its coarse part, what the second stage adds, and bounds that hold."""

import itertools
from dataclasses import replace

import pytest

from corag.settings import SearchSettings, SweepSettings
from corag.sweep_bounds import most_pairs
from corag.sweep_plan import affordable, coarse_grid, grid, refinement
from corag.values import Configuration, Trial

SETTINGS = SweepSettings(
    iterations=(5, 10, 15, 20, 25),
    cost_coefficients=(0.0, 0.1, 0.2, 0.3),
    exploration_coefficients=(0.0, 1.0, 2.0, 2.4, 3.0),
    plan="two-stage",
)
NAMES = ("one", "two")
GRID = grid(NAMES, SETTINGS)
COSTS, SEARCH = [100] * 6, SearchSettings(budget=300)
MANY, WIDE = [10] * 12, SearchSettings(budget=128)


def trial(configuration: Configuration, rouge_l: float) -> Trial:
    """A finished trial with an answer of its own for each score."""
    return Trial("q", configuration, ("c",), 100, 0.5, f"scored {rouge_l}", rouge_l)


def coarse_trials(best: dict[str, Configuration]) -> list[Trial]:
    """The first stage: every trial scores 0.1, but each reranker's best 0.5."""
    return [trial(one, 0.5 if one == best[one.reranker] else 0.1) for one in coarse_grid(NAMES, SETTINGS)]


ONE_STEP = (
    {"iterations": 10},
    {"iterations": 20},
    {"cost_coefficient": 0.1},
    {"exploration_coefficient": 1.0},
    {"exploration_coefficient": 2.4},
)
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
    """Untried configurations at most one step away on every axis, the better reranker's first, the nearest first."""
    trials = coarse_trials(BEST)
    trials = [trial(one.configuration, 0.6) if one.configuration == BEST["two"] else one for one in trials]
    added = refinement(trials, GRID, SETTINGS, COSTS, SEARCH)
    around = {
        Configuration(name, *values)
        for name in NAMES
        for values in itertools.product((10, 15, 20), (0.1, 0.2, 0.3), (1.0, 2.0, 2.4))
    }
    assert set(added) == around - set(coarse_grid(NAMES, SETTINGS))
    assert [one.reranker for one in added] == sorted((one.reranker for one in added), reverse=True)
    assert added[0] in {replace(BEST["two"], **change) for change in ONE_STEP}


def test_without_a_limit_each_rerankers_first_comes_before_any_rerankers_second() -> None:
    """A limit then leaves no reranker out for standing last in the list."""
    coarse = coarse_grid(NAMES, SETTINGS)
    wanted = affordable(coarse, (), SETTINGS, COSTS, SEARCH)
    assert sorted(wanted) == sorted(coarse)
    assert [one.reranker for one in wanted[:4]] == ["one", "two", "one", "two"]


@pytest.mark.parametrize("most", [1, 55, 56, 200, 500, 10_000])
def test_max_pairs_limits_both_stages_together(most) -> None:
    """Whatever the limit, the bound on the question's pairs stays within it; with room for all, nothing is left out."""
    settings = SETTINGS.model_copy(update={"max_pairs": most})
    first = affordable(coarse_grid(NAMES, SETTINGS), (), settings, MANY, WIDE)
    trials = [trial(one, 0.5 if one == first[0] else 0.1) for one in first]
    second = refinement(trials, GRID, settings, MANY, WIDE)
    assert most_pairs([*first, *second], MANY, WIDE) <= most
    assert bool(first) == (most >= 12 + 4 * 11)
    if most == 10_000:
        assert len(first) == len(coarse_grid(NAMES, SETTINGS))
        assert set(second) == set(refinement(trials, GRID, SETTINGS, MANY, WIDE))
