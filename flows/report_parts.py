"""What an evaluation needs, from the configured parts: with their memory, and without any for the timing."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from corag.agents import Agent
from corag.components import Components
from corag.embedders import CachedEmbedder
from corag.evaluation import EvaluationParts, RaptorContexts
from corag.evaluation_rows import Context
from corag.generation_memo import GenerationMemo
from corag.memo import Memo
from corag.oracle import best_configurations
from corag.order_scorer import OrderScorer
from corag.raptor import build_tree, tree_chunks, tree_contexts
from corag.retrieval import Retrieval, retrieve
from corag.retrieval_metrics import documents_by_text
from corag.selection import Chosen, Selection, select
from corag.values import Question

logger = logging.getLogger(__name__)


def evaluation_parts(parts: Components, agent: Agent, questions: Sequence[Question] = ()) -> EvaluationParts:
    """The parts of an evaluation; nothing that was worked out before is worked out again.

    `questions` are those to look for in the last sweep, for the method `oracle`.
    """
    config = parts.config
    names = [reranker.name for reranker in config.rerankers]
    return EvaluationParts(
        retrieve=lambda batch: retrieve(parts.store, parts.embedder, batch, config.retrieval, agent.candidate_mean),
        search=lambda selections: select(selections, parts.scorers(), config.search, config.seed),
        generations=parts.generations,
        agent=agent,
        fixed=parts.fixed,
        prompt=config.prompt,
        metrics=config.metrics,
        seed=config.seed,
        oracle=best_configurations(parts.workspace.sweep, questions, names) if questions else {},
        copies=documents_by_text(parts.chunks),
    )


def raptor_contexts(parts: Components, retrievals: Sequence[Retrieval]) -> RaptorContexts:
    """What the method `raptor` gives a question: nodes of a tree that is built here, over the chunks of the store."""
    config = parts.config
    settings = config.evaluation.raptor
    chunks = tree_chunks(parts.chunks, retrievals, settings.max_chunks, config.seed)
    logger.info("raptor: summarising %d of %d chunks", len(chunks), len(parts.chunks))
    tree = build_tree(
        chunks,
        parts.embedder.embed,
        parts.tokenizer,
        parts.generations,
        settings,
        system=config.prompt.system,
        seed=config.seed,
    )
    logger.info("raptor: a tree of %d nodes, %d summaries, %d failed", len(tree.nodes), tree.summaries, tree.failed)

    def contexts(asked: Sequence[Retrieval]) -> list[Context]:
        return tree_contexts(tree, asked, config.search.budget)

    return contexts


def forgetful_parts(parts: Components, evaluation: EvaluationParts) -> EvaluationParts:
    """The same parts without any memory of vectors, scores and answers; models that are loaded stay so."""
    config = parts.config
    memo = Memo(None)
    embedder = CachedEmbedder(parts.embedder.inner, memo)

    def retrieve_anew(batch: Sequence[Question]) -> list[Retrieval]:
        return retrieve(parts.store, embedder, batch, config.retrieval, evaluation.agent.candidate_mean)

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
