"""Reads records from .jsonl, .csv and .parquet files: each with its line, or the reason why it is none."""

import csv
import io
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corag.errors import InputError
from corag.quarantine import Rejected

logger = logging.getLogger(__name__)

RECORD_SUFFIXES = (".jsonl", ".csv", ".parquet")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Record:
    """One record: its fields, and the line (or row) on which it stands, counted from 1."""

    source: str
    line: int
    fields: dict[str, Any]

    def rejected(self, reason: str) -> Rejected:
        """The refusal of this record."""
        return Rejected(self.source, self.line, reason, json.dumps(self.fields, ensure_ascii=False, default=str))


def read_records(path: Path) -> Iterator[Record | Rejected]:
    """Every record of the file, in its order; what cannot be parsed comes as `Rejected` with its line.

    Raises:
        InputError: the file cannot be read at all, or its format is not known.
    """
    readers = {".jsonl": _read_jsonl, ".csv": _read_csv, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise InputError(f"{path}: records are read from {', '.join(RECORD_SUFFIXES)}; convert the file")
    try:
        yield from readers[path.suffix.lower()](path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check the path and its rights") from None


def text_field(value: Any) -> str:
    """A metadata value as text: strings byte for byte, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def scrub(value: Any) -> Any:
    """The value with each lone surrogate, which no file can hold, replaced by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [scrub(item) for item in value]
    if isinstance(value, dict):
        return {str(scrub(name)): scrub(item) for name, item in value.items()}
    return value


def _read_jsonl(path: Path) -> Iterator[Record | Rejected]:
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
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        return Rejected(source, number, f"not JSON ({error.msg})", text)
    except RecursionError:
        return Rejected(source, number, "not JSON (nested too deeply)", text)
    except ValueError:
        # Python refuses to parse integers of thousands of digits.
        return Rejected(source, number, "not JSON (a number is too long)", text)
    if not isinstance(fields, dict):
        return Rejected(source, number, f"not a JSON object but {type(fields).__name__}", text)
    clean = scrub(fields)
    if clean != fields:
        logger.warning("%s:%d: lone surrogates were replaced by U+FFFD", source, number)
    return Record(source, number, clean)


def _read_csv(path: Path) -> Iterator[Record | Rejected]:
    raw = path.read_bytes().removeprefix(BYTE_ORDER_MARK)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        yield Rejected(str(path), line, "not UTF-8, so that no row is read; save the file as UTF-8")
        return
    # A field may be as long as a document.
    csv.field_size_limit(2**31 - 1)
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in rows:
            fields = {name: value for name, value in row.items() if name is not None and value is not None}
            if None in row:
                yield Rejected(str(path), rows.line_num, "more fields than the header names", str(row))
            else:
                yield Record(str(path), rows.line_num, fields)
    except csv.Error as error:
        # The faulty row starts on the line after the last good one.
        yield Rejected(str(path), rows.line_num + 1, f"not CSV ({error}); nothing from here on is read")


def _read_parquet(path: Path) -> Iterator[Record | Rejected]:
    import pyarrow.lib
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except pyarrow.lib.ArrowInvalid as error:
        raise InputError(f"{path}: is no parquet file ({error})") from None
    for number, fields in enumerate(table.to_pylist(), start=1):
        yield Record(str(path), number, {name: value for name, value in fields.items() if value is not None})
