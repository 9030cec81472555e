"""One document a file: plain text and Markdown."""

import logging
from pathlib import Path

from corag.quarantine import Rejected
from corag.values import Document

logger = logging.getLogger(__name__)

LIKELY_ENCODINGS = ("utf_16", "cp1252", "cp1251", "gb18030", "shift_jis", "big5", "euc_kr")
"""What files that are not UTF-8 are mostly in. Among all encodings a short text is easily taken for a rare one."""


def read_text_file(path: Path, doc_id: str) -> Document | Rejected:
    """The file's text as it stands, but for a byte-order mark; its title from the first heading or line.

    UTF-8 is expected; another encoding is detected where that is certain enough, and told in the log.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        return Rejected(str(path), None, f"cannot be read ({error.strerror})")
    text = _decode(raw, path)
    if text is None:
        return Rejected(str(path), None, "not text in any encoding that could be told; save it as UTF-8")
    if not text.strip():
        return Rejected(str(path), None, "empty")
    return Document(doc_id, _title(text, path), text, {"source": doc_id})


def _decode(raw: bytes, path: Path) -> str | None:
    try:
        return raw.decode("utf-8-sig").replace("\x00", "\ufffd")
    except UnicodeDecodeError:
        from charset_normalizer import from_bytes

        best = from_bytes(raw, cp_isolation=list(LIKELY_ENCODINGS)).best()
        if best is None or (b"\x00" in raw and not best.encoding.startswith("utf_")):
            return None
        logger.warning("%s: is not UTF-8; read as %s", path, best.encoding)
        return str(best).removeprefix("\ufeff")


def _title(text: str, path: Path) -> str:
    first = text.lstrip().split("\n", 1)[0].strip()
    if path.suffix.lower() == ".md":
        heading = next((line for line in text.split("\n") if line.startswith("# ")), "")
        return heading.removeprefix("# ").strip() or path.stem
    return first if len(first) <= 120 else path.stem
