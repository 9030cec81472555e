"""The nights so far: one line a date in a file that is written aside and renamed."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from corag.night_figures import Figures

HISTORY = "nights.jsonl"


def read_nights(folder: Path) -> dict[str, Figures]:
    """The figures of every night by date, oldest first. A line that cannot be read is left out."""
    path = folder / HISTORY
    nights: dict[str, Figures] = {}
    if not path.exists():
        return nights
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            held = json.loads(line)
            nights[held["date"]] = {name: float(value) for name, value in held["figures"].items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
    return dict(sorted(nights.items()))


def keep_night(folder: Path, date: str, figures: Mapping[str, float]) -> dict[str, Figures]:
    """Put the night of `date` into the file, in the place of an earlier attempt at it; all nights, oldest first."""
    nights = dict(sorted({**read_nights(folder), date: dict(figures)}.items()))
    lines = [json.dumps({"date": one, "figures": held}, sort_keys=True) + "\n" for one, held in nights.items()]
    aside = folder / f".{HISTORY}.{os.getpid()}.part"
    aside.write_text("".join(lines), encoding="utf-8", newline="\n")
    aside.replace(folder / HISTORY)
    return nights
