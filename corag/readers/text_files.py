"""One document a file: plain text and Markdown."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

from corag.quarantine import Rejected
from corag.readers.encodings import decode
from corag.values import Document

logger = logging.getLogger(__name__)

HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")

LONGEST_TITLE = 120
"""Characters: a longer first line is no title."""


def read_text_file(path: Path, doc_id: str) -> Document | Rejected:
    """The file's text as it stands, but for a byte-order mark; its title from the first heading or line.

    UTF-8 is expected; another encoding is detected where that is certain enough, and told in the log.
    """
    found = decode(path.read_bytes())
    if isinstance(found, str):
        return Rejected(str(path), None, found)
    if found.guessed:
        logger.warning("%s: is not UTF-8; read as %s", path, found.encoding)
    if not found.text.strip():
        return Rejected(str(path), None, "empty")
    if path.suffix.lower() != ".md":
        return Document(doc_id, first_line(found.text) or path.stem, found.text, {"source": doc_id})
    headings = list(_headings(found.text))
    title = next((words for level, _, words in headings if level == 1), "")
    below = tuple((place, words) for _, place, words in headings if words != title)
    return Document(doc_id, title or path.stem, found.text, {"source": doc_id}, below)


def first_line(text: str) -> str:
    """The first line that is not blank, or nothing where it is too long for a title."""
    first = text.lstrip().split("\n", 1)[0].strip()
    return first if len(first) <= LONGEST_TITLE else ""


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Level, place and words of each heading outside of code."""
    in_code, place = False, 0
    for line in text.splitlines(keepends=True):
        if line.startswith(("```", "~~~")):
            in_code = not in_code
        elif not in_code and (found := HEADING.match(line)) is not None:
            yield len(found[1]), place, found[2].strip()
        place += len(line)
