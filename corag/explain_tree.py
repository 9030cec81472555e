"""The policy tree as plain data, for the drawing of the explain page."""

import math
from collections.abc import Sequence
from typing import Any

from corag.explain import pruned, runner_up
from corag.search.tree import PolicyTree
from corag.values import Candidate

DIGITS = 6


def tree_data(tree: PolicyTree, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """The tree for JSON: settings, candidates, and per node what decided about it; None where a number has no value.

    A node's utility U = mean + explore − charge (Def. 4.2) is None while it is unvisited: then it is infinite.
    """
    settings = tree.parameters
    return {
        "budget": settings.budget,
        "selection": settings.selection,
        "best": tree.best,
        "runnerUp": runner_up(tree),
        "candidates": [{"id": one.chunk.chunk_id, "title": one.chunk.title, "tokens": one.cost} for one in candidates],
        "nodes": [_node(tree, node) for node in range(len(tree.order))],
    }


def _node(tree: PolicyTree, node: int) -> dict[str, Any]:
    visits = tree.visits[node]
    mean = tree.reward[node] / visits if visits else None
    utility = tree.utility(node)
    return {
        "parent": tree.parent[node],
        "order": list(tree.order[node]),
        "visits": visits,
        "value": _number(tree.value(node)),
        "benefit": _number(tree.benefit[node]),
        "tokens": tree.cost[node],
        "utility": _number(utility),
        "mean": _number(mean),
        "explore": _number(utility - mean + tree.charge[node]) if mean is not None else None,
        "charge": _number(tree.charge[node]),
        "promise": _number(tree.promise(node)) if tree.parameters.selection == "best-first" else None,
        "expanded": tree.children[node] is not None,
        "pruned": [list(one) for one in pruned(tree, node)],
    }


def _number(value: float | None) -> float | None:
    return round(value, DIGITS) if value is not None and math.isfinite(value) else None
