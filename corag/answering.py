"""Answers questions one batch after the other; a row for every question, come what may."""

import logging
import time
from collections.abc import Sequence

from corag.answer_parts import AnswerParts, Prepared, finished_row
from corag.answer_prepare import prepare
from corag.answer_rows import AnswerRow
from corag.errors import CoragError
from corag.generators.base import failed
from corag.values import Generation, Prompt, Question

logger = logging.getLogger(__name__)


def answer_batch(questions: Sequence[Question], parts: AnswerParts) -> list[AnswerRow]:
    """One row a question, in the order of `questions`, stage after stage; a question that fails does no harm."""
    return answer_prepared(prepare(questions, parts), parts)


def answer_prepared(prepared: Sequence[Prepared], parts: AnswerParts) -> list[AnswerRow]:
    """The rows of `prepared`, in their order; the distinct prompts among them go to the language model together.

    The time of that call is divided evenly among its prompts.
    """
    prompts = list(dict.fromkeys(one.prompt for one in prepared if one.prompt is not None))
    start = time.perf_counter()
    generations = dict(zip(prompts, _generate(prompts, parts), strict=True))
    share = (time.perf_counter() - start) * 1000 / max(1, len(prompts))
    rows = [
        finished_row(one, parts) if one.prompt is None else finished_row(one, parts, generations[one.prompt], share)
        for one in prepared
    ]
    if parts.kept is not None:
        parts.kept.keep({one.grounds: row for one, row in zip(prepared, rows, strict=True) if one.grounds})
    return rows


def _generate(prompts: Sequence[Prompt], parts: AnswerParts) -> list[Generation]:
    """One generation a prompt; where the generator raises, each prompt is tried alone once more."""
    if not prompts:
        return []
    try:
        return parts.generations.generate(prompts)
    except CoragError:
        raise
    except Exception as error:  # noqa: BLE001 - any model may raise anything: it is reported with its question
        if len(prompts) > 1:
            return [one for prompt in prompts for one in _generate([prompt], parts)]
        logger.warning("the generator raised %s: %s", type(error).__name__, error)
        return [failed(f"generator: {type(error).__name__}: {error}")]
