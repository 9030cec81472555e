"""What an evaluation needs, from the configured parts: with their memory, and without any for the timing."""

from collections.abc import Sequence
from dataclasses import replace

from corag.agents import Agent
from corag.components import Components
from corag.embedders import CachedEmbedder
from corag.evaluation import EvaluationParts
from corag.generation_memo import GenerationMemo
from corag.memo import Memo
from corag.order_scorer import OrderScorer
from corag.retrieval import Retrieval, retrieve
from corag.retrieval_metrics import documents_by_text
from corag.selection import Chosen, Selection, select
from corag.values import Question


def evaluation_parts(parts: Components, agent: Agent) -> EvaluationParts:
    """The parts of an evaluation; nothing that was worked out before is worked out again."""
    config = parts.config
    return EvaluationParts(
        retrieve=lambda batch: retrieve(parts.store, parts.embedder, batch, config.retrieval),
        search=lambda selections: select(selections, parts.scorers(), config.search, config.seed),
        generations=parts.generations,
        agent=agent,
        fixed=parts.fixed,
        prompt=config.prompt,
        metrics=config.metrics,
        seed=config.seed,
        copies=documents_by_text(parts.chunks),
    )


def forgetful_parts(parts: Components, evaluation: EvaluationParts) -> EvaluationParts:
    """The same parts without any memory of vectors, scores and answers; models that are loaded stay so."""
    config = parts.config
    memo = Memo(None)
    embedder = CachedEmbedder(parts.embedder.inner, memo)

    def retrieve_anew(batch: Sequence[Question]) -> list[Retrieval]:
        return retrieve(parts.store, embedder, batch, config.retrieval)

    def search_anew(selections: Sequence[Selection]) -> list[Chosen]:
        table = memo.table("scores")
        scorers = {
            one.name: OrderScorer(parts.reranker(one.name), table, config.search.normalize) for one in config.rerankers
        }
        return select(selections, scorers, config.search, config.seed)

    generations = GenerationMemo(parts.generations.identity, lambda: parts.generator, memo.table("generations"))
    return replace(
        evaluation, retrieve=retrieve_anew, search=search_anew, generations=generations, embed=embedder.embed
    )
