"""Remembers what each file of a corpus held, so that a file that has not changed is not read again."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from corag.errors import StoreError
from corag.quarantine import Rejected

_BUSY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A document of a file: its id, its content hash, and its line where the file holds several."""

    doc_id: str
    content: str
    line: int | None


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What a file held when it was last read. `mark` is empty where it must be read again in any case.

    `former` are ids of documents that it held earlier and that may stand in the part of it that could not be read.
    """

    source: str
    mark: str
    entries: tuple[Entry, ...]
    rejected: tuple[Rejected, ...]
    former: tuple[str, ...] = ()

    @property
    def doc_ids(self) -> set[str]:
        """Every document that it holds, or may hold still."""
        return {entry.doc_id for entry in self.entries} | set(self.former)


class FileRegister:
    """The records of the files, in the SQLite file `path`. Losing it costs nothing but reading the files again.

    Raises:
        StoreError: the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._told():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS)
            self._connection.execute("CREATE TABLE IF NOT EXISTS files (source BLOB PRIMARY KEY, record TEXT NOT NULL)")
            self._connection.commit()

    def get(self, source: str) -> FileRecord | None:
        """The record of that file, if there is one."""
        with self._told():
            query = "SELECT record FROM files WHERE source = ?"
            row = self._connection.execute(query, (os.fsencode(source),)).fetchone()
        return None if row is None else _record(source, row[0])

    def below(self, source: str) -> Iterator[FileRecord]:
        """The records of that file, or of all files below that folder."""
        low, high = os.fsencode(source + "/"), os.fsencode(source + "0")  # `0` comes right after `/`
        query = "SELECT source, record FROM files WHERE source = ? OR (source >= ? AND source < ?) ORDER BY source"
        with self._told():
            rows = self._connection.execute(query, (os.fsencode(source), low, high)).fetchall()
        for name, text in rows:
            yield _record(os.fsdecode(name), text)

    def put(self, records: Iterable[FileRecord]) -> None:
        """Remember the records, in one transaction."""
        rows = [(os.fsencode(one.source), _text(one)) for one in records]
        with self._told(), self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?)", rows)

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()

    def _told(self) -> "_Told":
        return _Told(self._path)


class _Told:
    """Turns SQLite's errors into one line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise StoreError(
                f"{self._path}: the register of files cannot be used ({error}); delete it: files are then read again"
            ) from error


def _text(record: FileRecord) -> str:
    held = {
        "mark": record.mark,
        "entries": [[entry.doc_id, entry.content, entry.line] for entry in record.entries],
        "rejected": [asdict(one) for one in record.rejected],
        "former": record.former,
    }
    return json.dumps(held)


def _record(source: str, text: str) -> FileRecord:
    held = json.loads(text)
    return FileRecord(
        source,
        held["mark"],
        tuple(Entry(*one) for one in held["entries"]),
        tuple(Rejected(**one) for one in held["rejected"]),
        tuple(held["former"]),
    )
