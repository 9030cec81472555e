"""Reads a corpus: files and folders into documents, and what cannot be read into rejections."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corag.errors import InputError
from corag.quarantine import Rejected
from corag.readers.folders import Choice, Found
from corag.readers.single_file import SUFFIXES, read_file
from corag.readers.sources import corpus_files
from corag.values import Document

__all__ = [
    "SUFFIXES",
    "Choice",
    "Found",
    "Reading",
    "corpus_files",
    "place",
    "read_documents",
    "read_file",
    "two_texts",
]


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: `read` records and files are either among the documents or among the rejected."""

    documents: list[Document]
    rejected: list[Rejected]
    read: int


def read_documents(paths: Sequence[str], patterns: Sequence[str], ignore: Sequence[str]) -> Reading:
    """The documents of files, folders and URLs, in sorted order.

    A folder is read with all folders below it; `patterns` and `ignore` match paths relative to it. The document id
    of a file with one text is that relative path (for a single file its name), of a record its `doc_id`. `sample` is
    the bundled corpus. Hidden files are passed over.

    Raises:
        InputError: a path does not exist, or two documents share an id.
    """
    documents: dict[str, tuple[str, Document]] = {}
    rejected: list[Rejected] = []
    for one, where in _read_all(paths, Choice(patterns, ignore, SUFFIXES)):
        if isinstance(one, Rejected):
            rejected.append(one)
        elif one.doc_id not in documents:
            documents[one.doc_id] = (where, one)
        elif documents[one.doc_id][1] == one:
            rejected.append(Rejected(where, None, f"the same record as {documents[one.doc_id][0]}", one.doc_id))
        else:
            raise two_texts(one.doc_id, documents[one.doc_id][0], where)
    return Reading([one for _, one in documents.values()], rejected, len(documents) + len(rejected))


def place(source: str, line: int | None) -> str:
    """Where a document stands: its file, and the line of a record."""
    return source if line is None else f"{source}:{line}"


def two_texts(doc_id: str, first: str, second: str) -> InputError:
    """The error of one id that stands for two documents, which are at `first` and `second`."""
    return InputError(
        f"document id {doc_id!r} stands for two different documents: {first} and {second}; "
        "give each its own doc_id, or name the folder that holds both files"
    )


def _read_all(paths: Sequence[str], choice: Choice) -> Iterator[tuple[Document | Rejected, str]]:
    for given in paths:
        for found in corpus_files(given, choice):
            if isinstance(found, Rejected):
                yield found, found.source
            else:
                for one, line in read_file(found):
                    yield one, place(found.source, line)
