"""How long each stage takes for one question, measured without any memory of earlier results."""

import itertools
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from corag.evaluation import EvaluationParts, ask, asked_of, contexts_of, generate_answers
from corag.evaluation_rows import Latency
from corag.values import Question

T = TypeVar("T")


def time_methods(
    questions: Sequence[Question],
    methods: Sequence[str],
    fresh: Callable[[], EvaluationParts],
    progress: Callable[[int], None] = lambda done: None,
) -> dict[tuple[str, str], Latency]:
    """The milliseconds of each method's stages, by method and qid, for questions that are asked one by one.

    `fresh` gives parts that remember nothing; the models stay loaded. Every method is asked the first question twice,
    so that what is loaded at first use is not measured.
    """
    if not questions:
        return {}
    for method in methods:
        _time_one(questions[0], method, fresh())
    found = {}
    for question in questions:
        for method in methods:
            latency = _time_one(question, method, fresh())
            if latency is not None:
                found[method, question.qid] = latency
            progress(1)
    return found


def _time_one(question: Question, method: str, parts: EvaluationParts) -> Latency | None:
    start = time.perf_counter()
    parts.embed([question.question])
    embedded = time.perf_counter()
    asked = asked_of(method, ask([question], parts), parts)
    retrieved = time.perf_counter()
    if not asked.questions:
        return None
    contexts = contexts_of(method, asked, parts)
    searched = time.perf_counter()
    generate_answers(asked.questions, contexts, parts)
    laps = (start, embedded, retrieved, searched, time.perf_counter())
    return Latency(*(1000 * (after - before) for before, after in itertools.pairwise(laps)))
