"""The files of a sweep: trials as parquet, labels as JSON lines, and the record of what was done."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from corag.errors import InputError
from corag.values import Configuration, Label, Question, Trial

if TYPE_CHECKING:
    import pandas as pd

TRIALS, LABELS, QUESTIONS, RECORD = "trials.parquet", "labels.jsonl", "questions.jsonl", "sweep.json"

Part = Literal["train", "held_out"]


def trials_frame(trials: Sequence[Trial]) -> "pd.DataFrame":
    """One row a trial; `rouge_l` is null where the trial failed."""
    import pandas as pd

    rows = []
    for trial in trials:
        row = asdict(trial)
        row.update(row.pop("configuration"))
        row["chunk_ids"] = list(trial.chunk_ids)
        rows.append(row)
    first = ("qid", "reranker", "iterations", "cost_coefficient", "exploration_coefficient")
    columns = [*first, *(name for name in Trial.__dataclass_fields__ if name not in ("qid", "configuration"))]
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A finished sweep as read back from its folder. `parts` says of each qid whether it is `train` or `held_out`."""

    trials: "pd.DataFrame"
    labels: list[Label]
    questions: list[Question]
    parts: dict[str, Part]
    record: dict[str, Any]


def write_sweep(
    folder: Path,
    trials: Sequence[Trial],
    labels: Sequence[Label],
    questions: Sequence[Question],
    parts: Mapping[str, Part],
    record: Mapping[str, Any],
) -> None:
    """Write the files, each aside and renamed; the record last: while it is missing the sweep is not finished."""
    (folder / RECORD).unlink(missing_ok=True)
    _replace(folder / TRIALS, lambda path: trials_frame(trials).to_parquet(path, index=False))
    _replace(folder / LABELS, lambda path: _write_lines(path, [asdict(label) for label in labels]))
    rows = [{**asdict(question), "part": parts[question.qid]} for question in questions]
    _replace(folder / QUESTIONS, lambda path: _write_lines(path, rows))
    text = json.dumps(record, indent=2, ensure_ascii=False, sort_keys=True)
    _replace(folder / RECORD, lambda path: path.write_text(text, encoding="utf-8"))


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of the last finished sweep; None where there is none."""
    path = folder / RECORD
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def read_sweep(folder: Path) -> Sweep:
    """The last finished sweep.

    Raises:
        InputError: there is none.
    """
    import pandas as pd

    record = read_record(folder)
    if record is None:
        raise InputError(f"{folder}: holds no finished sweep; run `corag sweep` first")
    labels = []
    for raw in _read_lines(folder / LABELS):
        chosen = raw.pop("configuration")
        labels.append(Label(**raw, configuration=Configuration(**chosen) if chosen else None))
    questions, parts = [], {}
    for raw in _read_lines(folder / QUESTIONS):
        parts[raw["qid"]] = raw.pop("part")
        for name in ("answers", "relevant_ids"):
            raw[name] = tuple(raw[name])
        questions.append(Question(**raw))
    return Sweep(pd.read_parquet(folder / TRIALS), labels, questions, parts, record)


def _write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def _read_lines(path: Path) -> list[dict[str, Any]]:
    # Split at line feeds alone: a text may hold other line separators.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    write(aside)
    aside.replace(path)
