"""Which questions a run that may not reach its end answers first, and in which batches."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence

from corag.answer_parts import Retriever
from corag.errors import CoragError
from corag.values import Question


def batches(questions: Sequence[Question], finished: Collection[str], size: int) -> Iterator[list[Question]]:
    """The questions that are not `finished`, in batches cut from all of them.

    So a resumed run meets the same batches as an uninterrupted one, and a model whose answers depend on their batch
    gives the same ones.
    """
    for start in range(0, len(questions), size):
        batch = [question for question in questions[start : start + size] if question.qid not in finished]
        if batch:
            yield batch


def most_promising(
    questions: Sequence[Question],
    retrieve: Retriever,
    size: int,
    until: float = float("inf"),
    clock: Callable[[], float] = time.monotonic,
) -> list[Question]:
    """The questions by the similarity of their best candidate, the greatest first; equal ones in their order.

    A question close to a chunk is likely to be answered from it, and to embed and look up costs little beside a search
    and an answer. What could not be looked up `until` that moment of `clock` comes last, as it stands.
    """
    promise: dict[str, float] = {}
    for start in range(0, len(questions), size):
        if clock() >= until:
            break
        batch = questions[start : start + size]
        for question, best in zip(batch, _best(batch, retrieve), strict=True):
            promise[question.qid] = best
    return sorted(questions, key=lambda question: -promise.get(question.qid, -2.0))


def _best(questions: Sequence[Question], retrieve: Retriever) -> list[float]:
    """The greatest similarity of each question's candidates, -1 where there is none."""
    try:
        retrievals = retrieve(questions)
    except CoragError:
        raise
    except Exception:  # noqa: BLE001 - the question fails, with its reason, when it is prepared
        if len(questions) > 1:
            return [best for question in questions for best in _best([question], retrieve)]
        return [-1.0]
    return [max((one.similarity for one in found.candidates), default=-1.0) for found in retrievals]
