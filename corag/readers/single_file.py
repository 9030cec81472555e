"""Reads one file of a corpus, whatever its kind, here or behind a URL."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

from corag.quarantine import Rejected
from corag.readers.docx_files import read_docx_file
from corag.readers.folders import Found
from corag.readers.html_files import read_html_file
from corag.readers.pdf_files import read_pdf_file
from corag.readers.record_files import read_record_file
from corag.readers.remote import fetched, is_url
from corag.readers.text_files import read_text_file
from corag.records import RECORD_SUFFIXES
from corag.values import Document

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

Read = tuple[Document | Rejected, int | None]
"""A document or the reason why there is none, with the line on which it stands; None for a whole file."""


def read_file(found: Found) -> Iterator[Read]:
    """What the file holds; where it cannot be opened, a refusal of the whole file."""
    try:
        if not is_url(found.source):
            yield from _read_here(Path(found.source), found)
            return
        with fetched(found.source) as copy:
            for one, line in _read_here(copy, found):
                yield (_as_of(found.source, copy, one) if isinstance(one, Rejected) else one), line
    except OSError as error:
        yield Rejected(found.source, None, f"cannot be read ({error.strerror or error})"), None


def _as_of(source: str, copy: Path, rejected: Rejected) -> Rejected:
    return dataclasses.replace(rejected, source=source, reason=rejected.reason.replace(str(copy), source))


def _read_here(path: Path, found: Found) -> Iterator[Read]:
    suffix = found.suffix
    if suffix in RECORD_SUFFIXES:
        yield from read_record_file(path, found.name)
    elif suffix in TEXT_READERS:
        yield TEXT_READERS[suffix](path, found.name), None
    else:
        yield _read_by_library(path, found.name, *LIBRARY_READERS[suffix]), None


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
