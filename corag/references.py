"""References written by the generator from the relevant chunks: the paper's own protocol (§5.2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from corag.generation_memo import GenerationMemo
from corag.prompts import build_prompt
from corag.settings import PromptSettings
from corag.values import Chunk, Prompt, Question


def reference_prompts(
    questions: Sequence[Question], relevant: Mapping[str, Sequence[Chunk]], prompt: PromptSettings
) -> list[Prompt]:
    """What the generator is asked to write the reference of each question from its relevant chunks."""
    return [
        build_prompt(question.question, [chunk.text for chunk in relevant[question.qid]], prompt)
        for question in questions
    ]


def generated_references(
    questions: Sequence[Question],
    relevant: Mapping[str, Sequence[Chunk]],
    generations: GenerationMemo,
    prompt: PromptSettings,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Question]:
    """The questions with `answers` replaced by what the generator says from their relevant chunks.

    A question without relevant chunks, or whose generation failed or is empty, keeps no reference at all: a given
    reference is never mixed in silently.
    """
    ready = [question for question in questions if relevant.get(question.qid)]
    prompts = reference_prompts(ready, relevant, prompt)
    written = {
        question.qid: generation.text
        for question, generation in zip(ready, generations.generate(prompts, progress), strict=True)
        if generation.error is None and generation.text.strip()
    }
    return [
        replace(question, answers=(written[question.qid],) if question.qid in written else ()) for question in questions
    ]
