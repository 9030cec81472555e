"""Answers one batch of questions: embed, retrieve, choose, search, prompt, generate; a row for every question."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from corag.agents import Agent, Choice
from corag.answer_rows import AnswerRow, Citation, Latency, Status
from corag.generation_memo import GenerationMemo
from corag.prompts import build_prompt
from corag.retrieval import Retrieval
from corag.selection import Chosen, Selection
from corag.settings import PromptSettings
from corag.values import Generation, Question

if TYPE_CHECKING:
    import numpy as np

NO_CANDIDATES = "nothing was retrieved"
NOTHING_WORTH_ITS_COST = "no chunk order is worth its cost"

Retriever = Callable[[Sequence[Question]], list[Retrieval]]
Searcher = Callable[[Sequence[Selection]], list[Chosen]]


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """What answering needs, loaded at the edge: plain callables and the agent.

    `embed` is called first, with the questions' texts, so that the embedder's memory serves `retrieve`.
    """

    embed: Callable[[Sequence[str]], object]
    retrieve: Retriever
    agent: Agent
    search: Searcher
    generations: GenerationMemo
    prompt: PromptSettings
    generator: str
    budget: int


def answer_batch(
    questions: Sequence[Question], parts: AnswerParts, progress: Callable[[int], None] = lambda done: None
) -> list[AnswerRow]:
    """One row a question, in the order of `questions`; a question that fails does not touch the others."""
    clock = _Clock(len(questions))
    parts.embed([question.question for question in questions])
    clock.lap("embed")
    retrievals = parts.retrieve(questions)
    clock.lap("retrieve")
    choices = parts.agent.choose(question_vectors(retrievals, parts.agent.dimension))
    selections = [
        Selection(retrieval.qid, question.question, retrieval.candidates, choice.configuration)
        for question, retrieval, choice in zip(questions, retrievals, choices, strict=True)
    ]
    searchable = [index for index, retrieval in enumerate(retrievals) if retrieval.error is None]
    found = parts.search([selections[index] for index in searchable])
    chosen = dict(zip(searchable, found, strict=True))
    clock.lap("search")
    ready = [index for index in searchable if chosen[index].error is None and chosen[index].chunks]
    prompts = [
        build_prompt(questions[index].question, [chunk.text for chunk in chosen[index].chunks], parts.prompt)
        for index in ready
    ]
    generated = dict(zip(ready, parts.generations.generate(prompts), strict=True))
    clock.lap("generate")
    progress(len(questions))
    return [
        _row(question, choices[index], chosen.get(index), generated.get(index), retrievals[index], parts, clock)
        for index, question in enumerate(questions)
    ]


def question_vectors(retrievals: Sequence[Retrieval], dimension: int) -> "np.ndarray":
    """The questions' vectors float32 [n, d]; a row of NaN for a question that has none.

    `dimension` is the width where no question has a vector.
    """
    import numpy as np

    width = next((len(one.vector) for one in retrievals if one.vector is not None), dimension)
    missing = np.full(width, np.nan, dtype=np.float32)
    rows = [missing if one.vector is None else one.vector for one in retrievals]
    return np.stack(rows) if rows else np.empty((0, width), dtype=np.float32)


def _row(
    question: Question,
    choice: Choice,
    chosen: Chosen | None,
    generation: Generation | None,
    retrieval: Retrieval,
    parts: AnswerParts,
    clock: "_Clock",
) -> AnswerRow:
    configuration = choice.configuration
    chunks = chosen.chunks if chosen is not None and chosen.error is None else ()
    error = retrieval.error or (chosen.error if chosen else None) or (generation.error if generation else None)
    status: Status = "answered"
    if error is not None:
        status = "failed"
    elif generation is None:
        status = "no_context"
        error = NOTHING_WORTH_ITS_COST if retrieval.candidates else NO_CANDIDATES
    return AnswerRow(
        qid=question.qid,
        question=question.question,
        answer=generation.text if generation is not None and status == "answered" else None,
        status=status,
        error=" ".join(error.split()) if error else None,
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
        config_source=choice.source,
        agent_version=parts.agent.version if choice.source == "agent" else None,
        generator=parts.generator,
        latency_ms=clock.latency(),
    )


class _Clock:
    """Wall time per stage, divided evenly among the questions of the batch."""

    def __init__(self, questions: int) -> None:
        self._share = 1000.0 / max(1, questions)
        self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """Charge the time since the last lap to `stage`."""
        now = time.perf_counter()
        self._laps[stage] = (now - self._last) * self._share
        self._last = now

    def latency(self) -> Latency:
        """Milliseconds a question."""
        return Latency(**{stage: round(value, 3) for stage, value in self._laps.items()})
