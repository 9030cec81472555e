"""Words of any script, for ROUGE, BM25 and telling near-duplicate questions apart."""

import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regex import Pattern

UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30fc"
"""Scripts written without spaces: one character with its marks is one word. U+30FC lengthens a vowel of Katakana."""


@cache
def _pattern() -> "Pattern[str]":
    import regex

    return regex.compile(rf"[{UNSPACED}]\p{{M}}*|(?:(?![{UNSPACED}])[\p{{L}}\p{{N}}\p{{M}}])+")


def words(text: str) -> list[str]:
    """The words of `text`: compatibility-normalised, case-folded, without punctuation."""
    return _pattern().findall(unicodedata.normalize("NFKC", text).casefold())


def normalized(text: str) -> str:
    """The words of `text` joined by one space: equal for texts that differ in case, spaces or punctuation only."""
    return " ".join(words(text))
