"""What decided one answer: candidates, policy tree, the order chosen and the one it beat, the prompt, the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from corag.agents import Choice
from corag.errors import ModelError
from corag.order_scorer import OrderScorer
from corag.search.mcts import TreeSearch
from corag.search.parameters import DECIMALS, SearchParameters
from corag.search.tree import NO_PARENT, ROOT, PolicyTree
from corag.values import Candidate, Chunk, ChunkOrder, Generation, Prompt


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that decided one answer.

    `singles` holds W of each candidate alone (NaN: no score). Where no order is worth its cost nothing is asked, and
    `prompt` and `generation` are None. `parts` are the tokens of the prompt by what they are spent on (see
    `corag.explain_prompt`). `documents` holds the texts of the cited documents by id. `note` says what of the
    configuration this explanation leaves out.
    """

    question: str
    choice: Choice
    candidates: Sequence[Candidate]
    singles: Sequence[float]
    tree: PolicyTree
    prompt: Prompt | None = None
    generation: Generation | None = None
    parts: Sequence[tuple[str, int]] = ()
    documents: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def chunks(self) -> list[Chunk]:
        """The chunks of the context, in its order; the first is cited as [1]."""
        return [self.candidates[index].chunk for index in self.tree.order[self.tree.best]]


def grow_tree(
    query: str, candidates: Sequence[Candidate], scorer: OrderScorer, parameters: SearchParameters
) -> tuple[PolicyTree, list[float]]:
    """The finished policy tree of one question, and W of each single candidate (NaN where it has none).

    Raises:
        ModelError: the reranker failed on the question, or gave no finite score for any order.
    """
    scorer.add_query("explain", query, candidates)
    search = TreeSearch([candidate.cost for candidate in candidates], parameters)
    while not search.finished:
        benefits, failed = scorer([("explain", order) for order in search.pending()])
        if failed:
            raise ModelError(f"{failed['explain']}; try another reranker with --set search.fixed.reranker=NAME")
        search.receive(benefits)
    tree = search.tree
    if tree.nan and tree.nan == len(tree.order) - 1:
        raise ModelError("the reranker gave no finite score for any order; run `corag doctor`")
    singles, _ = scorer([("explain", (index,)) for index in range(len(candidates))])
    return tree, singles


def marginal_benefits(tree: PolicyTree) -> list[float]:
    """What each chunk of the best order added to W when it was appended."""
    node, gains = tree.best, []
    while tree.parent[node] != NO_PARENT:
        gains.append(tree.benefit[node] - tree.benefit[tree.parent[node]])
        node = tree.parent[node]
    return gains[::-1]


def best_nodes(tree: PolicyTree, shown: int) -> list[int]:
    """The `shown` nodes of greatest value by the rule of the search: the chosen order, the runner-up, and so on."""
    return sorted(
        range(len(tree.order)),
        key=lambda node: (-round(tree.value(node), DECIMALS), len(tree.order[node]), tree.order[node]),
    )[:shown]


def runner_up(tree: PolicyTree) -> int | None:
    """The node that would have been chosen without the chosen one; None where the tree holds one order only."""
    first_two = best_nodes(tree, 2)
    return first_two[1] if len(first_two) == 2 else None


def pruned(tree: PolicyTree, node: int) -> list[tuple[int, int]]:
    """The unused candidates that do not fit behind the order of `node`, with the tokens that each is too long by."""
    left = tree.parameters.budget - tree.cost[node]
    return [
        (index, price - left)
        for index, price in enumerate(tree.costs)
        if price > left and index not in tree.order[node]
    ]


def order_name(order: ChunkOrder) -> str:
    """An order by the numbers of its candidates: `#3 → #1`."""
    return " → ".join(f"#{index}" for index in order) or "empty order"


def why_search_ended(tree: PolicyTree) -> str:
    """Why no further order was scored, in a sentence."""
    if not tree.costs:
        return "The retrieval found no candidates, so there was nothing to search."
    if not tree.iterations:
        return f"No candidate fits the budget of {tree.parameters.budget} tokens, so there was nothing to search."
    if tree.closed[ROOT]:
        return (
            f"After {_times(tree.iterations)} nothing was left to expand: every order within the budget of "
            f"{tree.parameters.budget} tokens is scored."
        )
    waiting = sum(children is None and not closed for children, closed in zip(tree.children, tree.closed, strict=True))
    return (
        f"The configuration's {_times(tree.iterations)} were used up; {waiting} orders could still have been extended."
    )


def why_order_ends(tree: PolicyTree) -> str:
    """Why no further chunk was appended to the chosen order, in a sentence."""
    node = tree.best
    children = tree.children[node]
    left = tree.parameters.budget - tree.cost[node]
    if not tree.appendable(node):
        if len(tree.order[node]) == len(tree.costs):
            return "Every candidate is in it."
        return f"The {left} tokens that are left of the budget hold none of the other candidates."
    if children is None:
        return "The search ended before any extension of it was scored."
    nearest = min(children, key=lambda child: (-tree.value(child), child))
    gain = tree.benefit[nearest] - tree.benefit[node]
    price = tree.charge[nearest] - tree.charge[node]
    if gain == float("-inf"):
        return "The reranker gave no score to any extension of it."
    return (
        f"The best extension, #{tree.order[nearest][-1]}, changes W by {gain:+.3f} and costs {price:.3f} "
        f"({tree.costs[tree.order[nearest][-1]]} tokens at λ): no extension makes it more valuable."
    )


def _times(iterations: int) -> str:
    return "1 iteration" if iterations == 1 else f"{iterations} iterations"
