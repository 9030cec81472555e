"""One record a row below the header: comma-separated values, all of them strings."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from corag.quarantine import LONGEST_EXCERPT, Rejected
from corag.records.record import Record

if TYPE_CHECKING:
    import _csv


def read_csv(path: Path) -> Iterator[Record | Rejected]:
    """Every row as a record, with the line on which it begins, or why it is none; a faulty row costs itself alone."""
    # A field may be as long as a document.
    csv.field_size_limit(2**31 - 1)
    # Bytes that are not UTF-8 become surrogates, so that they cost their own row only.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            header = next(rows, [])
        except csv.Error as error:
            yield Rejected(str(path), 1, f"the header is not CSV ({error}), so that no row is read")
            return
        if _escaped("".join(header)):
            yield Rejected(str(path), 1, "the header is not UTF-8, so that no row is read; save the file as UTF-8")
            return
        yield from _csv_rows(str(path), rows, header)


def _csv_rows(source: str, rows: "_csv.Reader", header: list[str]) -> Iterator[Record | Rejected]:
    after_fault = False
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            after_fault = True
            open_end = "unexpected end" in str(error)
            lost = "a quote is never closed, so that nothing from here on is read" if open_end else str(error)
            yield Rejected(source, line, f"not CSV ({lost})")
            continue
        excerpt = ",".join(row)[:LONGEST_EXCERPT]
        if not row:
            continue
        if _escaped("".join(row)):
            yield Rejected(source, line, "not UTF-8; save the file as UTF-8", excerpt)
        elif len(row) > len(header):
            yield Rejected(source, line, "more fields than the header names", excerpt)
        elif after_fault and (len(row) < len(header) or any('"' in value for value in row)):
            # A line break inside the quotes of the faulty row leaves lines that look like rows.
            yield Rejected(source, line, "may be the rest of the faulty row before it", excerpt)
        else:
            after_fault = False
            yield Record(source, line, {name: value for name, value in zip(header, row, strict=False) if name})


def _escaped(text: str) -> bool:
    return any("\udc80" <= one <= "\udcff" for one in text) if not text.isascii() else False
