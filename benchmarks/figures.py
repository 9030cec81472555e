"""One line of JSON per measured figure, so that a script can read what a benchmark printed."""

import json
from typing import Literal

Figure = tuple[str, float, float, Literal["higher", "lower"], int]
"""What `emit` prints: name, value, aim, which way is better, and over how many cases it was measured."""


def emit(name: str, value: float, aim: float, better: Literal["higher", "lower"], n: int) -> None:
    """Print one figure: its value, what is aimed at, which way is better, and over how many cases it was measured."""
    print(json.dumps({"figure": name, "value": round(value, 4), "aim": aim, "better": better, "n": n}), flush=True)
