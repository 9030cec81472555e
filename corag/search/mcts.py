"""The three steps of one iteration (paper Alg. 1-3): select, expand, update."""

from collections.abc import Sequence
from heapq import heappop, heappush
from statistics import pstdev

from corag.search.parameters import SearchParameters
from corag.search.tree import NO_PARENT, ROOT, PolicyTree
from corag.values import ChunkOrder


def select(tree: PolicyTree) -> int:
    """The open node to expand next.

    `uct`: from the root to the open child of greatest utility, until a node that is not expanded. `best-first`: of all
    open nodes the one of greatest promise (see `PolicyTree.promise`). The lower candidate index, then the older node,
    wins a tie.
    """
    if tree.parameters.selection == "best-first":
        return _most_promising(tree)
    node = ROOT
    while (children := tree.children[node]) is not None:
        best, best_utility = -1, -float("inf")
        for child in children:
            if tree.closed[child]:
                continue
            utility = tree.utility(child)
            if best < 0 or utility > best_utility:
                best, best_utility = child, utility
        node = best
    return node


def expand(tree: PolicyTree, node: int, benefits: Sequence[float]) -> range:
    """Create every child of `node` that fits the budget; `benefits` are theirs, in the order of the candidates."""
    candidates = tree.appendable(node)
    first = len(tree.order)
    # What a child can append is among its siblings, so that the cheapest other sibling tells whether it is closed.
    cheapest, *others = sorted(tree.costs[candidate] for candidate in candidates)
    for candidate, benefit in zip(candidates, benefits, strict=True):
        price = tree.costs[candidate]
        other = cheapest if price != cheapest else next(iter(others), None)
        closed = other is None or tree.cost[node] + price + other > tree.parameters.budget
        tree.add(node, candidate, benefit, closed)
    children = range(first, len(tree.order))
    tree.children[node] = children
    tree.iterations += 1
    if tree.parameters.selection == "best-first":
        _queue(tree, node, children)
    return children


def update(tree: PolicyTree, children: range) -> None:
    """Back the new children's rewards up to the root: the best child's (`best`) or every child's (`all`).

    A child without a score backs nothing up, so that means stay finite. Then close what has nothing left to expand.
    """
    scored = [child for child in children if tree.benefit[child] != -float("inf")]
    if tree.parameters.backup == "best" and scored:
        scored = [max(scored, key=lambda child: (tree.benefit[child], -child))]
    expanded = tree.parent[children[0]]
    for child in scored:
        tree.visits[child], tree.reward[child] = 1, tree.benefit[child]
    node = expanded
    while node != NO_PARENT:
        tree.visits[node] += len(scored)
        for child in scored:
            tree.reward[node] += tree.benefit[child]
        node = tree.parent[node]
    tree.total += len(scored)
    node = expanded
    while node != NO_PARENT and all(tree.closed[child] for child in tree.children[node] or ()):
        tree.closed[node] = True
        node = tree.parent[node]


class TreeSearch:
    """A search that asks for the scores it needs: `pending()` names the orders, `receive` takes their benefits."""

    def __init__(self, costs: Sequence[int], parameters: SearchParameters) -> None:
        self.tree = PolicyTree(costs, parameters)
        self._node = ROOT

    @property
    def finished(self) -> bool:
        """Whether the iterations are used up or nothing is left to expand."""
        return self.tree.closed[ROOT] or self.tree.iterations >= self.tree.parameters.iterations

    def pending(self) -> list[ChunkOrder]:
        """The orders of the next expansion, all to be scored in one batch."""
        self._node = select(self.tree)
        order = self.tree.order[self._node]
        return [(*order, index) for index in self.tree.appendable(self._node)]

    def receive(self, benefits: Sequence[float]) -> None:
        """Finish the iteration with the benefits of the pending orders."""
        update(self.tree, expand(self.tree, self._node, benefits))


def _queue(tree: PolicyTree, node: int, children: range) -> None:
    """Queue the open children by their promise; the root's children first tell how far scores lie apart."""
    if node == ROOT:
        singles = [tree.benefit[child] for child in children if tree.benefit[child] != -float("inf")]
        tree.spread = pstdev(singles) if singles else 0.0
    for child in children:
        if not tree.closed[child]:
            heappush(tree.queue, (-tree.promise(child), child))


def _most_promising(tree: PolicyTree) -> int:
    # A node leaves the queue only when it is found expanded, so that selecting twice selects the same node.
    while tree.queue and tree.children[tree.queue[0][1]] is not None:
        heappop(tree.queue)
    return tree.queue[0][1] if tree.queue else ROOT
