"""Many trees advance together: each step pools the orders that all active trees want scored into one batch."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from corag.search.mcts import TreeSearch
from corag.search.parameters import SearchParameters, SearchResult
from corag.values import ChunkOrder

Request = tuple[Hashable, ChunkOrder]
"""(scope, order): trees of one scope, one (query, reranker), share every score."""

BatchBenefit = Callable[[Sequence[Request]], tuple[Sequence[float], Mapping[Hashable, str]]]
"""Benefits [n] of distinct requests, and the scopes that failed with a reason; a failed scope's benefits are unused."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One tree: its scope, its costs, settings and checkpoints of iterations."""

    scope: Hashable
    costs: tuple[int, ...]
    parameters: SearchParameters
    checkpoints: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SearchFailure:
    """Why a problem has no result, and how many orders had been scored by then."""

    reason: str
    scored: int


def search_many(problems: Sequence[Problem], benefit: BatchBenefit) -> list[dict[int, SearchResult] | SearchFailure]:
    """Per problem its result at every checkpoint, or its failure; identical to running one tree after the other.

    Each round asks `benefit` once, for the distinct orders that no tree of their scope has been told before. A scope
    that fails ends its own problems only.
    """
    states = [_State(problem) for problem in problems]
    known: dict[Request, float] = {}
    failed: dict[Hashable, str] = {}
    active = [state for state in states if not state.done()]
    while active:
        wanted: dict[Request, None] = {}
        for state in active:
            for request in state.ask():
                if request not in known:
                    wanted[request] = None
        if wanted:
            requests = list(wanted)
            benefits, broken = benefit(requests)
            failed.update(broken)
            known.update(zip(requests, benefits, strict=True))
        for state in active:
            if state.problem.scope in failed:
                state.failure = failed[state.problem.scope]
            else:
                state.receive(known)
        active = [state for state in active if state.failure is None and not state.done()]
    return [state.outcome() for state in states]


class _State:
    """One problem's tree and the results that have been read off it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        last = max(problem.checkpoints)
        self._search = TreeSearch(problem.costs, replace(problem.parameters, iterations=last))
        self._results: dict[int, SearchResult] = {}
        self._read_off()
        self._asked: list[Request] = []
        self.failure: str | None = None

    def done(self) -> bool:
        if not self._search.finished:
            return False
        for checkpoint in self.problem.checkpoints:
            self._results.setdefault(checkpoint, self._search.tree.result())
        return True

    def ask(self) -> list[Request]:
        self._asked = [(self.problem.scope, order) for order in self._search.pending()]
        return self._asked

    def receive(self, known: Mapping[Request, float]) -> None:
        self._search.receive([known[request] for request in self._asked])
        self._read_off()

    def _read_off(self) -> None:
        reached = self._search.tree.iterations
        if reached in self.problem.checkpoints:
            self._results[reached] = self._search.tree.result()

    def outcome(self) -> dict[int, SearchResult] | SearchFailure:
        if self.failure is not None:
            return SearchFailure(self.failure, len(self._search.tree.order) - 1)
        return self._results
