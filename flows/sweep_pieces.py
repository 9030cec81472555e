"""Sweeps over the configured runner: its workers fill the memory, and the sweep then goes through remembered work."""

import json
import shutil
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from corag.components import Components
from corag.retrieval import retrieve
from corag.selection import select
from corag.settings import Config
from corag.sweep import Stages, SweepOutcome, SweepParts, sweep
from corag.sweep_files import Part
from corag.values import Question
from corag.workspace import Workspace
from flows.runners import run_pieces, started
from flows.sweep_planning import grids


def fill_memory(parts: Components, questions: Sequence[Question], sides: dict[str, Part]) -> None:
    """Score and generate what the sweep of `questions` needs, in the workers of `runner`; one in threads does nothing.

    Each piece holds `sweep.batch_questions` questions. What the workers did is added to the counts of `parts`. Their
    results stay in the memory, so that a piece that is run again, or a sweep after this, does nothing twice.
    """
    settings, size = parts.config.runner, parts.config.sweep.batch_questions
    if settings.kind == "threads" and settings.workers == 1:
        return
    folder = parts.workspace.folder("cache", "pieces", uuid.uuid4().hex)
    try:
        pieces: list[dict[str, Any]] = []
        for start in range(0, len(questions), size):
            path = folder / f"{len(pieces):06d}.json"
            some = questions[start : start + size]
            told = [asdict(question) | {"part": sides[question.qid]} for question in some]
            path.write_text(json.dumps(told), encoding="ascii")
            pieces.append(
                {
                    "config": parts.config.model_dump(mode="json"),
                    "workspace": str(parts.workspace.root),
                    "questions": str(path),
                }
            )
        with started(settings) as runner:
            for scored, made in run_pieces(sweep_piece, pieces, runner, settings.retries):
                parts.pairs.scored += scored
                parts.generations.calls.made += made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@task(cache_policy=NO_CACHE, persist_result=False)
def sweep_piece(config: dict[str, Any], workspace: str, questions: str) -> tuple[int, int]:
    """Sweep the questions of a file; the pairs scored and the LLM calls made. Running it twice does no harm."""
    parts = _components(Config.model_validate(config), workspace)
    asked, sides = [], {}
    for raw in json.loads(Path(questions).read_text("ascii")):
        sides[raw["qid"]] = raw.pop("part")
        asked.append(Question(**raw | {name: tuple(raw[name]) for name in ("answers", "relevant_ids")}))
    pairs, calls = parts.pairs.scored, parts.generations.calls.made
    try_each(parts, asked, sides)
    return parts.pairs.scored - pairs, parts.generations.calls.made - calls


def try_each(
    parts: Components,
    questions: Sequence[Question],
    sides: dict[str, Part],
    progress: Callable[[int], None] = lambda done: None,
) -> SweepOutcome:
    """The trials of every question: of the whole grid, or in two stages for the training questions."""
    config, (whole, coarse) = parts.config, grids(parts)
    # Replay needs every configuration of a held-out question.
    train = frozenset(qid for qid, side in sides.items() if side == "train")
    stages = Stages(coarse, train, config.search) if coarse is not None else None
    return sweep(questions, whole, _sweep_parts(parts), config.sweep, progress, stages)


def _sweep_parts(parts: Components) -> SweepParts:
    config = parts.config
    return SweepParts(
        retrieve=lambda batch: retrieve(parts.store, parts.embedder, batch, config.retrieval),
        search=lambda selections: select(selections, parts.scorers(), config.search, config.seed),
        generations=parts.generations,
        prompt=config.prompt,
        metrics=config.metrics,
    )


_own = threading.local()
"""The parts that a thread has loaded, for the pieces that it is given next."""


def _components(config: Config, workspace: str) -> Components:
    name = (config, workspace)
    if getattr(_own, "name", None) != name:
        _own.name, _own.parts = name, Components(config, Workspace(Path(workspace)))
    parts: Components = _own.parts
    return parts
