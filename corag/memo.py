"""Remembers costly pure results (scores, generations, embeddings) in one SQLite file, batch by batch.

Measured growth of the file: 33 bytes a score, 310 bytes a generation (an answer of 150 characters, as JSON),
1,670 bytes a 384-d and 5,500 bytes a 1,024-d embedding. A sweep of 100 questions with three rerankers and 600
distinct orders each takes 6 MB.
"""

import hashlib
import json
import math
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from corag.errors import StoreError

Value = bytes | str | float

_KEYS_PER_QUERY = 500
_BUSY_SECONDS = 120.0


def key(*parts: str | int | float) -> str:
    """One unambiguous key for `parts`: no two different lists of parts share it."""
    return json.dumps(parts, ensure_ascii=True, separators=(",", ":"))


class Memo:
    """Named tables of key → value in the SQLite file `path`; None keeps them in memory.

    Threads share one connection; processes share the file (write-ahead log, so readers never wait). Each
    `put_many` is one transaction: a process killed at any moment loses at most the call that it was in.

    Raises:
        StoreError: the file is no memo, cannot be written, or stayed locked for two minutes.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._owner = -1
        self._connection: sqlite3.Connection | None = None
        with self._open():
            pass

    def table(self, name: str, *, large: bool = False) -> "MemoTable":
        """The table `name` (letters, digits, underscores), made if need be.

        `large` lays it out for values of a kilobyte and more; it counts when the table is made, not later.
        """
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"memo table {name!r}: use letters, digits and underscores")
        with self._open() as connection:
            layout = "" if large else "WITHOUT ROWID"
            connection.execute(f'CREATE TABLE IF NOT EXISTS "{name}" (key BLOB PRIMARY KEY, value) {layout}')
        return MemoTable(self, name)

    @property
    def size_bytes(self) -> int:
        """Bytes that all tables take together."""
        with self._open() as connection:
            pages = int(connection.execute("PRAGMA page_count").fetchone()[0])
            return pages * int(connection.execute("PRAGMA page_size").fetchone()[0])

    def close(self) -> None:
        """Let the file go; the memo opens it again when next used."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The connection inside one transaction, for one thread at a time."""
        with self._lock:
            try:
                # A connection must not cross a fork: the child opens its own.
                if self._connection is None or (self._owner != os.getpid() and self._path is not None):
                    self._connection = _connect(self._path)
                    self._owner = os.getpid()
                with self._connection:
                    yield self._connection
            except sqlite3.Error as error:
                raise StoreError(
                    f"{self._path or 'memory'}: the memo cannot be used ({error}); free the file or disk, "
                    "or delete the file: its results are then worked out again"
                ) from error


class MemoTable:
    """One table of a memo. Keys are kept as the first 16 bytes of their SHA-256; values as SQLite's own types."""

    def __init__(self, memo: Memo, name: str) -> None:
        self._memo = memo
        self._name = name

    def get_many(self, keys: Sequence[str]) -> dict[str, Value]:
        """The remembered values by key; keys that are not remembered are absent."""
        by_digest = {_digest(one): one for one in keys}
        digests = list(by_digest)
        found: dict[str, Value] = {}
        with self._memo._open() as connection:
            for start in range(0, len(digests), _KEYS_PER_QUERY):
                part = digests[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(part))
                rows = connection.execute(
                    f'SELECT key, value FROM "{self._name}" WHERE key IN ({marks})',  # noqa: S608 - the name is checked
                    part,
                )
                for digest, value in rows:
                    # SQLite keeps a NaN as NULL, and nothing else is ever stored as NULL.
                    found[by_digest[digest]] = math.nan if value is None else value
        return found

    def put_many(self, items: Mapping[str, Value]) -> None:
        """Remember `items` in one transaction; a key that is known keeps the newer value."""
        if not items:
            return
        rows = [(_digest(one), _native(value)) for one, value in items.items()]
        # In key order neighbouring pages are written together.
        rows.sort(key=lambda row: row[0])
        with self._memo._open() as connection:
            connection.executemany(
                f'INSERT OR REPLACE INTO "{self._name}" (key, value) VALUES (?, ?)',  # noqa: S608 - the name is checked
                rows,
            )

    def count(self) -> int:
        """How many results are remembered."""
        with self._memo._open() as connection:
            return int(connection.execute(f'SELECT count(*) FROM "{self._name}"').fetchone()[0])  # noqa: S608

    @property
    def size_bytes(self) -> int:
        """Bytes of the keys and values, without SQLite's own overhead."""
        value = "CASE WHEN typeof(value) IN ('text', 'blob') THEN length(CAST(value AS BLOB)) ELSE 8 END"
        query = f'SELECT coalesce(sum(16 + {value}), 0) FROM "{self._name}"'  # noqa: S608 - the name is checked
        with self._memo._open() as connection:
            return int(connection.execute(query).fetchone()[0])


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def _native(value: Value) -> Value:
    return value if isinstance(value, bytes | str) else float(value)


def _connect(path: Path | None) -> sqlite3.Connection:
    if path is None:
        return sqlite3.connect(":memory:", check_same_thread=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
    # Counts for a new file only: a quarter of a page must hold a value of the layout without row ids.
    connection.execute("PRAGMA page_size=16384")
    _use_write_ahead_log(connection)
    # Safe against a killed process; a power cut may lose the last transactions, never the file.
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    # The switch does not wait for other processes by itself, whatever the busy timeout.
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
