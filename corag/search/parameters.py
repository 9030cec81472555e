"""What a search is given and what it returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from corag.values import ChunkOrder

Benefit = Callable[[Sequence[ChunkOrder]], Sequence[float]]
"""W of each order of a batch, in [0, 1]; NaN where there is none. W of the empty order is 0 and is never asked."""

Strategy = Literal["mcts", "exhaustive", "branch-and-bound", "greedy", "document-order", "shuffle", "naive"]


DECIMALS = 9
"""Values that are equal at so many decimals are a tie."""

ROUNDING = 2 * 10.0**-DECIMALS
"""A value that is lower by this much is lower at `DECIMALS` too."""


@dataclass(frozen=True, slots=True)
class SearchParameters:
    """The settings of one search.

    budget: most tokens that an order may cost. iterations: expansions of the policy tree. cost_coefficient: λ.
    exploration_coefficient: c. backup: which children's rewards are backed up. selection: `uct` goes down the tree by
    utility (the paper's rule), `best-first` expands the open node of greatest promise, its value and c times what the
    budget left may add (it needs no rewards, so `backup` changes nothing). max_chunks bounds the exhaustive
    strategies, seed the shuffle.
    """

    budget: int
    iterations: int = 10
    cost_coefficient: float = 0.1
    exploration_coefficient: float = 2.4
    backup: Literal["best", "all"] = "all"
    selection: Literal["uct", "best-first"] = "best-first"
    max_chunks: int = 5
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The order found: its benefit W, its value W − λ·cost/B and its cost in tokens.

    scored: distinct orders that were scored; nan: how many of them had no score; stopped: why the search ended.
    """

    order: ChunkOrder
    benefit: float
    value: float
    cost: int
    scored: int
    iterations: int
    nan: int
    stopped: str


def value_of(benefit: float, cost: int, parameters: SearchParameters) -> float:
    """W − λ·cost/B, what the returned order is greatest in (METHOD: search)."""
    return benefit - parameters.cost_coefficient * cost / parameters.budget


def order_cost(order: ChunkOrder, costs: Sequence[int]) -> int:
    """Tokens of an order: the sum over its chunks."""
    return sum(costs[index] for index in order)


def better(value: float, order: ChunkOrder, than_value: float, than_order: ChunkOrder) -> bool:
    """Whether an order beats another: greater value, then fewer chunks, then the lower indices.

    Values are compared at `DECIMALS`, so that the rounding of a rescaled score decides nothing.
    """
    mine, theirs = round(value, DECIMALS), round(than_value, DECIMALS)
    if mine != theirs:
        return mine > theirs
    return (len(order), order) < (len(than_order), than_order)
