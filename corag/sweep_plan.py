"""What a sweep will try and what that costs at most: the whole grid, or a coarse one refined around its best (§5.2)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from corag.labels import best_by_reranker, rank
from corag.settings import SweepSettings
from corag.values import Configuration, Trial


@dataclass(frozen=True, slots=True)
class Work:
    """Reranker pairs and language model calls."""

    pairs: int
    calls: int

    def __add__(self, other: "Work") -> "Work":
        return Work(self.pairs + other.pairs, self.calls + other.calls)


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


def refinement(
    trials: Sequence[Trial],
    configurations: Sequence[Configuration],
    settings: SweepSettings,
    costs: Sequence[int],
    budget: int,
) -> list[Configuration]:
    """What the second stage adds for one question, in the order of `configurations` (the whole grid).

    For each reranker, the best one first, the untried configurations at most one grid step from its best trial on
    every axis, nearest first, as long as the question's work stays within `max_pairs` and `max_generations` at most.
    `costs` are its candidates' tokens.
    """
    tried = {trial.configuration for trial in trials}
    answers = len({trial.answer for trial in trials if trial.answer is not None})
    added: list[Configuration] = []
    for best in sorted(best_by_reranker(trials).values(), key=rank):
        for configuration in _neighbours(best.configuration, configurations, settings):
            if configuration in tried:
                continue
            if settings.max_generations is not None and answers + len(added) >= settings.max_generations:
                break
            planned = [*tried, *added, configuration]
            if settings.max_pairs is not None and most_pairs(planned, costs, budget) > settings.max_pairs:
                continue
            added.append(configuration)
    place = {configuration: index for index, configuration in enumerate(configurations)}
    return sorted(added, key=place.__getitem__)


def most_work(
    configurations: Sequence[Configuration],
    coarse: Sequence[Configuration] | None,
    settings: SweepSettings,
    costs: Sequence[int],
    budget: int,
) -> Work:
    """The most that one question can cost. `coarse` is the first stage where there are two, else None."""
    pairs, calls = most_pairs(configurations, costs, budget), _most_calls(configurations, costs, budget)
    # The limits hold for the second stage: the first is run whole.
    if coarse is not None and settings.max_pairs is not None:
        pairs = min(pairs, max(settings.max_pairs, most_pairs(coarse, costs, budget)))
    if coarse is not None and settings.max_generations is not None:
        calls = min(calls, max(settings.max_generations, _most_calls(coarse, costs, budget)))
    return Work(pairs, calls)


def most_pairs(configurations: Sequence[Configuration], costs: Sequence[int], budget: int) -> int:
    """The most distinct (reranker, order) pairs that trees with these configurations can score on one question."""
    longest: dict[str, dict[tuple[float, float], int]] = defaultdict(dict)
    for one in configurations:
        tree = (one.cost_coefficient, one.exploration_coefficient)
        longest[one.reranker][tree] = max(one.iterations, longest[one.reranker].get(tree, 0))
    return sum(feasible_orders(costs, budget, sum(each - 1 for each in trees.values())) for trees in longest.values())


def feasible_orders(costs: Sequence[int], budget: int, expansions: int) -> int:
    """The most distinct orders that are scored by expanding the root and then `expansions` further nodes.

    The root has every candidate for a child, since also one that exceeds the budget is scored alone: it belongs to
    the range that scores are mapped by. Every further node has the unused candidates that still fit. A node has more
    children than any below it, so that taking the widest open node each time finds the greatest sum.
    """
    open_nodes: list[tuple[int, tuple[int, ...], int]] = []

    def queue(order: tuple[int, ...], left: int) -> None:
        width = sum(price <= left for index, price in enumerate(costs) if index not in order)
        if width:
            heappush(open_nodes, (-width, order, left))

    for index, price in enumerate(costs):
        if price <= budget:
            queue((index,), budget - price)
    scored = len(costs)
    for _ in range(expansions):
        if not open_nodes:
            break
        width, order, left = heappop(open_nodes)
        scored -= width
        for index, price in enumerate(costs):
            if price <= left and index not in order:
                queue((*order, index), left - price)
    return scored


def _most_calls(configurations: Sequence[Configuration], costs: Sequence[int], budget: int) -> int:
    """The most distinct prompts: one a configuration, or every order and the empty one where those are fewer."""
    orders = feasible_orders(costs, budget, len(configurations) * max(one.iterations for one in configurations))
    return min(len(configurations), orders + 1)


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
