"""One document a file: plain text and Markdown."""

import logging
from pathlib import Path

from corag.quarantine import Rejected
from corag.readers.encodings import decode
from corag.values import Document

logger = logging.getLogger(__name__)

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
    title = _heading(found.text) if path.suffix.lower() == ".md" else first_line(found.text)
    return Document(doc_id, title or path.stem, found.text, {"source": doc_id})


def first_line(text: str) -> str:
    """The first line that is not blank, or nothing where it is too long for a title."""
    first = text.lstrip().split("\n", 1)[0].strip()
    return first if len(first) <= LONGEST_TITLE else ""


def _heading(text: str) -> str:
    """The first heading of the first level, outside of code."""
    in_code = False
    for line in text.splitlines():
        if line.startswith(("```", "~~~")):
            in_code = not in_code
        elif line.startswith("# ") and not in_code:
            return line.removeprefix("# ").strip()
    return ""
