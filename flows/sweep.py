"""Sweep: headroom → trials of every configuration → labels; a plan beforehand, the real cost afterwards."""

import hashlib
import json
import random
from dataclasses import asdict, replace
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

import corag
from corag.components import Components
from corag.contexts import group_by_document, random_context, relevant_context
from corag.errors import IncompleteError
from corag.headroom import Headroom, HeadroomCase, measure_headroom, require_headroom
from corag.labels import count_reasons
from corag.progress import progress
from corag.references import generated_references
from corag.retrieval import retrieve
from corag.selection import feasible_orders, select
from corag.sweep import SweepOutcome, SweepParts, grid, sweep
from corag.sweep_files import Part, read_record, write_sweep
from corag.values import Chunk, Question
from flows.questions import load_questions
from flows.runtime import open_components


@flow(name="sweep")
def sweep_flow(
    config_file: str | None,
    overrides: list[str],
    questions: str | None = None,
    limit: int | None = None,
    force: bool = False,
) -> str:
    """Label the training questions and record the trials of the held-out ones; what was done, as a few lines.

    A sweep of which nothing has changed is not repeated.

    Raises:
        HeadroomError: ROUGE-L does not respond to the context here; `force` goes on.
        IncompleteError: some questions failed; the others are labelled.
    """
    parts = open_components(config_file, overrides, "sweep")
    asked, sides = sweep_questions(parts, questions, limit)
    fingerprint = sweep_fingerprint(parts, asked, sides)
    held = read_record(parts.workspace.sweep)
    if held is not None and held["fingerprint"] == fingerprint and not held["failed"]:
        return f"sweep: nothing has changed since the last one\n{summarise(held)}"
    asked, relevant = with_references(parts, asked)
    headroom = check_headroom(parts, [one for one in asked if sides[one.qid] == "train"], relevant, force)
    outcome = try_configurations(parts, asked)
    record = keep(parts, outcome, asked, sides, headroom, fingerprint)
    if record["failed"]:
        raise IncompleteError(f"{summarise(record)}; failed: {'; '.join(record['failed'][:3])}")
    return summarise(record)


def sweep_questions(parts: Components, source: str | None, limit: int | None) -> tuple[list[Question], dict[str, Part]]:
    """Training and held-out questions, and which is which. A question in both files counts as held out."""
    settings = parts.config.questions
    train, _ = load_questions(
        source or settings.train, parts.workspace, "train", "train", limit or settings.train_limit
    )
    held_out, _ = load_questions(settings.held_out, parts.workspace, "held_out", "held_out", settings.held_out_limit)
    sides: dict[str, Part] = {question.qid: "train" for question in train}
    sides.update({question.qid: "held_out" for question in held_out})
    known = {question.qid for question in held_out}
    return [one for one in train if one.qid not in known] + held_out, sides


def sweep_fingerprint(parts: Components, questions: list[Question], sides: dict[str, Part]) -> str:
    """A hash of all that a sweep's outcome depends on: data, corpus version, settings and the version of this code."""
    config = parts.config.model_dump(
        mode="json", include={"seed", "retrieval", "rerankers", "search", "prompt", "generator", "metrics", "sweep"}
    )
    told = {
        "code": corag.__version__,
        "config": config,
        "embedder": parts.embedder.revision,
        "generator": parts.generations.identity,
        "corpus": corpus_version(parts),
        "questions": [(asdict(question), sides[question.qid]) for question in questions],
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode("utf-8", "replace")).hexdigest()


def corpus_version(parts: Components) -> str:
    """The content of the store: a hash of every document's content hash."""
    documents = sorted(parts.store.documents().items())
    return hashlib.sha256(json.dumps(documents).encode("utf-8", "replace")).hexdigest()[:16]


@task(cache_policy=NO_CACHE, persist_result=False)
def with_references(parts: Components, questions: list[Question]) -> tuple[list[Question], dict[str, list[Chunk]]]:
    """The questions with the configured kind of references, and the relevant chunks of each."""
    config = parts.config
    chunks = group_by_document(parts.chunks)
    relevant = {
        question.qid: relevant_context(chunks, question.relevant_ids, question.answers, config.search.budget)
        for question in questions
    }
    if config.sweep.references == "given":
        return questions, relevant
    with progress("references", len(questions)) as advance:
        return generated_references(questions, relevant, parts.generations, config.prompt, advance), relevant


@task(cache_policy=NO_CACHE, persist_result=False)
def check_headroom(
    parts: Components, train: list[Question], relevant: dict[str, list[Chunk]], force: bool
) -> Headroom | None:
    """The headroom of a sample of the training questions; None where `force` skips a set that has none to measure."""
    config = parts.config
    usable = [question for question in train if question.answers and relevant.get(question.qid)]
    if not usable and force:
        return None
    sample = random.Random(config.seed).sample(usable, min(config.sweep.headroom_sample, len(usable)))  # noqa: S311
    cases = [
        HeadroomCase(
            question,
            question.answers,
            relevant[question.qid],
            random_context(parts.chunks, question.relevant_ids, config.search.budget, config.seed + place),
        )
        for place, question in enumerate(sample)
    ]
    with progress("headroom", 3 * len(cases)) as advance:
        headroom = measure_headroom(cases, parts.generations, config.prompt, config.metrics, config.seed, advance)
    if not force:
        require_headroom(headroom, config.sweep.min_headroom)
    return headroom


