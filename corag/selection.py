"""From candidates and configurations to the chunks of each prompt: many searches in lockstep."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from corag.order_scorer import OrderScorer, Scorers
from corag.search import (
    Problem,
    SearchFailure,
    SearchParameters,
    SearchResult,
    Strategy,
    search,
    search_many,
)
from corag.search.lockstep import BatchBenefit, Request
from corag.settings import SearchSettings
from corag.values import Candidate, Chunk, ChunkOrder, Configuration


@dataclass(frozen=True, slots=True)
class Selection:
    """One search to do: a question, its candidates and the configuration. No strategy means the configured one."""

    qid: str
    query: str
    candidates: Sequence[Candidate]
    configuration: Configuration
    strategy: Strategy | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a search chose: the chunks in prompt order. `error` is a one-line reason where it failed."""

    chunks: tuple[Chunk, ...]
    benefit: float
    scored: int
    stopped: str
    error: str | None = None


def select(selections: Sequence[Selection], scorers: Scorers, settings: SearchSettings, seed: int = 0) -> list[Chosen]:
    """One choice a selection, in their order; `seed` is that of the strategy `shuffle`.

    Tree searches run in lockstep, and those that differ in their iterations only share one tree. The trees of a
    question under one reranker share every score.
    """
    chosen: dict[int, Chosen] = {}
    trees: dict[tuple, list[int]] = {}
    for index, selection in enumerate(selections):
        scope = (selection.qid, selection.configuration.reranker)
        scorers[selection.configuration.reranker].add_query(scope, selection.query, selection.candidates)
        strategy = selection.strategy or settings.strategy
        if strategy == "mcts":
            costs, explore = (
                selection.configuration.cost_coefficient,
                selection.configuration.exploration_coefficient,
            )
            trees.setdefault((*scope, costs, explore), []).append(index)
        else:
            chosen[index] = _search_alone(selection, strategy, scorers, settings, seed)
    for index, found in _search_trees(selections, list(trees.values()), scorers, settings).items():
        chosen[index] = found
    return [chosen[index] for index in range(len(selections))]


def parameters_of(configuration: Configuration, settings: SearchSettings) -> SearchParameters:
    """The settings of one search."""
    return SearchParameters(
        budget=settings.budget,
        iterations=configuration.iterations,
        cost_coefficient=configuration.cost_coefficient,
        exploration_coefficient=configuration.exploration_coefficient,
        backup=settings.backup,
        selection=settings.selection,
        max_chunks=settings.max_chunks,
    )


def _search_trees(
    selections: Sequence[Selection], groups: Sequence[Sequence[int]], scorers: Scorers, settings: SearchSettings
) -> dict[int, Chosen]:
    problems = []
    for members in groups:
        first = selections[members[0]]
        checkpoints = tuple(sorted({selections[index].configuration.iterations for index in members}))
        problems.append(
            Problem(
                (first.qid, first.configuration.reranker),
                tuple(candidate.cost for candidate in first.candidates),
                parameters_of(first.configuration, settings),
                checkpoints,
            )
        )
    chosen = {}
    for members, found in zip(groups, search_many(problems, _pooled(scorers)), strict=True):
        for index in members:
            if isinstance(found, SearchFailure):
                chosen[index] = Chosen((), 0.0, found.scored, "failed", found.reason)
            else:
                result = found[selections[index].configuration.iterations]
                chosen[index] = _chosen(selections[index], result)
    return chosen


def _pooled(scorers: Scorers) -> BatchBenefit:
    """Sends each request to the scorer of its reranker, all requests of one reranker together."""

    def benefit(requests: Sequence[Request]) -> tuple[list[float], dict[Hashable, str]]:
        benefits: dict[Request, float] = {}
        failed: dict[Hashable, str] = {}
        by_reranker: dict[str, list[Request]] = {}
        for scope, order in requests:
            assert isinstance(scope, tuple)
            by_reranker.setdefault(scope[1], []).append((scope, order))
        for name, own in sorted(by_reranker.items()):
            worths, broken = scorers[name](own)
            benefits.update(zip(own, worths, strict=True))
            failed.update(broken)
        return [benefits[request] for request in requests], failed

    return benefit


class _ScorerError(Exception):
    """The reranker failed on the one query that is being searched."""


def _search_alone(
    selection: Selection, strategy: Strategy, scorers: Scorers, settings: SearchSettings, seed: int
) -> Chosen:
    scope = (selection.qid, selection.configuration.reranker)
    scorer: OrderScorer = scorers[selection.configuration.reranker]

    def benefit(orders: Sequence[ChunkOrder]) -> Sequence[float]:
        benefits, failed = scorer([(scope, order) for order in orders])
        if failed:
            raise _ScorerError(failed[scope])
        return benefits

    costs = [candidate.cost for candidate in selection.candidates]
    places = [(candidate.chunk.doc_id, candidate.chunk.position) for candidate in selection.candidates]
    try:
        parameters = replace(parameters_of(selection.configuration, settings), seed=seed)
        result = search(costs, benefit, parameters, strategy, places)
    except _ScorerError as error:
        return Chosen((), 0.0, 0, "failed", str(error))
    return _chosen(selection, result)


def _chosen(selection: Selection, result: SearchResult) -> Chosen:
    chunks = tuple(selection.candidates[index].chunk for index in result.order)
    error = None
    if result.nan and result.nan == result.scored:
        error = f"reranker {selection.configuration.reranker} gave no finite score for any order"
    return Chosen(() if error else chunks, result.benefit, result.scored, result.stopped, error)
