"""One document a PDF: the text layer of its pages."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corag.quarantine import Rejected
from corag.readers.text_files import first_line
from corag.records import scrub
from corag.values import Document

logger = logging.getLogger(__name__)


def read_pdf_file(path: Path, doc_id: str) -> Document | Rejected:
    """The text of the pages, two line feeds between them, by pypdf; a scan without a text layer is refused."""
    import pypdf

    if not path.stat().st_size:
        return Rejected(str(path), None, "empty")
    with _errors_only("pypdf"), pypdf.PdfReader(path) as reader:
        if reader.is_encrypted and not reader.decrypt(""):
            return Rejected(str(path), None, "is encrypted; save it without a password")
        pages = [scrub(page.extract_text()).replace("\x00", "\ufffd") for page in reader.pages]
        named = reader.metadata.title if reader.metadata is not None else None
    blank = sum(not page.strip() for page in pages)
    if blank == len(pages):
        return Rejected(
            str(path), None, f"{blank} pages without a text layer, as of a scan; run text recognition first"
        )
    if blank:
        logger.warning("%s: %d of %d pages have no text", path, blank, len(pages))
    text = "\n\n".join(page for page in pages if page.strip())
    title = scrub(str(named or "")).replace("\x00", "").strip()
    return Document(doc_id, title or first_line(text) or path.stem, text, {"source": doc_id})


@contextmanager
def _errors_only(name: str) -> Iterator[None]:
    """Silence the warnings that the library logs for nearly every file that another program than its own wrote."""
    library = logging.getLogger(name)
    before = library.level
    library.setLevel(logging.ERROR)
    try:
        yield
    finally:
        library.setLevel(before)
