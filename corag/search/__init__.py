"""Search for the chunk order of greatest W − λ·cost/B within the budget (paper §4): indices, costs, benefits only."""

from collections.abc import Sequence

from corag.search.lockstep import Problem, SearchFailure, search_many
from corag.search.parameters import Benefit, SearchParameters, SearchResult, Strategy
from corag.search.strategies import branch_and_bound, exhaustive, greedy, naive, rearranged

__all__ = [
    "Benefit",
    "Problem",
    "SearchFailure",
    "SearchParameters",
    "SearchResult",
    "Strategy",
    "search",
    "search_checkpoints",
    "search_many",
]


def search(
    costs: Sequence[int],
    benefit: Benefit,
    parameters: SearchParameters,
    strategy: Strategy = "mcts",
    places: Sequence[tuple[str, int]] = (),
) -> SearchResult:
    """The order of greatest W − λ·cost/B within the budget; () if none beats the empty one.

    `costs` are the candidates' tokens. `document-order` and `shuffle` rearrange what the tree search finds and need
    `places`, each candidate's (document, position). No returned order exceeds the budget or repeats a candidate.
    """
    if strategy == "mcts" or all(price > parameters.budget for price in costs):
        # Where no candidate can be taken, the tree says why.
        return search_checkpoints(costs, benefit, parameters, [parameters.iterations])[parameters.iterations]
    if strategy in ("document-order", "shuffle"):
        found = search(costs, benefit, parameters)
        return rearranged(found, places, costs, benefit, parameters, shuffle=strategy == "shuffle")
    ways = {"exhaustive": exhaustive, "branch-and-bound": branch_and_bound, "greedy": greedy, "naive": naive}
    return ways[strategy](costs, benefit, parameters)


def search_checkpoints(
    costs: Sequence[int], benefit: Benefit, parameters: SearchParameters, checkpoints: Sequence[int]
) -> dict[int, SearchResult]:
    """The result after each number of iterations in `checkpoints`, from one tree run to the largest of them.

    The tree after ten iterations is a prefix of the tree after twenty, so each result equals a search of its own.
    """
    problem = Problem("", tuple(costs), parameters, tuple(checkpoints))
    (found,) = search_many([problem], lambda requests: (list(benefit([order for _, order in requests])), {}))
    assert not isinstance(found, SearchFailure)
    return found