@task(cache_policy=NO_CACHE, persist_result=False)
def try_configurations(parts: Components, questions: list[Question]) -> SweepOutcome:
    """The trials of the whole grid on every question."""
    config = parts.config
    sweep_parts = SweepParts(
        retrieve=lambda batch: retrieve(parts.store, parts.embedder, batch, config.retrieval),
        search=lambda selections: select(selections, parts.scorers(), config.search),
        generations=parts.generations,
        prompt=config.prompt,
        metrics=config.metrics,
    )
    configurations = grid([one.name for one in config.rerankers], config.sweep)
    with progress("sweep (questions)", len(questions)) as advance:
        return sweep(questions, configurations, sweep_parts, config.sweep, advance)


def keep(
    parts: Components,
    outcome: SweepOutcome,
    questions: list[Question],
    sides: dict[str, Part],
    headroom: Headroom | None,
    fingerprint: str,
) -> dict[str, Any]:
    """Write the sweep's files and return its record."""
    train = [label for label in outcome.labels if sides[label.qid] == "train"]
    held_out = [label for label in outcome.labels if sides[label.qid] == "held_out"]
    failed: dict[str, str] = {}
    for trial in outcome.trials:
        if trial.error is not None:
            failed.setdefault(trial.qid, f"{trial.qid} ({trial.configuration.reranker}): {trial.error}")
    calls, scored = parts.generations.calls, parts.pairs
    record = {
        "fingerprint": fingerprint,
        "corpus_version": corpus_version(parts),
        "questions": {"train": len(train), "held_out": len(held_out)},
        "trials": len(outcome.trials),
        "labels": {"train": count_reasons(train), "held_out": count_reasons(held_out)},
        "best_rerankers": _winners(train),
        "headroom": str(headroom) if headroom else "not measured (forced)",
        "headroom_mean": headroom.over_none.mean if headroom else None,
        "pairs": {"alone": outcome.pairs_alone, "scored": scored.scored, "remembered": scored.remembered},
        "calls": {"alone": outcome.calls_alone, "made": calls.made, "asked": calls.asked},
        "references": parts.config.sweep.references,
        "stemming": parts.config.metrics.stemming,
        "failed": list(failed.values()),
    }
    labels = [replace(label, part=sides[label.qid]) for label in outcome.labels]
    write_sweep(parts.workspace.sweep, outcome.trials, labels, questions, sides, record)
    return record


def summarise(record: dict[str, Any]) -> str:
    """The record as a few lines."""
    pairs, calls, labels = record["pairs"], record["calls"], record["labels"]["train"]
    kept = labels.get("kept", 0)
    dropped = ", ".join(f"{reason}: {count}" for reason, count in labels.items() if reason != "kept")
    winners = ", ".join(f"{name} {count}" for name, count in record["best_rerankers"].items())
    return "\n".join(
        [
            f"sweep: {record['trials']} trials of {record['questions']['train']} training and "
            f"{record['questions']['held_out']} held-out questions",
            f"{record['headroom']}",
            f"labels: {kept} kept ({winners}); dropped: {dropped or 'none'}",
            f"reranker pairs: {pairs['scored']} scored now, {pairs['alone']} if every trial ran alone",
            f"LLM calls: {calls['made']} made now, {calls['alone']} if every trial ran alone",
        ]
    )


def plan_sweep(config_file: str | None, overrides: list[str], questions: str | None, limit: int | None) -> str:
    """The planned work as an upper bound: reranker pairs and LLM calls, before anything is remembered."""
    parts = open_components(config_file, overrides, "sweep")
    config = parts.config
    asked, _ = sweep_questions(parts, questions, limit)
    configurations = grid([reranker.name for reranker in config.rerankers], config.sweep)
    trees = len(config.sweep.cost_coefficients) * len(config.sweep.exploration_coefficients)
    pairs = calls = 0
    for retrieval in retrieve(parts.store, parts.embedder, asked, config.retrieval):
        costs = [candidate.cost for candidate in retrieval.candidates]
        orders = feasible_orders(costs, config.search.budget, max(config.sweep.iterations), trees)
        pairs += orders * len(config.rerankers)
        calls += min(len(configurations), orders * len(config.rerankers) + 1)
    sample = min(config.sweep.headroom_sample, len(asked))
    return "\n".join(
        [
            f"{len(asked)} questions × {len(configurations)} configurations = "
            f"{len(asked) * len(configurations)} trials",
            f"reranker pairs: at most {pairs}",
            f"LLM calls: at most {calls + 3 * sample} (of which headroom: {3 * sample})",
            "what is remembered from earlier sweeps costs nothing",
        ]
    )


def _winners(labels: list[Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for label in labels:
        if label.kept:
            counts[label.configuration.reranker] = counts.get(label.configuration.reranker, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
