"""One question answered by one method: what it was given, what it said, and how that compares with the references."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from corag.metrics import best_rouge, exact_match, token_f1
from corag.retrieval_metrics import recall_at
from corag.settings import MetricSettings
from corag.values import Chunk, Generation, Question


@dataclass(frozen=True, slots=True)
class Context:
    """What a method gives the generator for one question, in prompt order.

    reranker_pairs: distinct orders that its search scored. error: a one-line reason where it found none.
    """

    chunks: tuple[Chunk, ...]
    reranker: str
    reranker_pairs: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of each stage, measured without any memory; NaN where the question was not timed."""

    embed: float = float("nan")
    retrieve: float = float("nan")
    search: float = float("nan")
    generate: float = float("nan")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One question answered by one method.

    Scores are None where there is no reference; a failure counts 0. `recall` is that of the context's documents among
    the relevant ones, None where none is known. Latencies are those of `Latency`.
    """

    qid: str
    question: str
    kind: str
    language: str
    method: str
    answer: str | None
    error: str | None
    rouge_1: float | None
    rouge_2: float | None
    rouge_l: float | None
    exact_match: float | None
    token_f1: float | None
    recall: float | None
    context_tokens: int
    prompt_tokens: int
    answer_tokens: int
    chunk_ids: tuple[str, ...]
    reranker: str
    reranker_pairs: int
    llm_calls: int
    latency_embed_ms: float
    latency_retrieve_ms: float
    latency_search_ms: float
    latency_generate_ms: float


def evaluated(
    question: Question,
    method: str,
    context: Context,
    generation: Generation | None,
    metrics: MetricSettings,
    copies: Mapping[str, Collection[str]],
    latency: Latency,
) -> Evaluated:
    """The row of one question and method; no generation means that none was asked for.

    `copies` names the documents that share a chunk's text: any of them counts as found.
    """
    error = context.error or (generation.error if generation else None)
    answer = generation.text if generation is not None and error is None else None
    said = (answer or "")[: metrics.max_answer_characters]
    score = best_rouge(question.answers, said, metrics)
    chunks = () if context.error else context.chunks
    return Evaluated(
        qid=question.qid,
        question=question.question,
        kind=question.metadata.get("kind", ""),
        language=question.metadata.get("language", ""),
        method=method,
        answer=answer,
        error=error,
        rouge_1=score.rouge_1 if score else None,
        rouge_2=score.rouge_2 if score else None,
        rouge_l=score.rouge_l if score else None,
        exact_match=exact_match(question.answers, said) if score else None,
        token_f1=token_f1(question.answers, said) if score else None,
        recall=context_recall(chunks, question.relevant_ids, copies),
        context_tokens=sum(chunk.tokens for chunk in chunks),
        prompt_tokens=generation.prompt_tokens if generation else 0,
        answer_tokens=generation.answer_tokens if generation else 0,
        chunk_ids=tuple(chunk.chunk_id for chunk in chunks),
        reranker=context.reranker,
        reranker_pairs=context.reranker_pairs,
        llm_calls=int(generation is not None),
        latency_embed_ms=latency.embed,
        latency_retrieve_ms=latency.retrieve,
        latency_search_ms=latency.search,
        latency_generate_ms=latency.generate,
    )


def context_recall(
    chunks: Sequence[Chunk], relevant_ids: Sequence[str], copies: Mapping[str, Collection[str]]
) -> float | None:
    """The share of the relevant documents that the context has a chunk of; None where none is known."""
    if not relevant_ids:
        return None
    held = [{chunk.doc_id, *copies.get(chunk.text, ())} for chunk in chunks]
    return recall_at(held, relevant_ids, len(held))
