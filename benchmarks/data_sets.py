"""Questions for the benchmarks: of the bundled sample, or drawn by a seed from folders of data sets.

A folder of a data set holds corpus.jsonl and questions.jsonl.
"""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corag.questions import SAMPLE_QUESTIONS
from corag.settings import SAMPLE

Rows = list[dict[str, Any]]


def english_sample() -> Rows:
    """The English questions of the sample: in the other languages the embedded model has no headroom."""
    return [row for row in _read(SAMPLE_QUESTIONS) if row["language"] == "en"]


def drawn(folder: Path, seed: int) -> Rows:
    """The questions of a data set that have a reference, in an order drawn by the seed."""
    usable = [row for row in _read(folder / "questions.jsonl") if row.get("answers")]
    random.Random(seed).shuffle(usable)
    return usable


def pooled(folders: Sequence[Path], count: int | None, seed: int) -> Rows:
    """At most `count` questions of each data set; the set's name is their kind, where several are pooled."""
    rows = []
    for folder in folders:
        kind = {"kind": folder.name} if len(folders) > 1 else {}
        rows += [row | kind for row in drawn(folder, seed)[:count]]
    return rows


def corpus_paths(folders: Sequence[Path]) -> str:
    """The value of `corpus.paths` for these data sets, or for the sample where there is none."""
    return json.dumps([str((folder / "corpus.jsonl").absolute()) for folder in folders] or [SAMPLE])


def written(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """The file, with a record a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def _read(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
