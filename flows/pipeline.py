"""The main job from top to bottom: ingest, sweep, train, promote, answer, report."""

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prefect import flow

from corag.errors import IncompleteError, LabelError
from flows.answer import answer_flow
from flows.ingest import ingest_flow
from flows.promote import promote_flow
from flows.report import evaluate_flow
from flows.runtime import open_config
from flows.sweep import sweep_flow
from flows.train import train_flow

logger = logging.getLogger(__name__)


@flow(name="corag")
def run_flow(config_file: str | None, overrides: list[str]) -> str:
    """Do the whole job and return its summary.

    Raises:
        IncompleteError: some records failed on the way; everything else is done.
    """
    started = time.monotonic()
    config, workspace = open_config(config_file, overrides, "run")
    call = (config_file, overrides)
    source, limit = config.questions.held_out, config.questions.held_out_limit
    answers, tables = workspace.folder("answers") / "held_out.jsonl", workspace.reports / "held_out"
    problems: list[str] = []
    stages: list[tuple[str, Callable[[], str]]] = [
        ("ingest", lambda: ingest_flow(*call)),
        ("sweep", lambda: sweep_flow(*call)),
        ("train", lambda: _train_and_promote(call)),
        ("answer", lambda: answer_flow(*call, questions=source, out=str(answers), split="held_out", limit=limit)),
        (
            "report",
            lambda: evaluate_flow(
                *call, questions=source, out=str(tables), split="held_out", limit=limit, thorough=False
            ),
        ),
    ]
    told = []
    for number, (name, stage) in enumerate(stages, start=1):
        logger.info("stage %d of %d: %s", number, len(stages), name)
        try:
            told.append(stage())
        except IncompleteError as error:
            problems.append(f"{name}: {error}")
            told.append(f"{name}: {error}")
    told += [_examples(answers), _where_next(config.tracking.uri, answers, tables, time.monotonic() - started)]
    summary = "\n\n".join(part for part in told if part)
    (workspace.reports / "run.md").write_text(summary + "\n", encoding="utf-8")
    if problems:
        logger.info("%s", summary)
        raise IncompleteError(
            f"some records failed, the rest is done (see {workspace.reports / 'run.md'}): " + "; ".join(problems)
        )
    return summary


def _train_and_promote(call: tuple[str | None, list[str]]) -> str:
    """Too few labels for an agent are told, not fatal: the questions are then answered by the fixed configuration."""
    try:
        return f"{train_flow(*call)}\n\n{promote_flow(*call)}"
    except LabelError as error:
        return f"train: no agent: {error}; answering with the present champion or the fixed configuration"


def _examples(answers: Path, count: int = 3) -> str:
    """The first answered questions with what they cite."""
    if not answers.exists():
        return ""
    lines = ["example answers:"]
    for line in answers.read_text(encoding="utf-8").split("\n"):
        row: dict[str, Any] = json.loads(line) if line else {}
        if row.get("status") != "answered":
            continue
        cited = ", ".join(f"{one['doc_id']}[{one['start']}:{one['end']}]" for one in row["citations"])
        lines.append(
            f"  Q: {row['question']}\n  A: {row['answer']}\n     cites {cited} "
            f"({row['context_tokens']} of {row['budget']} tokens, {row['reranker']}, by {row['config_source']})"
        )
        if len(lines) > count:
            break
    return "\n".join(lines)


def _where_next(tracking_uri: str, answers: Path, tables: Path, seconds: float) -> str:
    return "\n".join(
        [
            f"done in {seconds:.0f} s. Where to look next:",
            f"  answers      {answers}",
            f"  comparison   {tables / 'summary.md'}",
            f"  agent, runs  .venv/bin/mlflow ui --host 127.0.0.1 --backend-store-uri {tracking_uri}",
            "  flows        .venv/bin/prefect server start   (then set PREFECT_API_URL=http://127.0.0.1:4200/api)",
        ]
    )
