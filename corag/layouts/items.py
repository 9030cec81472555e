"""What the readers of all layouts share: what they yield, and how their files are read and written."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from corag.errors import InputError
from corag.quarantine import Rejected
from corag.values import Document, Question

Item = Document | Question | Rejected


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        InputError: it is missing or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; the layout needs it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); it must be a UTF-8 file") from None


def read_json(path: Path) -> Any:
    """The value of a JSON file.

    Raises:
        InputError: it is missing or no JSON.
    """
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no JSON ({error}); check that it was downloaded whole") from None


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]] | Rejected]:
    """The objects of a file of JSON lines, each with its line; a line that holds none is refused."""
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            yield refused(path, line, f"is no JSON ({error})")
            continue
        yield (line, value) if isinstance(value, dict) else refused(path, line, "is no JSON object")


def refused(path: Path, line: int | None, reason: str) -> Rejected:
    """A record that cannot be used."""
    return Rejected(str(path), line, reason)


def broken(path: Path, place: int, error: Exception) -> Rejected:
    """A record, the so many-th of its file, that lacks a field or holds another type."""
    missing = f"lacks the field {error}" if isinstance(error, KeyError) else f"has an unexpected form ({error})"
    return refused(path, place, missing)


def text_id(text: str, name: str = "p") -> str:
    """A stable id for a text that has none: equal texts under one name share it."""
    return f"{name}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"


@contextmanager
def replaced(path: Path) -> Iterator[TextIO]:
    """A file to write, which takes the place of `path` when all is written."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with aside.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            yield file
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
