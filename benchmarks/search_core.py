"""How good and how fast the tree search is on synthetic benefits, where the optimum is known.

    python -m benchmarks.search_core

Forty instances of eight candidates, B = 320, λ = 0.1, c = 2.4, ten iterations; the optimum is over every order of at
most five chunks within the budget. The figures are those of the default settings. What the tables mean for the choice
of a rule is told in docs/search-quality.md.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from benchmarks.figures import emit
from benchmarks.synthetic import synthetic_benefit
from corag.search import Benefit, SearchParameters, SearchResult, search
from corag.search.parameters import order_cost
from corag.settings import SearchSettings
from corag.values import ChunkOrder

SEEDS = range(40)
COMPARED_SEEDS = range(40, 240)
"""On which the rules were compared while they were being worked out."""
UNTOUCHED_SEEDS = range(440, 640)
"""Looked at only after the rules were settled."""
CANDIDATES = 8
DEFAULTS = SearchSettings()
PARAMETERS = SearchParameters(
    budget=320,
    iterations=10,
    cost_coefficient=0.1,
    exploration_coefficient=2.4,
    backup=DEFAULTS.backup,
    selection=DEFAULTS.selection,
)
RULES: tuple[tuple[Literal["best", "all"], Literal["uct", "best-first"], float], ...] = (
    ("best", "uct", 2.4),
    ("best", "uct", 0.0),
    ("all", "uct", 2.4),
    ("all", "uct", 0.1),
    ("all", "uct", 0.0),
    ("all", "best-first", 0.0),
    ("all", "best-first", 1.0),
    ("all", "best-first", 2.4),
    ("all", "best-first", 3.0),
)
TIMED_NODES = 2000
REPEATS = 5


@dataclass(frozen=True)
class Quality:
    """Means over the instances: value as a share of the optimum's, how often it is the optimum, orders scored."""

    ratio: float
    found: float
    scored: float
    over_budget: int


def main() -> None:
    """Print the tables and the figures."""
    for seeds in (SEEDS, COMPARED_SEEDS, UNTOUCHED_SEEDS):
        print("\n".join(quality_table(seeds)))
    nodes, milliseconds = time_core()
    print(f"a tree of {nodes} nodes with a free scorer: {milliseconds:.1f} ms per {TIMED_NODES} (best of {REPEATS})\n")
    emit_figures(milliseconds)


def emit_figures(search_core_ms: float) -> None:
    """Print the figures of the default settings: the four of quality, and the time that `time_core` measured."""
    chosen = measure(PARAMETERS)
    emit("mcts_optimum_ratio", chosen.ratio, 0.99, "higher", len(SEEDS))
    emit("mcts_optimum_found", chosen.found, 0.6, "higher", len(SEEDS))
    emit("mcts_orders_scored", chosen.scored, 70, "lower", len(SEEDS))
    emit("mcts_over_budget", chosen.over_budget, 0, "lower", len(SEEDS))
    emit("search_core_ms", search_core_ms, 50, "lower", REPEATS)


def quality_table(seeds: Sequence[int]) -> Iterator[str]:
    """The rules of selection and backup side by side, in Markdown."""
    yield f"seeds {seeds[0]}-{seeds[-1]}\n"
    yield "| backup | selection | c | share of the optimum | optimum found | orders scored | over budget |"
    yield "|---|---|---|---|---|---|---|"
    for backup, selection, c in RULES:
        parameters = replace(PARAMETERS, backup=backup, selection=selection, exploration_coefficient=c)
        row = measure(parameters, seeds)
        yield (
            f"| {backup} | {selection} | {c:g} | {row.ratio:.4f} | {row.found:.1%} | {row.scored:.1f} "
            f"| {row.over_budget} |"
        )
    yield ""


def measure(parameters: SearchParameters, seeds: Sequence[int] = SEEDS) -> Quality:
    """The quality of one way of searching over all instances."""
    results = [_compare(seed, parameters) for seed in seeds]
    count = len(results)
    return Quality(
        ratio=sum(found.value / best.value for found, best, _ in results) / count,
        found=sum(abs(found.value - best.value) < 1e-9 for found, best, _ in results) / count,
        scored=sum(found.scored for found, _, _ in results) / count,
        over_budget=sum(cost > parameters.budget for _, _, cost in results),
    )


def time_core() -> tuple[int, float]:
    """The nodes of one tree of at least `TIMED_NODES`, and the fewest milliseconds of growing it."""
    costs = [100] * 20
    parameters = replace(PARAMETERS, budget=1000, iterations=TIMED_NODES // (len(costs) - 3))
    elapsed, scored = [], 0
    for _ in range(REPEATS):
        start = time.perf_counter()
        scored = search(costs, _free, parameters).scored
        elapsed.append(1000 * (time.perf_counter() - start))
    return scored, min(elapsed) * TIMED_NODES / scored


def _free(orders: Sequence[ChunkOrder]) -> list[float]:
    return [0.5 + 0.01 * order[0] for order in orders]


def _compare(seed: int, parameters: SearchParameters) -> tuple[SearchResult, SearchResult, int]:
    benefit, costs = _instance(seed)
    found = search(costs, benefit, parameters)
    best = _optimum(seed, parameters.budget, parameters.cost_coefficient)
    return found, best, order_cost(found.order, costs)


@cache
def _optimum(seed: int, budget: int, cost_coefficient: float) -> SearchResult:
    benefit, costs = _instance(seed)
    parameters = SearchParameters(budget=budget, cost_coefficient=cost_coefficient)
    return search(costs, benefit, parameters, "exhaustive")


def _instance(seed: int) -> tuple[Benefit, list[int]]:
    one, costs = synthetic_benefit(seed, CANDIDATES)
    return lambda orders: [one(order) for order in orders], costs


if __name__ == "__main__":
    main()
