"""Cuts a document into chunks of at most so many tokens, at the best boundary that fits."""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from corag.settings import ChunkingSettings
from corag.tokens import Tokenizer
from corag.values import Chunk, Document

if TYPE_CHECKING:
    from regex import Pattern

logger = logging.getLogger(__name__)

GRAPHEME_GOES_ON = r"(?![\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}])"
"""No boundary before a mark: it belongs to the character before it, be that a space or a comma."""

BOUNDARIES = (
    r"(?:\n\s*\n\s*+|(?<=[.!?…][\"'”’)\]]*)\s++|(?<=[。！？…][”’」』）]*)(?![”’」』）。！？…])\s*+|\n\s*+)"
    + GRAPHEME_GOES_ON,
    r"(?<=[,;:،、，；：])\s*+" + GRAPHEME_GOES_ON,
    r"\s++" + GRAPHEME_GOES_ON,
    r"\X",
)
"""Where a chunk may end, best first: sentence or paragraph, clause, word, grapheme."""

WORD, GRAPHEME = 2, 3

HEADING = "heading"
"""The metadata field of a chunk's heading."""

LONGEST_GRAPHEME = 64
"""Code points: a base with more marks than this is no character that anyone reads."""


def chunk_document(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """The document's chunks, in order: `document.text[start:end] == text`, at most `chunk_tokens` tokens each.

    Without overlap the chunks cover the text but for stretches of white space alone; white space between two chunks
    belongs to the first. A grapheme that alone exceeds the limit is split between its code points; a code point that
    alone does is kept, with a warning. The chunk id is the document's id and the chunk's position. The heading under
    which a chunk begins is its metadata `heading`, unless the document has such a field of its own.
    """
    text = document.text
    starts = [start for start, _ in tokenizer.offsets(text)]
    chunks: list[Chunk] = []
    begin = finished = 0
    while finished < len(text):
        end, tokens = _end_of_chunk(text, begin, starts, tokenizer, settings.chunk_tokens)
        if end <= finished:
            # The overlap left no room for anything new: go on without it.
            begin = finished
            continue
        if text[begin:end].strip():
            if tokens > settings.chunk_tokens:
                logger.warning(
                    "%s: the character at %d takes %d tokens, more than chunk_tokens (%d); it is kept alone",
                    document.doc_id,
                    begin,
                    tokens,
                    settings.chunk_tokens,
                )
            chunks.append(_chunk(document, len(chunks), begin, end, tokens))
        finished = end
        begin = _start_of_next(text, begin, end, starts, settings.chunk_overlap)
    return chunks


def _chunk(document: Document, position: int, start: int, end: int, tokens: int) -> Chunk:
    # A heading may stand right behind the white space that a chunk begins with.
    begins = start + len(document.text[start:end]) - len(document.text[start:end].lstrip())
    above = bisect_right(document.headings, begins, key=lambda heading: heading[0])
    heading = {HEADING: document.headings[above - 1][1]} if above else {}
    return Chunk(
        chunk_id=f"{document.doc_id}#{position:04d}",
        doc_id=document.doc_id,
        position=position,
        start=start,
        end=end,
        text=document.text[start:end],
        tokens=tokens,
        title=document.title,
        metadata={**heading, **document.metadata},
    )


def _end_of_chunk(text: str, begin: int, starts: Sequence[int], tokenizer: Tokenizer, limit: int) -> tuple[int, int]:
    """The end of the longest span from `begin` that ends at the best kind of boundary within the limit; its tokens."""
    first = bisect_left(starts, begin)
    reach = starts[first + limit] if first + limit < len(starts) else len(text)
    reach = max(reach, begin + 1)
    end = reach if reach == len(text) else _boundary(text, begin, reach)
    while end > begin:
        # Cut off from its surroundings a span may count a token more than inside them: measure it itself.
        tokens = tokenizer.count(text[begin:end])
        if tokens <= limit:
            return end, tokens
        end = _boundary(text, begin, end - 1)
    return _end_within_grapheme(text, begin, tokenizer, limit)


def _boundary(text: str, begin: int, reach: int) -> int:
    """The last boundary of the best kind in (begin, reach]; `begin` where there is none."""
    # One character more is looked at, to tell whether a grapheme or a run of spaces ends at `reach`.
    window = text[begin : reach + 1]
    for level in range(len(BOUNDARIES)):
        best = begin
        for match in _pattern(level).finditer(window):
            if 0 < match.end() <= reach - begin:
                best = begin + match.end()
        if best > begin:
            return best
    return begin


def _end_within_grapheme(text: str, begin: int, tokenizer: Tokenizer, limit: int) -> tuple[int, int]:
    """The end of the grapheme at `begin` and its tokens, or of as many of its code points as fit, but at least one."""
    match = _pattern(GRAPHEME).match(text[begin : begin + LONGEST_GRAPHEME])
    assert match is not None, "any text begins with a grapheme"
    end = begin + match.end()
    while True:
        tokens = tokenizer.count(text[begin:end])
        if tokens <= limit or end == begin + 1:
            return end, tokens
        end -= 1


def _start_of_next(text: str, begin: int, end: int, starts: Sequence[int], overlap: int) -> int:
    """Where the next chunk starts: `overlap` tokens before `end`, moved forward to a word's start."""
    if not overlap or end >= len(text):
        return end
    back = starts[max(0, bisect_left(starts, end) - overlap)]
    if back <= begin:
        return end
    # Slices, as a search inside the whole text would look back from each flag to the first of its row.
    for match in _pattern(WORD).finditer(text[back:end]):
        if back + match.end() < end:
            return back + match.end()
    graphemes = _pattern(GRAPHEME).finditer(text[begin:end])
    return next((begin + match.start() for match in graphemes if begin + match.start() >= back), end)


@cache
def _pattern(level: int) -> "Pattern[str]":
    import regex

    return regex.compile(BOUNDARIES[level])
