"""What searches with given configurations can cost at most, told from the candidates' tokens alone."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from corag.search.parameters import SearchParameters
from corag.search.strategies import orders_within
from corag.settings import SearchSettings, SweepSettings
from corag.values import Configuration


@dataclass(frozen=True, slots=True)
class Work:
    """Reranker pairs and language model calls."""

    pairs: int
    calls: int

    def __add__(self, other: "Work") -> "Work":
        return Work(self.pairs + other.pairs, self.calls + other.calls)


def most_work(
    configurations: Sequence[Configuration],
    settings: SweepSettings,
    costs: Sequence[int],
    search: SearchSettings,
    *,
    limited: bool = False,
) -> Work:
    """The most that trials of these configurations can cost on one question; `limited` by `max_pairs` and the like."""
    pairs, calls = most_pairs(configurations, costs, search), _most_calls(configurations, costs, search)
    if limited and settings.max_pairs is not None:
        pairs = min(pairs, settings.max_pairs)
    if limited and settings.max_generations is not None:
        calls = min(calls, settings.max_generations)
    return Work(pairs, calls)


def most_pairs(configurations: Sequence[Configuration], costs: Sequence[int], search: SearchSettings) -> int:
    """The most distinct (reranker, order) pairs that searches with these configurations can score on one question."""
    return pair_bound(configurations, costs, search)(configurations)


def pair_bound(
    configurations: Sequence[Configuration], costs: Sequence[int], search: SearchSettings
) -> Callable[[Sequence[Configuration]], int]:
    """`most_pairs` of any part of `configurations`, with what all parts share worked out once."""
    largest = max((_expansions(each) for each in _by_reranker(configurations).values()), default=0)
    bounds = order_bounds(costs, search.budget, largest)
    return lambda part: sum(_most_orders(each, costs, search, bounds) for each in _by_reranker(part).values())


def order_bounds(costs: Sequence[int], budget: int, expansions: int) -> list[int]:
    """The most distinct orders that are scored by expanding the root and then 0, 1, … `expansions` further nodes.

    The list ends early where nothing is left to expand. The root has every candidate for a child, since also one that
    exceeds the budget is scored alone: it belongs to the range that scores are mapped by. Every further node has the
    unused candidates that still fit. A node has more children than any below it, so that taking the widest open node
    each time finds the greatest sum.
    """
    open_nodes: list[tuple[int, tuple[int, ...], int]] = []

    def queue(order: tuple[int, ...], left: int) -> None:
        width = sum(price <= left for index, price in enumerate(costs) if index not in order)
        if width:
            heappush(open_nodes, (-width, order, left))

    for index, price in enumerate(costs):
        if price <= budget:
            queue((index,), budget - price)
    scored = [len(costs)]
    while open_nodes and len(scored) <= expansions:
        width, order, left = heappop(open_nodes)
        scored.append(scored[-1] - width)
        for index, price in enumerate(costs):
            if price <= left and index not in order:
                queue((*order, index), left - price)
    return scored


def _most_orders(
    configurations: Sequence[Configuration], costs: Sequence[int], search: SearchSettings, bounds: Sequence[int]
) -> int:
    """The most distinct orders that one reranker scores; `bounds` are those of `order_bounds`."""
    grown = bounds[min(_expansions(configurations), len(bounds) - 1)]
    count = len(costs)
    if search.strategy in ("exhaustive", "branch-and-bound"):
        within = SearchParameters(budget=search.budget, max_chunks=search.max_chunks)
        return count + sum(len(order) > 1 for order in orders_within(costs, within))
    if search.strategy == "naive":
        return count + 1
    if search.strategy == "greedy":
        # One path down the tree for every λ.
        return count + len({one.cost_coefficient for one in configurations}) * count * (count - 1) // 2
    return grown if search.strategy == "mcts" else grown + len(configurations)


def _by_reranker(configurations: Sequence[Configuration]) -> Mapping[str, list[Configuration]]:
    own: dict[str, list[Configuration]] = defaultdict(list)
    for one in configurations:
        own[one.reranker].append(one)
    return own


def _expansions(configurations: Sequence[Configuration]) -> int:
    """The nodes beside the root that one reranker's trees expand: one tree per λ and c, run to the most iterations."""
    longest: dict[tuple[float, float], int] = {}
    for one in configurations:
        tree = (one.cost_coefficient, one.exploration_coefficient)
        longest[tree] = max(one.iterations, longest.get(tree, 0))
    return sum(iterations - 1 for iterations in longest.values())


def _most_calls(configurations: Sequence[Configuration], costs: Sequence[int], search: SearchSettings) -> int:
    """The most distinct prompts: one a configuration, or every order and the empty one where those are fewer."""
    # Each expansion adds an order at least, so that so many reach either all orders or enough of them.
    return min(len(configurations), order_bounds(costs, search.budget, len(configurations))[-1] + 1)
