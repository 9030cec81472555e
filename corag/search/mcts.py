"""The three steps of one iteration (paper Alg. 1-3): select, expand, update."""

from collections.abc import Sequence

from corag.search.parameters import SearchParameters
from corag.search.tree import NO_PARENT, ROOT, PolicyTree
from corag.values import ChunkOrder


def select(tree: PolicyTree) -> int:
    """The open node to expand next.

    `uct`: from the root to the open child of greatest utility, until a node that is not expanded. `best-first`: of all
    open nodes the one of greatest W − λ·cost/B. The lower candidate index, then the older node, wins a tie.
    """
    if tree.parameters.selection == "best-first":
        return _best_open(tree)
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


def _best_open(tree: PolicyTree) -> int:
    best, best_value = ROOT, -float("inf")
    for node in range(len(tree.order)):
        if tree.children[node] is None and not tree.closed[node]:
            value = tree.value(node)
            if value > best_value:
                best, best_value = node, value
    return best
