"""The policy tree (paper §4): its root is the empty order, a child appends one unused candidate."""

import math
from collections.abc import Sequence

from corag.search.parameters import ROUNDING, SearchParameters, SearchResult, better
from corag.values import ChunkOrder

ROOT = 0
NO_PARENT = -1


class PolicyTree:
    """One tree as parallel lists indexed by node; only index tuples are kept, never texts.

    order[v]: the path from the root. cost[v]: its tokens. charge[v]: λ·cost(v)/B. benefit[v]: W of the order, −inf
    where it has none (NaN). visits[v]: N(v). reward[v]: V(v), the sum of the rewards backed up through v. children[v]:
    None until v is expanded. closed[v]: nothing below v is left to expand. total: N, the rewards backed up in the
    whole tree. queue and spread serve best-first selection: the heap of open nodes by −promise, and the standard
    deviation of W among the single candidates.
    """

    def __init__(self, costs: Sequence[int], parameters: SearchParameters) -> None:
        self.costs = tuple(costs)
        self.parameters = parameters
        self.order: list[ChunkOrder] = [()]
        self.parent = [NO_PARENT]
        self.cost = [0]
        self.charge = [0.0]
        self.benefit = [0.0]
        self.visits = [0]
        self.reward = [0.0]
        self.children: list[range | None] = [None]
        self.closed = [not self.appendable(ROOT)]
        self.total = 0
        self.iterations = 0
        self.nan = 0
        self.best = ROOT
        self.queue: list[tuple[float, int]] = []
        self.spread = 0.0

    def appendable(self, node: int) -> list[int]:
        """The unused candidates that still fit the budget behind the order of `node`."""
        order, left = self.order[node], self.parameters.budget - self.cost[node]
        return [index for index, price in enumerate(self.costs) if price <= left and index not in order]

    def utility(self, node: int) -> float:
        """U(v) = V(v)/N(v) + c·sqrt(ln N / N(v)) − λ·cost(v)/B (Def. 4.2); +inf for an unvisited node."""
        visits = self.visits[node]
        if not visits:
            return math.inf
        explore = self.parameters.exploration_coefficient * math.sqrt(math.log(self.total) / visits)
        return self.reward[node] / visits + explore - self.charge[node]

    def promise(self, node: int) -> float:
        """W(v) − λ·cost(v)/B + c·σ·(1 − cost(v)/B): the value, and what the budget that is left may still add.

        σ is the standard deviation of W among the single candidates, so that c means the same on every scale of W.
        """
        left = 1.0 - self.cost[node] / self.parameters.budget
        return self.value(node) + self.parameters.exploration_coefficient * self.spread * left

    def value(self, node: int) -> float:
        """W − λ·cost/B of the node's own order."""
        return self.benefit[node] - self.charge[node]

    def result(self) -> SearchResult:
        """The order of greatest value over every node, intermediate ones included; () if none beats the empty one."""
        best = self.best
        return SearchResult(
            order=self.order[best],
            benefit=self.benefit[best],
            value=self.value(best),
            cost=self.cost[best],
            scored=len(self.order) - 1,
            iterations=self.iterations,
            nan=self.nan,
            stopped=self._stopped(),
        )

    def _stopped(self) -> str:
        if not self.costs:
            return "no candidates"
        if self.closed[ROOT]:
            return "every order within the budget is scored" if self.iterations else "no candidate fits the budget"
        return "iterations used up"

    def add(self, parent: int, candidate: int, benefit: float, closed: bool) -> int:
        """A new child of `parent`; returns its node.

        `closed` says that nothing can be appended to it; a child without a score is closed in any case.
        """
        order = (*self.order[parent], candidate)
        cost = self.cost[parent] + self.costs[candidate]
        missing = not math.isfinite(benefit)
        self.nan += missing
        self.order.append(order)
        self.parent.append(parent)
        self.cost.append(cost)
        self.charge.append(self.parameters.cost_coefficient * cost / self.parameters.budget)
        self.benefit.append(-math.inf if missing else benefit)
        self.visits.append(0)
        self.reward.append(0.0)
        self.children.append(None)
        self.closed.append(missing or closed)
        node = len(self.order) - 1
        value, best_value = self.value(node), self.value(self.best)
        # Most nodes are far behind: they are spared the comparison of rounded values.
        if value > best_value - ROUNDING and better(value, order, best_value, self.order[self.best]):
            self.best = node
        return node
