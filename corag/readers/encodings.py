"""Tells which encoding the bytes of a text file are in."""

import codecs
from dataclasses import dataclass

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    # The mark of UTF-32 begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

LIKELY_ENCODINGS = ("cp1252", "cp1251", "gb18030", "shift_jis", "big5", "euc_kr")
"""What files that are not Unicode are mostly in. Among all encodings a short text is easily taken for a rare one."""

NUL_SHARE = 0.3
"""Where more of every second byte is NUL than this, the text is UTF-16 without a mark."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text without a byte-order mark, NULs shown as U+FFFD. `guessed`: nothing in the file names its encoding."""

    text: str
    encoding: str
    guessed: bool = False


def decode(raw: bytes, declared: str | None = None) -> Decoded | str:
    """The text of `raw`, or the reason why there is none; `declared` is what the file itself says of its encoding."""
    for mark, encoding in MARKS:
        if raw.startswith(mark):
            return _strictly(raw.removeprefix(mark), encoding)
    wide = _utf16_without_mark(raw)
    if wide is not None and isinstance(found := _strictly(raw, wide), Decoded):
        return Decoded(found.text, wide, guessed=True)
    found = _strictly(raw, "utf-8")
    if isinstance(found, Decoded):
        return found
    # Browsers take these for what they nearly always are.
    named = "cp1252" if declared is not None and declared.lower() in ("iso-8859-1", "latin1", "us-ascii") else declared
    if named is not None and isinstance(said := _strictly(raw, named), Decoded):
        return said
    if _is_damaged_utf8(raw) or (guess := _guess(raw)) is None:
        return f"{found}, nor in another encoding that could be told; save it as UTF-8"
    return guess


def _strictly(raw: bytes, encoding: str) -> Decoded | str:
    try:
        return Decoded(raw.decode(encoding).replace("\x00", "\ufffd"), encoding)
    except UnicodeDecodeError as error:
        return f"not {encoding.upper()} (byte {error.start})"
    except LookupError:
        return f"unknown encoding {encoding!r}"


def _utf16_without_mark(raw: bytes) -> str | None:
    half = len(raw) // 2
    if len(raw) % 2 or not half:
        return None
    even, odd = raw[0::2].count(0) / half, raw[1::2].count(0) / half
    if max(even, odd) < NUL_SHARE or min(even, odd) > NUL_SHARE / 10:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _is_damaged_utf8(raw: bytes) -> bool:
    """Whether more characters beyond ASCII are right UTF-8 than wrong: another encoding would garble all of them."""
    text = raw.decode("utf-8", "surrogateescape")
    wrong = sum("\udc80" <= one <= "\udcff" for one in text)
    right = sum(one > "\x7f" for one in text) - wrong
    return right > wrong


def _guess(raw: bytes) -> Decoded | None:
    from charset_normalizer import from_bytes

    best = from_bytes(raw, cp_isolation=list(LIKELY_ENCODINGS)).best()
    if best is None or b"\x00" in raw:
        return None
    return Decoded(str(best), best.encoding, guessed=True)
