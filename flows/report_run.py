"""What an evaluation says of its references, and how it is kept as a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from corag.components import Components
from corag.evaluation_methods import AGENT, ORACLE, Asked
from corag.values import Question
from corag.words import words
from flows.sweep import with_references
from flows.sweep_planning import relevant_chunks
from training.registry import connect, log_evaluation_run

HEADLINE = ("rouge_l", "gain", "context_tokens", "rouge_l_per_100_tokens", "recall", "n_failed")
"""The columns of the table of methods that a run keeps as metrics."""


def with_configured_references(parts: Components, questions: list[Question]) -> list[Question]:
    """The questions with their own references, or with those that the generator writes, as `sweep.references` says."""
    if parts.config.sweep.references == "given":
        return questions
    return with_references(parts, questions, relevant_chunks(parts, questions))


def references_note(parts: Components, questions: Sequence[Question]) -> str:
    """Which kind of references all scores are of, and how many questions have none."""
    usable = sum(any(words(answer) for answer in question.answers) for question in questions)
    kind = (
        "given: the data set's own"
        if parts.config.sweep.references == "given"
        else "generated: written by the generator from the relevant passages"
    )
    missing = len(questions) - usable
    left_out = f"; {missing} of {len(questions)} questions have none and are left out of every score" if missing else ""
    return f"References {kind}{left_out}."


def notes_on(methods: Sequence[str], asked: Asked, version: str | None, with_trials: int) -> list[str]:
    """What has to be known beside the table: an agent that is not there, and questions that have no trials."""
    notes = []
    if AGENT in methods and version is None:
        notes.append(f"({AGENT} took the fixed configuration: no agent has been promoted)")
    if ORACLE in methods and not with_trials:
        notes.append(
            f"({ORACLE} is left out: no sweep has tried these questions with this corpus and these settings; "
            "run `corag sweep`)"
        )
    elif ORACLE in methods and with_trials < len(asked.questions):
        notes.append(
            f"({ORACLE} has the {with_trials} of {len(asked.questions)} questions that the last sweep tried; "
            "its gain is over naive on these)"
        )
    return notes


def log_report(
    parts: Components, out: Path, methods: Sequence[Mapping[str, Any]], summary: str, questions: Sequence[Question]
) -> str:
    """The id of the run that holds the folder `out`, with the headline figures of every method."""
    config = parts.config
    figures = {
        f"{name} {row['method']}": float(row[name]) for row in methods for name in HEADLINE if row[name] is not None
    }
    params = {
        "questions": len(questions),
        "references": config.sweep.references,
        "stemming": config.metrics.stemming,
        "budget": config.search.budget,
        "top_k": config.retrieval.top_k,
        "generator": parts.generations.identity,
        "embedder": f"{parts.embedder.name} {parts.embedder.revision}",
        "seed": config.seed,
    }
    config_yaml = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    return log_evaluation_run(
        connect(config.tracking), figures, params, out, note=summary[:5000], config_yaml=config_yaml
    )
