"""Writes what an evaluation found: a summary, every row, and the tables."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from corag.evaluation_rows import Evaluated

Table = tuple[Sequence[str], Sequence[Mapping[str, Any]]]
"""The columns of a table and its rows."""


def write_report(out: Path, summary: str, rows: Sequence[Evaluated], tables: Mapping[str, Table]) -> None:
    """`summary.md`, `results.parquet` (one row a question and method) and `tables/NAME.csv` in the folder `out`."""
    import pandas as pd

    (out / "tables").mkdir(parents=True, exist_ok=True)
    (out / "summary.md").write_text(f"# Methods compared\n\n{summary}\n", encoding="utf-8")
    columns = list(Evaluated.__dataclass_fields__)
    frame = pd.DataFrame([{**asdict(row), "chunk_ids": list(row.chunk_ids)} for row in rows], columns=columns)
    frame.to_parquet(out / "results.parquet", index=False)
    for name, (names, lines) in tables.items():
        path = out / "tables" / f"{name}.csv"
        pd.DataFrame(list(lines), columns=list(names)).to_csv(path, index=False, encoding="utf-8", lineterminator="\n")
