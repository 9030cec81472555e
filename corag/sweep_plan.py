"""What a sweep tries: the whole grid, or a coarse one and then what lies around each reranker's best (paper §5.2)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from corag.labels import best_by_reranker, rank
from corag.settings import SearchSettings, SweepSettings
from corag.sweep_bounds import pair_bound
from corag.values import Configuration, Trial


def grid(rerankers: Sequence[str], settings: SweepSettings) -> list[Configuration]:
    """Every configuration of the sweep: rerankers in their order, then λ, c and iterations in theirs."""
    return [
        Configuration(reranker, iterations, cost, exploration)
        for reranker in rerankers
        for cost in settings.cost_coefficients
        for exploration in settings.exploration_coefficients
        for iterations in settings.iterations
    ]


def coarse_grid(rerankers: Sequence[str], settings: SweepSettings) -> list[Configuration]:
    """Every second value of each axis, its least and greatest always among them, for every reranker."""
    axes = {
        name: tuple(dict.fromkeys([*sorted(values)[::2], max(values)]))
        for name, values in (
            ("iterations", settings.iterations),
            ("cost_coefficients", settings.cost_coefficients),
            ("exploration_coefficients", settings.exploration_coefficients),
        )
    }
    return grid(rerankers, settings.model_copy(update=axes))


def affordable(
    configurations: Sequence[Configuration],
    tried: Sequence[Configuration],
    settings: SweepSettings,
    costs: Sequence[int],
    search: SearchSettings,
) -> list[Configuration]:
    """The `configurations` that keep one question's pairs, those of `tried` included, within `max_pairs` at most.

    Each reranker's first is taken before any reranker's second. `costs` are the candidates' tokens.
    """
    places: dict[str, int] = defaultdict(int)
    turns = []
    for index, one in enumerate(configurations):
        places[one.reranker] += 1
        turns.append((places[one.reranker], index))
    in_turn = [configurations[index] for _, index in sorted(turns)]
    if settings.max_pairs is None:
        return in_turn
    return _within_pairs(in_turn, tried, settings.max_pairs, costs, search)


def refinement(
    trials: Sequence[Trial],
    configurations: Sequence[Configuration],
    settings: SweepSettings,
    costs: Sequence[int],
    search: SearchSettings,
) -> list[Configuration]:
    """What the second stage adds for one question, out of `configurations` (the whole grid), what matters most first.

    For each reranker, the best one first, the untried configurations at most one grid step from its best trial on
    every axis, nearest first, as long as the question's pairs stay within `max_pairs` at most.
    """
    tried = [trial.configuration for trial in trials]
    around = [
        configuration
        for best in sorted(best_by_reranker(trials).values(), key=rank)
        for configuration in _neighbours(best.configuration, configurations, settings)
        if configuration not in tried
    ]
    if settings.max_pairs is None:
        return around
    return _within_pairs(around, tried, settings.max_pairs, costs, search)


def _within_pairs(
    wanted: Sequence[Configuration],
    tried: Sequence[Configuration],
    most: int,
    costs: Sequence[int],
    search: SearchSettings,
) -> list[Configuration]:
    bound = pair_bound([*tried, *wanted], costs, search)
    taken: list[Configuration] = []
    for one in wanted:
        if bound([*tried, *taken, one]) <= most:
            taken.append(one)
    return taken


def _neighbours(
    home: Configuration, configurations: Sequence[Configuration], settings: SweepSettings
) -> list[Configuration]:
    """The configurations of the same reranker at most one step away on each axis, fewest steps first."""
    axes: Mapping[str, list[float]] = {
        "iterations": sorted(settings.iterations),
        "cost_coefficient": sorted(settings.cost_coefficients),
        "exploration_coefficient": sorted(settings.exploration_coefficients),
    }

    def steps(other: Configuration) -> list[int]:
        return [abs(axis.index(getattr(other, name)) - axis.index(getattr(home, name))) for name, axis in axes.items()]

    near = [one for one in configurations if one.reranker == home.reranker and max(steps(one)) <= 1]
    return sorted(near, key=lambda one: sum(steps(one)))
