"""Records that could not be used: where each stood, why it was refused, and what it said."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

LONGEST_EXCERPT = 2000
"""Characters of a rejected record that are kept."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A refused record. `line` counts from 1 and is None where the whole file was refused."""

    source: str
    line: int | None
    reason: str
    record: str = ""


def write_quarantine(folder: Path, name: str, rejected: Sequence[Rejected]) -> Path | None:
    """Write the records to `folder/name.jsonl` and return that file; with none, an older file is removed."""
    path = folder / f"{name}.jsonl"
    if not rejected:
        path.unlink(missing_ok=True)
        return None
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    with aside.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        for one in rejected:
            row = asdict(one) | {"record": one.record[:LONGEST_EXCERPT]}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    aside.replace(path)
    return path
