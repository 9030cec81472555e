"""Reads records from .jsonl, .csv and .parquet files: each with its line, or the reason why it is none."""

from collections.abc import Callable, Iterator
from pathlib import Path

from corag.errors import InputError
from corag.quarantine import Rejected
from corag.records.csv_file import read_csv
from corag.records.jsonl_file import read_jsonl
from corag.records.parquet_file import read_parquet
from corag.records.record import Record, scrub, text_field

__all__ = ["RECORD_SUFFIXES", "Record", "read_records", "scrub", "text_field"]

READERS: dict[str, Callable[[Path], Iterator[Record | Rejected]]] = {
    ".jsonl": read_jsonl,
    ".csv": read_csv,
    ".parquet": read_parquet,
}

RECORD_SUFFIXES = tuple(READERS)


def read_records(path: Path) -> Iterator[Record | Rejected]:
    """Every record of the file, in its order; what cannot be parsed comes as `Rejected` with its line.

    Raises:
        InputError: the file cannot be read at all, or its format is not known.
    """
    if path.suffix.lower() not in READERS:
        raise InputError(f"{path}: records are read from {', '.join(RECORD_SUFFIXES)}; convert the file")
    try:
        yield from READERS[path.suffix.lower()](path)
    except OSError as error:
        # Arrow tells of damaged files in several lines, and without an error of the system.
        reason = error.strerror or " ".join(str(error).split())[:200]
        raise InputError(f"{path}: cannot be read ({reason}); check the path and its rights") from None
