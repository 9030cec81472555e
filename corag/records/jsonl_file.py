"""One record a line: JSON objects."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corag.quarantine import LONGEST_EXCERPT, Rejected
from corag.records.record import Record, scrub

logger = logging.getLogger(__name__)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

DEEPEST_NESTING = 100
"""Levels of lists and objects in a record: whoever walks through it must not run out of stack."""

LONE_SURROGATE_ESCAPE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)
"""How a surrogate can come into a line that is UTF-8."""


def read_jsonl(path: Path) -> Iterator[Record | Rejected]:
    """Every line that is not blank as a record, or why it is none."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            # Lines end at line feeds alone: str.splitlines would also split at separators inside a text.
            line = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
            if line.strip():
                yield _parse(str(path), number, line)


def _parse(source: str, number: int, line: bytes) -> Record | Rejected:
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        return Rejected(source, number, f"not UTF-8 (byte {error.start} of the line)", repr(line[:200]))
    excerpt = text[:LONGEST_EXCERPT]
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        return Rejected(source, number, f"not JSON ({error.msg})", excerpt)
    except RecursionError:
        return Rejected(source, number, "not JSON (nested too deeply)", excerpt)
    except ValueError:
        # Python refuses to parse integers of thousands of digits.
        return Rejected(source, number, "not JSON (a number is too long)", excerpt)
    if not isinstance(fields, dict):
        return Rejected(source, number, f"not a JSON object but {type(fields).__name__}", excerpt)
    if text.count("[") + text.count("{") > DEEPEST_NESTING and _nests_too_deeply(fields):
        return Rejected(source, number, "nested too deeply", excerpt)
    if LONE_SURROGATE_ESCAPE.search(text):
        clean = scrub(fields)
        if clean != fields:
            logger.warning("%s:%d: lone surrogates were replaced by U+FFFD", source, number)
        fields = clean
    return Record(source, number, fields)


def _nests_too_deeply(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST_NESTING):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)
