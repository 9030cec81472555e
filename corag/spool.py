"""Keeps documents on disk between reading and storing them, so that memory does not grow with the corpus."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from corag.values import Document

_BYTES_IN_MEMORY = 64 << 20


class Spool:
    """Documents in the order in which they were added; in memory as long as they take little of it.

    What lies on disk is a file in `folder` without a name: it goes when the process ends, however that happens.
    """

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_BYTES_IN_MEMORY, dir=str(folder))  # noqa: SIM115
        self._count = 0

    def add(self, document: Document) -> None:
        """Keep one more."""
        held = asdict(document) | {"metadata": dict(document.metadata)}
        self._file.write(json.dumps(held).encode("ascii") + b"\n")
        self._count += 1

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Document]:
        self._file.seek(0)
        for line in self._file:
            held = json.loads(line)
            headings = tuple((place, words) for place, words in held.pop("headings"))
            yield Document(**held, headings=headings)

    def close(self) -> None:
        """Let the documents go."""
        self._file.close()
