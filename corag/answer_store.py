"""Keeps the rows of an answering run until all are there: one row a question, batch by batch."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from corag.answer_rows import AnswerRow

_ROWS_PER_QUERY = 500


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

    def rows(self, qids: Sequence[str]) -> Iterator[AnswerRow]:
        """The rows of `qids` that are there, in that order; only some hundred are held at once."""
        for start in range(0, len(qids), _ROWS_PER_QUERY):
            part = qids[start : start + _ROWS_PER_QUERY]
            marks = ",".join("?" * len(part))
            held = dict(
                self._connection.execute(f"SELECT qid, row FROM rows WHERE qid IN ({marks})", part)  # noqa: S608
            )
            yield from (AnswerRow.model_validate_json(held[qid]) for qid in part if qid in held)

    @property
    def complete(self) -> bool:
        """Whether the run came to its end, with a row for every question."""
        return bool(self._connection.execute("PRAGMA user_version").fetchone()[0])

    def set_complete(self) -> None:
        """Note that the run came to its end."""
        with self._connection:
            self._connection.execute("PRAGMA user_version = 1")

    def begin_again(self) -> None:
        """Forget all rows, in one transaction: the run starts from nothing."""
        with self._connection:
            self._connection.execute("DELETE FROM rows")
            self._connection.execute("PRAGMA user_version = 0")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
