"""Reads a corpus: files and folders into documents, and what cannot be read into rejections."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from corag.errors import InputError
from corag.quarantine import Rejected
from corag.readers.record_files import read_record_file
from corag.readers.text_files import read_text_file
from corag.records import RECORD_SUFFIXES
from corag.settings import SAMPLE
from corag.values import Document

__all__ = ["Reading", "read_documents"]

logger = logging.getLogger(__name__)

TEXT_SUFFIXES = (".txt", ".md")
SUFFIXES = (*TEXT_SUFFIXES, *RECORD_SUFFIXES)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: `read` records and files are either among the documents or among the rejected."""

    documents: list[Document]
    rejected: list[Rejected]
    read: int


def read_documents(paths: Sequence[str], patterns: Sequence[str], ignore: Sequence[str]) -> Reading:
    """The documents of files and folders, in sorted order.

    A folder is read with all folders below it; `patterns` and `ignore` match paths relative to it. The document id
    of a text file is that relative path (for a single file its name), of a record its `doc_id`. `sample` is the
    bundled corpus. Hidden files are passed over.

    Raises:
        InputError: a path does not exist, or two documents share an id.
    """
    documents: list[Document] = []
    rejected: list[Rejected] = []
    places: dict[str, tuple[str, Document]] = {}
    for path, name in _files(paths, patterns, ignore):
        for one, where in _read_file(path, name):
            if isinstance(one, Rejected):
                rejected.append(one)
            elif one.doc_id not in places:
                places[one.doc_id] = (where, one)
                documents.append(one)
            elif places[one.doc_id][1] == one:
                rejected.append(Rejected(where, None, f"the same record as {places[one.doc_id][0]}", one.doc_id))
            else:
                raise InputError(
                    f"document id {one.doc_id!r} stands for two different texts: {places[one.doc_id][0]} and {where}; "
                    "give each its own doc_id"
                )
    return Reading(documents, rejected, len(documents) + len(rejected))


def _read_file(path: Path, name: str) -> Iterator[tuple[Document | Rejected, str]]:
    if path.suffix.lower() in RECORD_SUFFIXES:
        yield from read_record_file(path, name)
    else:
        yield read_text_file(path, name), str(path)


def _files(paths: Sequence[str], patterns: Sequence[str], ignore: Sequence[str]) -> Iterator[tuple[Path, str]]:
    for given in paths:
        path = Path(__file__).parent.parent / "sample" / "corpus" if given == SAMPLE else Path(given)
        if path.is_dir():
            yield from _files_below(path, patterns, ignore)
        elif path.exists():
            if path.suffix.lower() not in SUFFIXES:
                raise InputError(f"{path}: files of this kind are not read; convert it to one of {', '.join(SUFFIXES)}")
            yield path, path.name
        else:
            raise InputError(f"{given}: no such file or folder; check corpus.paths")


def _files_below(folder: Path, patterns: Sequence[str], ignore: Sequence[str]) -> Iterator[tuple[Path, str]]:
    passed_over = 0
    # rglob does not follow links to folders, so that a loop of links ends.
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        name = relative.as_posix()
        if any(part.startswith(".") for part in relative.parts) or not path.is_file():
            continue
        if not any(_matches(name, pattern) for pattern in patterns) or any(_matches(name, one) for one in ignore):
            continue
        if path.suffix.lower() in SUFFIXES:
            yield path, name
        else:
            passed_over += 1
    if passed_over:
        logger.info("%s: %d files of other kinds than %s were passed over", folder, passed_over, ", ".join(SUFFIXES))


def _matches(name: str, pattern: str) -> bool:
    return fnmatch(name, pattern) or (pattern.startswith("**/") and fnmatch(name, pattern[3:]))
