"""What answering needs, a question on its way through it, and the row that it ends in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from corag.agents import Agent, Choice
from corag.answer_reuse import KeptAnswers
from corag.answer_rows import AnswerRow, Citation, Latency, Status
from corag.embedders.base import clean
from corag.generation_memo import GenerationMemo
from corag.retrieval import Retrieval
from corag.selection import Chosen, Selection
from corag.settings import PromptSettings
from corag.values import Configuration, Generation, Prompt, Question

Retriever = Callable[[Sequence[Question]], list[Retrieval]]
Searcher = Callable[[Sequence[Selection]], list[Chosen]]


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """What answering needs, loaded at the edge: plain callables and the agent.

    `embed` is called first, with the questions' texts, so that the embedder's memory serves `retrieve`. `fixed` stands
    in the row of a question that never came as far as the agent. With `kept`, an answer whose grounds did not change
    is taken from there. `most_tokens` tells the most tokens that a prompt and its answer may take.
    """

    embed: Callable[[Sequence[str]], object]
    retrieve: Retriever
    agent: Agent
    search: Searcher
    generations: GenerationMemo
    prompt: PromptSettings
    generator: str
    budget: int
    fixed: Configuration
    kept: KeptAnswers | None = None
    most_tokens: Callable[[Prompt], int] = lambda prompt: 0


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question that has been searched for, or has ended before.

    Exactly one of these says how it goes on: `prompt` is what the language model is to answer, `error` why it failed,
    `empty` why it has no context, `kept` an earlier answer that still holds. `grounds` is the key under which its
    answer is kept for later nights; empty where none is.
    """

    question: Question
    choice: Choice
    chosen: Chosen | None = None
    prompt: Prompt | None = None
    error: str | None = None
    empty: str | None = None
    kept: AnswerRow | None = None
    grounds: str = ""
    latency: Latency = field(default_factory=Latency)


def unprepared(question: Question, reason: str, parts: AnswerParts) -> Prepared:
    """A question that failed before a configuration was chosen: its row shows the fixed one."""
    return Prepared(question, Choice(parts.fixed, "fixed", reason), error=reason)


def finished_row(
    one: Prepared, parts: AnswerParts, generation: Generation | None = None, milliseconds: float = 0.0
) -> AnswerRow:
    """The row of `one`, with what the language model made of its prompt in so many milliseconds."""
    agent_version = parts.agent.version if one.choice.source == "agent" else None
    latency = one.latency.model_copy(update={"generate": round(milliseconds, 3)})
    if one.kept is not None:
        changes = {
            "qid": one.question.qid,
            "question": clean(one.question.question),
            "config_source": one.choice.source,
            "agent_version": agent_version,
            "latency_ms": latency,
            "reused": True,
        }
        return one.kept.model_copy(update=changes)
    error = one.error or (generation.error if generation else None)
    status: Status = "failed" if error is not None else "no_context" if generation is None else "answered"
    told = error or one.empty
    configuration, chosen = one.choice.configuration, one.chosen
    chunks = chosen.chunks if chosen is not None else ()
    return AnswerRow(
        qid=one.question.qid,
        question=clean(one.question.question),
        answer=clean(generation.text) if generation is not None and status == "answered" else None,
        status=status,
        error=clean(" ".join(told.split())) if told else None,
        citations=tuple(
            Citation(chunk_id=chunk.chunk_id, doc_id=chunk.doc_id, start=chunk.start, end=chunk.end) for chunk in chunks
        ),
        context_tokens=sum(chunk.tokens for chunk in chunks),
        prompt_tokens=generation.prompt_tokens if generation else 0,
        answer_tokens=generation.answer_tokens if generation else 0,
        finish_reason=generation.finish_reason if generation and status == "answered" else None,
        budget=parts.budget,
        reranker=configuration.reranker,
        iterations=configuration.iterations,
        cost_coefficient=configuration.cost_coefficient,
        exploration_coefficient=configuration.exploration_coefficient,
        benefit=chosen.benefit if chunks and chosen else None,
        config_source=one.choice.source,
        agent_version=agent_version,
        generator=parts.generator,
        latency_ms=latency,
    )
