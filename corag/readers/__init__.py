"""Reads a corpus: files and folders into documents, and what cannot be read into rejections."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from corag.errors import InputError
from corag.quarantine import Rejected
from corag.readers.docx_files import read_docx_file
from corag.readers.folders import Choice, Found, files_below, readable_name
from corag.readers.html_files import read_html_file
from corag.readers.pdf_files import read_pdf_file
from corag.readers.record_files import read_record_file
from corag.readers.text_files import read_text_file
from corag.records import RECORD_SUFFIXES
from corag.settings import SAMPLE
from corag.values import Document

__all__ = ["SUFFIXES", "Reading", "read_documents"]

logger = logging.getLogger(__name__)

FileReader = Callable[[Path, str], Document | Rejected]

TEXT_READERS: dict[str, FileReader] = {".txt": read_text_file, ".md": read_text_file}

LIBRARY_READERS: dict[str, tuple[FileReader, str]] = {
    ".html": (read_html_file, "trafilatura"),
    ".htm": (read_html_file, "trafilatura"),
    ".pdf": (read_pdf_file, "pypdf"),
    ".docx": (read_docx_file, "python-docx"),
}
"""Readers over a library that need not be installed, with its name in the package registry."""

SUFFIXES = (*TEXT_READERS, *LIBRARY_READERS, *RECORD_SUFFIXES)

SAMPLE_CORPUS = Path(__file__).parent.parent / "sample" / "corpus"


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: `read` records and files are either among the documents or among the rejected."""

    documents: list[Document]
    rejected: list[Rejected]
    read: int


def read_documents(paths: Sequence[str], patterns: Sequence[str], ignore: Sequence[str]) -> Reading:
    """The documents of files and folders, in sorted order.

    A folder is read with all folders below it; `patterns` and `ignore` match paths relative to it. The document id
    of a file with one text is that relative path (for a single file its name), of a record its `doc_id`. `sample` is
    the bundled corpus. Hidden files are passed over.

    Raises:
        InputError: a path does not exist, or two documents share an id.
    """
    documents: list[Document] = []
    rejected: list[Rejected] = []
    places: dict[str, tuple[str, Document]] = {}
    for one, where in _read_all(paths, Choice(patterns, ignore, SUFFIXES)):
        if isinstance(one, Rejected):
            rejected.append(one)
        elif one.doc_id not in places:
            places[one.doc_id] = (where, one)
            documents.append(one)
        elif places[one.doc_id][1] == one:
            rejected.append(Rejected(where, None, f"the same record as {places[one.doc_id][0]}", one.doc_id))
        else:
            raise InputError(
                f"document id {one.doc_id!r} stands for two different documents: {places[one.doc_id][0]} and {where}; "
                "give each its own doc_id, or name the folder that holds both files"
            )
    return Reading(documents, rejected, len(documents) + len(rejected))


def _read_all(paths: Sequence[str], choice: Choice) -> Iterator[tuple[Document | Rejected, str]]:
    for given in paths:
        for found in _files(given, choice):
            if isinstance(found, Rejected):
                yield found, found.source
            elif found.path.suffix.lower() in RECORD_SUFFIXES:
                yield from read_record_file(found.path, found.name)
            else:
                yield _read_file(found), str(found.path)


def _files(given: str, choice: Choice) -> Iterator[Found | Rejected]:
    path = SAMPLE_CORPUS if given == SAMPLE else Path(given)
    try:
        if path.is_dir():
            yield from files_below(path, choice)
            return
        present = path.exists()
    except OSError as error:
        raise InputError(f"{given}: cannot be read ({error.strerror}); check its rights") from None
    if not present:
        raise InputError(f"{given}: no such file or folder; check corpus.paths")
    if not path.is_file():
        raise InputError(f"{given}: is neither a file nor a folder; check corpus.paths")
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: files of this kind are not read; convert it to one of {', '.join(SUFFIXES)}")
    yield Found(path, readable_name(path.name))


def _read_file(found: Found) -> Document | Rejected:
    path, suffix = found.path, found.path.suffix.lower()
    try:
        if suffix in TEXT_READERS:
            return TEXT_READERS[suffix](path, found.name)
        return _read_by_library(path, found.name, *LIBRARY_READERS[suffix])
    except OSError as error:
        return Rejected(str(path), None, f"cannot be read ({error.strerror or error})")


def _read_by_library(path: Path, name: str, read: FileReader, package: str) -> Document | Rejected:
    try:
        return read(path, name)
    except ImportError:
        return Rejected(str(path), None, f"files of this kind need the package {package}; pip install {package}")
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - on damaged files the libraries raise whatever they stumble over
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return Rejected(str(path), None, f"{package} cannot read it ({reason}); repair or convert it")
