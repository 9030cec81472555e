"""One record a row: Parquet."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corag.errors import InputError
from corag.quarantine import Rejected
from corag.records.record import Record

if TYPE_CHECKING:
    import pyarrow

PARQUET_ROWS = 256
"""Rows that are held in memory together."""


def read_parquet(path: Path) -> Iterator[Record | Rejected]:
    """Every row as a record without its nulls, counted from 1.

    Raises:
        InputError: the file is no parquet file, or a damaged one.
    """
    import pyarrow.lib
    import pyarrow.parquet as pq

    line = 0
    try:
        # Not `read_table`, which would take a folder's name such as `lang=en` for a column.
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=PARQUET_ROWS):
                for fields in _rows_of_batch(batch):
                    line += 1
                    if fields is None:
                        yield Rejected(str(path), line, "not UTF-8")
                    else:
                        yield Record(str(path), line, {name: one for name, one in fields.items() if one is not None})
    except pyarrow.lib.ArrowException as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: is no parquet file that can be read ({reason})") from None


def _rows_of_batch(batch: "pyarrow.RecordBatch") -> list[dict[str, Any] | None]:
    """The rows; None for one that is not UTF-8."""
    try:
        return batch.to_pylist()
    except UnicodeDecodeError:
        if batch.num_rows == 1:
            return [None]
        return [fields for row in range(batch.num_rows) for fields in _rows_of_batch(batch.slice(row, 1))]
