"""One document a web page: its main text, without navigation, scripts and comments."""

import logging
import re
from pathlib import Path

from corag.quarantine import Rejected
from corag.readers.encodings import decode
from corag.readers.text_files import first_line
from corag.values import Document

logger = logging.getLogger(__name__)

DECLARED = re.compile(rb"""<(?:meta[^>]*charset|\?xml[^>]*encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
"""Where a page names its own encoding, in its first kilobytes."""


def read_html_file(path: Path, doc_id: str) -> Document | Rejected:
    """The page's main text and title, by trafilatura."""
    import trafilatura

    raw = path.read_bytes()
    declared = DECLARED.search(raw[:4096])
    found = decode(raw, declared[1].decode("ascii") if declared else None)
    if isinstance(found, str):
        return Rejected(str(path), None, found)
    if found.guessed:
        logger.warning("%s: is not UTF-8; read as %s", path, found.encoding)
    if not found.text.strip():
        return Rejected(str(path), None, "empty")
    page = trafilatura.bare_extraction(found.text, include_comments=False, include_tables=True, with_metadata=True)
    assert not isinstance(page, dict), "only with as_dict"
    text = (page.text if page is not None else None) or ""
    if page is None or not text.strip():
        return Rejected(str(path), None, "no main text found: navigation, scripts or pictures alone, or no web page")
    return Document(doc_id, page.title or first_line(text) or path.stem, text, {"source": doc_id})
