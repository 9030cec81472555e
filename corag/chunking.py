"""Cuts a document into chunks of at most so many tokens, at the best boundary that fits."""

import logging
from bisect import bisect_left
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


def chunk_document(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """The document's chunks, in order: `document.text[start:end] == text`, at most `chunk_tokens` tokens each.

    Without overlap the chunks cover the text but for stretches of white space alone; white space between two chunks
    belongs to the first. A grapheme that alone exceeds the limit is emitted whole, with a warning. The chunk id is the
    document's id and the chunk's position.
    """
    text = document.text
    starts = [start for start, _ in tokenizer.offsets(text)]
    chunks: list[Chunk] = []
    begin = finished = 0
    while finished < len(text):
        end = _end_of_chunk(text, begin, starts, tokenizer, settings.chunk_tokens)
        if end <= finished:
            # The overlap left no room for anything new: go on without it.
            begin = finished
            continue
        piece = text[begin:end]
        if piece.strip():
            tokens = tokenizer.count(piece)
            if tokens > settings.chunk_tokens:
                logger.warning(
                    "%s: the character at %d takes %d tokens, more than chunk_tokens (%d); it is kept alone",
                    document.doc_id,
                    begin,
                    tokens,
                    settings.chunk_tokens,
                )
            position = len(chunks)
            chunks.append(
                Chunk(
                    chunk_id=f"{document.doc_id}#{position:04d}",
                    doc_id=document.doc_id,
                    position=position,
                    start=begin,
                    end=end,
                    text=piece,
                    tokens=tokens,
                    title=document.title,
                    metadata=document.metadata,
                )
            )
        finished = end
        begin = _start_of_next(text, begin, end, starts, settings.chunk_overlap)
    return chunks


def _end_of_chunk(text: str, begin: int, starts: Sequence[int], tokenizer: Tokenizer, limit: int) -> int:
    """The end of the longest span from `begin` that ends at the best kind of boundary and keeps the limit."""
    first = bisect_left(starts, begin)
    reach = starts[first + limit] if first + limit < len(starts) else len(text)
    reach = max(reach, begin + 1)
    while True:
        end = reach if reach == len(text) else _boundary(text, begin, reach)
        if end <= begin:
            return _one_grapheme(text, begin)
        # Cut off from its surroundings a span may count a token more than inside them: measure it itself.
        if tokenizer.count(text[begin:end]) <= limit:
            return end
        shorter = _boundary(text, begin, end - 1) if end - 1 > begin else begin
        if shorter <= begin:
            return _one_grapheme(text, begin)
        reach = shorter


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


def _one_grapheme(text: str, begin: int) -> int:
    import regex

    match = regex.compile(r"\X").match(text, begin, min(len(text), begin + 64))
    return match.end() if match else begin + 1


def _start_of_next(text: str, begin: int, end: int, starts: Sequence[int], overlap: int) -> int:
    """Where the next chunk starts: `overlap` tokens before `end`, moved forward to a word's start."""
    if not overlap or end >= len(text):
        return end
    back = starts[max(0, bisect_left(starts, end) - overlap)]
    if back <= begin:
        return end
    for match in _pattern(2).finditer(text, back, end):
        if match.end() < end:
            return match.end()
    graphemes = _pattern(3).finditer(text, begin, end)
    return next((match.start() for match in graphemes if match.start() >= back), end)


@cache
def _pattern(level: int) -> "Pattern[str]":
    import regex

    return regex.compile(BOUNDARIES[level])
