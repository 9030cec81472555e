"""From questions to prompts: embed, retrieve, choose a configuration, search; a poison question fails alone."""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from corag.agents import Choice
from corag.answer_parts import AnswerParts, Prepared, unprepared
from corag.answer_rows import AnswerRow, Latency
from corag.errors import CoragError
from corag.prompts import build_prompt
from corag.retrieval import Retrieval
from corag.selection import Selection
from corag.values import Question

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger(__name__)

NO_CANDIDATES = "nothing was retrieved"
NOTHING_WORTH_ITS_COST = "no chunk order is worth its cost"


def prepare(questions: Sequence[Question], parts: AnswerParts) -> list[Prepared]:
    """The questions embedded, retrieved, searched and prompted, in their order.

    Where a stage raises, each question is tried alone, so that only the culprit fails.

    Raises:
        CoragError: a part is missing or broken for every question, such as the store.
    """
    try:
        return _prepare_together(questions, parts)
    except CoragError:
        raise
    except Exception as error:  # noqa: BLE001 - any model may raise anything: it is reported with its question
        if len(questions) > 1:
            return [one for question in questions for one in prepare([question], parts)]
        reason = f"{type(error).__name__}: {error}"
        logger.warning("%s: %s", questions[0].qid, reason)
        return [unprepared(questions[0], reason, parts)]


def question_vectors(retrievals: Sequence[Retrieval], dimension: int) -> "np.ndarray":
    """What an agent reads of each question, float32 [n, d]; a row of NaN for a question that has no vector.

    That is its vector, and behind it the mean of its candidates' vectors where the retrievals hold it. `dimension` is
    the width where no question has a vector.
    """
    import numpy as np

    inputs = [
        None if one.vector is None else one.vector if one.mean is None else np.concatenate([one.vector, one.mean])
        for one in retrievals
    ]
    width = next((len(one) for one in inputs if one is not None), dimension)
    missing = np.full(width, np.nan, dtype=np.float32)
    rows = [missing if one is None else one for one in inputs]
    return np.stack(rows) if rows else np.empty((0, width), dtype=np.float32)


def _prepare_together(questions: Sequence[Question], parts: AnswerParts) -> list[Prepared]:
    clock = _Clock(len(questions))
    parts.embed([question.question for question in questions])
    clock.lap("embed")
    retrievals = parts.retrieve(questions)
    clock.lap("retrieve")
    choices = parts.agent.choose(question_vectors(retrievals, parts.agent.dimension))
    grounds, kept = _unchanged(questions, retrievals, choices, parts)
    begun = [
        Prepared(question, choice, error=retrieval.error, kept=kept.get(ground), grounds=ground)
        for question, choice, retrieval, ground in zip(questions, choices, retrievals, grounds, strict=True)
    ]
    searched = [index for index, one in enumerate(begun) if one.error is None and one.kept is None]
    selections = [
        Selection(one.question.qid, one.question.question, retrievals[index].candidates, one.choice.configuration)
        for index, one in ((index, begun[index]) for index in searched)
    ]
    found = dict(zip(searched, parts.search(selections), strict=True))
    clock.lap("search")
    latency = clock.latency()
    prepared = []
    for index, one in enumerate(begun):
        chosen = found.get(index)
        one = replace(one, latency=latency)
        if chosen is not None and chosen.error is not None:
            one = replace(one, error=chosen.error)
        elif chosen is not None and not chosen.chunks:
            why = NOTHING_WORTH_ITS_COST if retrievals[index].candidates else NO_CANDIDATES
            one = replace(one, chosen=chosen, empty=why)
        elif chosen is not None:
            texts = [chunk.text for chunk in chosen.chunks]
            one = replace(one, chosen=chosen, prompt=build_prompt(one.question.question, texts, parts.prompt))
        prepared.append(one)
    return prepared


def _unchanged(
    questions: Sequence[Question], retrievals: Sequence[Retrieval], choices: Sequence[Choice], parts: AnswerParts
) -> tuple[list[str], dict[str, AnswerRow]]:
    """The grounds of each question's answer, and the kept rows by grounds; empty grounds where none are kept."""
    if parts.kept is None:
        return [""] * len(questions), {}
    grounds = [
        "" if retrieval.error else parts.kept.grounds(question, retrieval.candidates, choice.configuration)
        for question, retrieval, choice in zip(questions, retrievals, choices, strict=True)
    ]
    return grounds, parts.kept.find([one for one in grounds if one])


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
