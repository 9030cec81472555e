"""How good and how fast the tree search is on synthetic benefits, where the optimum is known.

    python -m benchmarks.search_core

Forty instances of eight candidates, B = 320, λ = 0.1, c = 2.4, ten iterations; the optimum is over every order of at
most five chunks within the budget. The figures are those of the default settings.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.figures import emit
from benchmarks.synthetic import synthetic_benefit
from corag.search import SearchParameters, SearchResult, search
from corag.search.parameters import order_cost
from corag.settings import SearchSettings
from corag.values import ChunkOrder

SEEDS = range(40)
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
    """Print the table and the figures."""
    ways = {
        "backup best": replace(PARAMETERS, backup="best", selection="uct"),
        "backup all": replace(PARAMETERS, backup="all", selection="uct"),
        "best-first": replace(PARAMETERS, selection="best-first"),
    }
    print("| search | share of the optimum | optimum found | orders scored | over budget |")
    print("|---|---|---|---|---|")
    for name, parameters in ways.items():
        row = measure(parameters)
        print(f"| {name} | {row.ratio:.3f} | {row.found:.0%} | {row.scored:.1f} | {row.over_budget} |")
    chosen = measure(PARAMETERS)
    nodes, milliseconds = time_core()
    print(f"\n{nodes} nodes with a free scorer: {milliseconds:.1f} ms (best of {REPEATS})\n")
    emit("mcts_optimum_ratio", chosen.ratio, 0.99, "higher", len(SEEDS))
    emit("mcts_optimum_found", chosen.found, 0.6, "higher", len(SEEDS))
    emit("mcts_orders_scored", chosen.scored, 70, "lower", len(SEEDS))
    emit("mcts_over_budget", chosen.over_budget, 0, "lower", len(SEEDS))
    emit("search_core_ms", milliseconds, 50, "lower", REPEATS)


def measure(parameters: SearchParameters) -> Quality:
    """The quality of one way of searching over all instances."""
    results = [_compare(seed, parameters) for seed in SEEDS]
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
    one, costs = synthetic_benefit(seed, CANDIDATES)

    def benefit(orders: Sequence[ChunkOrder]) -> list[float]:
        return [one(order) for order in orders]

    found = search(costs, benefit, parameters)
    best = search(costs, benefit, parameters, "exhaustive")
    return found, best, order_cost(found.order, costs)


if __name__ == "__main__":
    main()
