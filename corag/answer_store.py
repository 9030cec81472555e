"""Keeps the rows of an answering run until all are there: one transaction a batch, one row a question."""

import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from corag.answer_rows import AnswerRow
from corag.errors import InputError

PARQUET = ".parquet"


class AnswerStore:
    """The rows of one run in one SQLite file, keyed by qid: a second write of a question replaces the first."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=60)
        self._connection.execute("PRAGMA journal_mode=WAL")
        with self._connection:
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS rows (qid TEXT PRIMARY KEY, status TEXT NOT NULL, row TEXT NOT NULL)"
            )

    def put(self, rows: Iterable[AnswerRow]) -> None:
        """Commit the rows of one batch: all of them or none."""
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO rows (qid, status, row) VALUES (?, ?, ?)",
                [(row.qid, row.status, row.model_dump_json()) for row in rows],
            )

    def finished(self) -> set[str]:
        """The qids that need no more work; a failed question is tried again by the next run."""
        return {qid for (qid,) in self._connection.execute("SELECT qid FROM rows WHERE status != 'failed'")}

    def rows(self, qids: Sequence[str]) -> list[AnswerRow]:
        """The rows of `qids` that are there, in that order."""
        held = dict(self._connection.execute("SELECT qid, row FROM rows"))
        return [AnswerRow.model_validate_json(held[qid]) for qid in qids if qid in held]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def write_answers(rows: Sequence[AnswerRow], out: Path) -> None:
    """Write the answers file: aside first, then renamed, so that under its name it is whole or absent.

    Raises:
        InputError: the folder cannot be written.
    """
    aside = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.suffix == PARQUET:
            _write_parquet(rows, aside)
        else:
            with aside.open("w", encoding="utf-8", newline="\n") as file:
                for row in rows:
                    file.write(row.model_dump_json() + "\n")
                file.flush()
                os.fsync(file.fileno())
        aside.replace(out)
    except OSError as error:
        raise InputError(f"{out}: cannot write the answers ({error.strerror}); name another --out") from error


def _write_parquet(rows: Sequence[AnswerRow], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, integer, real = pa.string(), pa.int64(), pa.float64()
    citation = pa.struct([("chunk_id", text), ("doc_id", text), ("start", integer), ("end", integer)])
    latency = pa.struct([(stage, real) for stage in ("embed", "retrieve", "search", "generate")])
    kinds = {
        "citations": pa.list_(citation),
        "latency_ms": latency,
        **dict.fromkeys(("context_tokens", "prompt_tokens", "answer_tokens", "budget", "iterations"), integer),
        **dict.fromkeys(("cost_coefficient", "exploration_coefficient", "benefit"), real),
    }
    schema = pa.schema([(name, kinds.get(name, text)) for name in AnswerRow.model_fields])
    pq.write_table(pa.Table.from_pylist([row.model_dump(mode="json") for row in rows], schema), path)
