"""Headroom: does ROUGE-L rise when the context is right? A sweep without it would label noise."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corag.errors import HeadroomError
from corag.generation_memo import GenerationMemo
from corag.metrics import Interval, best_rouge, bootstrap
from corag.prompts import build_prompt
from corag.settings import MetricSettings, PromptSettings
from corag.values import Chunk, Prompt, Question


@dataclass(frozen=True, slots=True)
class Headroom:
    """ROUGE-L with the relevant chunks, with random ones and with none, and the paired differences."""

    relevant: float
    random: float
    none: float
    over_none: Interval
    over_random: Interval

    def __str__(self) -> str:
        return (
            f"headroom {self.over_none} over {self.over_none.n} questions (ROUGE-L with the relevant chunks "
            f"{self.relevant:.3f}, random chunks {self.random:.3f}, no context {self.none:.3f})"
        )


@dataclass(frozen=True, slots=True)
class HeadroomCase:
    """One question with references and the two contexts to compare."""

    question: Question
    references: tuple[str, ...]
    relevant: Sequence[Chunk]
    random: Sequence[Chunk]


def headroom_prompts(cases: Sequence[HeadroomCase], prompt: PromptSettings) -> list[Prompt]:
    """Three prompts a case: with the relevant chunks, with the random ones, and without any."""
    return [
        build_prompt(case.question.question, [chunk.text for chunk in context], prompt)
        for case in cases
        for context in (case.relevant, case.random, ())
    ]


def measure_headroom(
    cases: Sequence[HeadroomCase],
    generations: GenerationMemo,
    prompt: PromptSettings,
    metrics: MetricSettings,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Headroom:
    """Answer each case with its relevant chunks, with random chunks and with no context, and compare ROUGE-L.

    Questions of which a generation failed, or that have no usable reference, are left out of all three means.

    Raises:
        HeadroomError: no case could be measured.
    """
    generated = generations.generate(headroom_prompts(cases, prompt), progress)
    rows: list[tuple[float, float, float]] = []
    for index, case in enumerate(cases):
        trio = generated[3 * index : 3 * index + 3]
        if any(generation.error is not None for generation in trio):
            continue
        scores = [best_rouge(case.references, generation.text, metrics) for generation in trio]
        if all(score is not None for score in scores):
            with_relevant, with_random, with_none = (score.rouge_l for score in scores if score is not None)
            rows.append((with_relevant, with_random, with_none))
    if not rows:
        raise HeadroomError(
            "headroom could not be measured: no sampled question has a reference, a relevant document in the store "
            "and an answer; give `answers` and `relevant_ids`, check the generator, or pass --force to skip"
        )
    count = len(rows)
    return Headroom(
        relevant=sum(row[0] for row in rows) / count,
        random=sum(row[1] for row in rows) / count,
        none=sum(row[2] for row in rows) / count,
        over_none=bootstrap([row[0] - row[2] for row in rows], seed=seed),
        over_random=bootstrap([row[0] - row[1] for row in rows], seed=seed),
    )


def require_headroom(headroom: Headroom, minimum: float) -> None:
    """Refuse a data set whose headroom interval reaches down to `minimum`.

    Raises:
        HeadroomError: with the figures and what to do.
    """
    if headroom.over_none.low <= minimum:
        raise HeadroomError(
            f"{headroom}: the interval reaches down to sweep.min_headroom ({minimum}), so labels would be noise; "
            "set sweep.references=generated, ask more factual questions, take a stronger generator, or pass --force"
        )
