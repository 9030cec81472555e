"""The record of a sweep: what it depended on, what it cost beside its plan, and what came of it."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import corag
from corag.components import Components
from corag.headroom import Headroom
from corag.labels import count_reasons
from corag.sweep import SweepOutcome
from corag.sweep_files import Part, read_record, write_sweep
from corag.values import Label, Question, Trial
from flows.sweep_planning import Plan
from training.registry import connect, log_sweep_run
from training.sweep_report import best_rerankers


def sweep_fingerprint(parts: Components, questions: list[Question], sides: dict[str, Part]) -> str:
    """A hash of all that a sweep's outcome depends on: its questions and what `inputs_fingerprint` holds."""
    return _hash({**_inputs(parts), "questions": [(asdict(question), sides[question.qid]) for question in questions]})


def inputs_fingerprint(parts: Components) -> str:
    """A hash of all that one question's trials depend on: corpus version, settings, models and version of this code."""
    return _hash(_inputs(parts))


def sweep_applies(parts: Components) -> bool:
    """Whether the last sweep's trials are what this configuration would find now."""
    record = read_record(parts.workspace.sweep)
    return record is not None and record.get("inputs") == inputs_fingerprint(parts)


def _inputs(parts: Components) -> dict[str, Any]:
    config = parts.config.model_dump(
        mode="json", include={"seed", "retrieval", "rerankers", "search", "prompt", "generator", "metrics", "sweep"}
    )
    return {
        "code": corag.__version__,
        "config": config,
        "embedder": parts.embedder.revision,
        "generator": parts.generations.identity,
        "corpus": corpus_version(parts),
    }


def _hash(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode("utf-8", "replace")).hexdigest()


def corpus_version(parts: Components) -> str:
    """The content of the store: a hash of every document's content hash."""
    documents = sorted(parts.store.documents().items())
    return hashlib.sha256(json.dumps(documents).encode("utf-8", "replace")).hexdigest()[:16]


def keep(
    parts: Components,
    outcome: SweepOutcome,
    questions: list[Question],
    sides: dict[str, Part],
    headroom: Headroom | None,
    fingerprint: str,
    planned: Plan,
) -> dict[str, Any]:
    """Write the sweep's files, log it to MLflow, and return its record."""
    train = [label for label in outcome.labels if sides[label.qid] == "train"]
    held_out = [label for label in outcome.labels if sides[label.qid] == "held_out"]
    failed: dict[str, str] = {}
    for trial in outcome.trials:
        if trial.error is not None:
            failed.setdefault(trial.qid, f"{trial.qid} ({trial.configuration.reranker}): {trial.error}")
    calls, scored = parts.generations.calls, parts.pairs
    record = {
        "fingerprint": fingerprint,
        "inputs": inputs_fingerprint(parts),
        "corpus_version": corpus_version(parts),
        "questions": {"train": len(train), "held_out": len(held_out)},
        "trials": len(outcome.trials),
        "labels": {"train": count_reasons(train), "held_out": count_reasons(held_out)},
        "best_rerankers": dict(sorted(best_rerankers(train).items(), key=lambda item: (-item[1], item[0]))),
        "headroom": str(headroom) if headroom else "not measured (forced)",
        "headroom_mean": headroom.over_none.mean if headroom else None,
        "pairs": {
            "planned": planned.work.pairs,
            "scored": scored.scored,
            "remembered": scored.remembered,
            "alone": outcome.pairs_alone,
        },
        "calls": {
            "planned": planned.work.calls,
            "made": calls.made,
            "asked": calls.asked,
            "alone": outcome.calls_alone,
        },
        "references": parts.config.sweep.references,
        "stemming": parts.config.metrics.stemming,
        "failed": list(failed.values()),
        "failed_everywhere": failed_everywhere(outcome.trials),
    }
    labels = [replace(label, part=sides[label.qid]) for label in outcome.labels]
    log_record(parts, record, labels)
    # Last: with its record on disk a sweep is done, and is not repeated.
    write_sweep(parts.workspace.sweep, outcome.trials, labels, questions, sides, record)
    return record


def failed_everywhere(trials: Sequence[Trial]) -> list[str]:
    """The rerankers of which no trial of any question succeeded, in the order of the trials."""
    names = dict.fromkeys(trial.configuration.reranker for trial in trials)
    ran = {trial.configuration.reranker for trial in trials if trial.error is None}
    return [name for name in names if name not in ran]


def summarise(record: dict[str, Any]) -> str:
    """The record as a few lines."""
    pairs, calls, labels = record["pairs"], record["calls"], record["labels"]["train"]
    kept = labels.get("kept", 0)
    dropped = ", ".join(f"{reason}: {count}" for reason, count in labels.items() if reason != "kept")
    winners = ", ".join(f"{name} {count}" for name, count in record["best_rerankers"].items())
    broken = [f"reranker {name} failed on every question" for name in record["failed_everywhere"]]
    return "\n".join(
        [
            *broken,
            f"sweep: {record['trials']} trials of {record['questions']['train']} training and "
            f"{record['questions']['held_out']} held-out questions",
            f"{record['headroom']}",
            f"labels: {kept} kept ({winners}); dropped: {dropped or 'none'}",
            f"reranker pairs: {pairs['scored']} scored now, planned at most {pairs['planned']}, "
            f"{pairs['alone']} if every trial ran alone",
            f"LLM calls: {calls['made']} made now, planned at most {calls['planned']}, "
            f"{calls['alone']} if every trial ran alone",
        ]
    )


def log_record(parts: Components, record: dict[str, Any], labels: list[Label]) -> str:
    """The id of the MLflow run that holds the record, and tables and plots of the training questions' labels."""
    import yaml

    config_yaml = yaml.safe_dump(parts.config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    return log_sweep_run(
        connect(parts.config.tracking),
        record,
        [label for label in labels if label.part == "train"],
        parts.config.sweep,
        note=summarise(record),
        config_yaml=config_yaml,
    )
