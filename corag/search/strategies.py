"""Ways to an order without a tree: bounds, baselines, and rearrangements of a set."""

import random
from collections.abc import Iterator, Sequence

from corag.search.parameters import Benefit, SearchParameters, SearchResult, better, order_cost, value_of
from corag.values import ChunkOrder

BATCH_ORDERS = 512


def orders_within(costs: Sequence[int], parameters: SearchParameters) -> Iterator[ChunkOrder]:
    """Every order of at most `max_chunks` candidates within the budget, shorter ones first."""
    level: list[ChunkOrder] = [()]
    for _ in range(parameters.max_chunks):
        longer: list[ChunkOrder] = []
        for order in level:
            left = parameters.budget - order_cost(order, costs)
            longer += [(*order, index) for index, price in enumerate(costs) if price <= left and index not in order]
        yield from longer
        level = longer


def exhaustive(costs: Sequence[int], benefit: Benefit, parameters: SearchParameters) -> SearchResult:
    """The best of every order of at most `max_chunks` chunks: the paper's CORAG Upper (fewer than six)."""
    keeper = _Keeper(costs, benefit, parameters)
    batch: list[ChunkOrder] = []
    for order in orders_within(costs, parameters):
        batch.append(order)
        if len(batch) == BATCH_ORDERS:
            keeper.score(batch)
            batch = []
    keeper.score(batch)
    return keeper.result("every order is scored")


def branch_and_bound(costs: Sequence[int], benefit: Benefit, parameters: SearchParameters) -> SearchResult:
    """The same order as `exhaustive`, without scoring what cannot win: W ≤ 1, so value ≤ 1 − λ·cost/B.

    Exact for any scorer; it saves work where λ is large, since a longer order starts from a lower bound.
    """
    keeper = _Keeper(costs, benefit, parameters)
    level: list[ChunkOrder] = [()]
    for _ in range(parameters.max_chunks):
        longer = []
        for order in level:
            spent = order_cost(order, costs)
            for index, price in enumerate(costs):
                cost = spent + price
                if index not in order and cost <= parameters.budget and value_of(1.0, cost, parameters) >= keeper.value:
                    longer.append((*order, index))
        keeper.score(longer)
        level = longer
    return keeper.result("what is left cannot beat the best")


def greedy(costs: Sequence[int], benefit: Benefit, parameters: SearchParameters) -> SearchResult:
    """Greedy forward selection: append the candidate that raises the value most, until none does."""
    keeper = _Keeper(costs, benefit, parameters)
    order: ChunkOrder = ()
    while True:
        left = parameters.budget - order_cost(order, costs)
        keeper.score([(*order, index) for index, price in enumerate(costs) if price <= left and index not in order])
        if keeper.order == order:
            return keeper.result("no further chunk raises the value")
        order = keeper.order


def naive(costs: Sequence[int], benefit: Benefit, parameters: SearchParameters) -> SearchResult:
    """NaiveRAG: the candidates by their own score, taken while they fit the budget."""
    singles = [(index,) for index, price in enumerate(costs) if price <= parameters.budget]
    scores = benefit(singles)
    ranked = sorted(zip(singles, scores, strict=True), key=lambda pair: (-_finite(pair[1]), pair[0]))
    order: ChunkOrder = ()
    for (index,), score in ranked:
        if score == score and order_cost(order, costs) + costs[index] <= parameters.budget:
            order = (*order, index)
    known: dict[ChunkOrder, float] = dict(zip(singles, scores, strict=True))
    if order and order not in known:
        known[order] = benefit([order])[0]
    missing = sum(score != score for score in known.values())
    cost, worth = order_cost(order, costs), _or_zero(known.get(order, 0.0))
    value = value_of(worth, cost, parameters)
    return SearchResult(order, worth, value, cost, len(known), 0, missing, "budget filled")


def rearranged(
    found: SearchResult,
    places: Sequence[tuple[str, int]],
    costs: Sequence[int],
    benefit: Benefit,
    parameters: SearchParameters,
    *,
    shuffle: bool,
) -> SearchResult:
    """The set that a search found in document order (by `places`, its chunks' documents and positions) or shuffled."""
    order = tuple(sorted(found.order, key=lambda index: places[index]))
    if shuffle:
        mixed = list(order)
        random.Random(parameters.seed).shuffle(mixed)  # noqa: S311 - a sample, not a secret
        order = tuple(mixed)
    if not order or order == found.order:
        return found
    (score,) = benefit([order])
    worth, cost, missing = _or_zero(score), order_cost(order, costs), found.nan + (score != score)
    value = value_of(worth, cost, parameters)
    return SearchResult(order, worth, value, cost, found.scored + 1, found.iterations, missing, "rearranged")


class _Keeper:
    """Scores orders and keeps the best."""

    def __init__(self, costs: Sequence[int], benefit: Benefit, parameters: SearchParameters) -> None:
        self._costs, self._benefit, self._parameters = costs, benefit, parameters
        self.order: ChunkOrder = ()
        self.value = 0.0
        self.benefit_of: dict[ChunkOrder, float] = {(): 0.0}
        self._nan = 0

    def score(self, orders: Sequence[ChunkOrder]) -> None:
        if not orders:
            return
        for order, worth in zip(orders, self._benefit(orders), strict=True):
            if worth != worth:
                self._nan += 1
                continue
            self.benefit_of[order] = worth
            value = value_of(worth, order_cost(order, self._costs), self._parameters)
            if better(value, order, self.value, self.order):
                self.order, self.value = order, value

    def result(self, stopped: str) -> SearchResult:
        scored = len(self.benefit_of) - 1 + self._nan
        cost = order_cost(self.order, self._costs)
        worth = self.benefit_of[self.order]
        return SearchResult(self.order, worth, self.value, cost, scored, 0, self._nan, stopped)


def _or_zero(score: float) -> float:
    return score if score == score else 0.0


def _finite(score: float) -> float:
    return score if score == score else -float("inf")
