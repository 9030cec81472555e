"""The texts of the cited documents, with the cited spans marked."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corag.values import Chunk

AROUND = 4_000
"""Characters that are kept on either side of a cited span of a long document."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a document's text. `begins`: the citations (from 1) that begin with it; `cited`: it is cited.

    A piece that is left out has an empty text and says in `omitted` how many characters it had.
    """

    text: str
    cited: bool = False
    begins: tuple[int, ...] = ()
    omitted: int = 0


def document_texts(chunks: Iterable[Chunk]) -> dict[str, str]:
    """The text of each document by id, put together from its chunks; white space that no chunk holds is a blank."""
    texts: dict[str, str] = {}
    for chunk in sorted(chunks, key=lambda one: (one.doc_id, one.start)):
        text = texts.get(chunk.doc_id, "")
        text += " " * (chunk.start - len(text))
        texts[chunk.doc_id] = text + chunk.text[max(0, len(text) - chunk.start) :]
    return texts


def segments(text: str, cited: Sequence[tuple[int, Chunk]], around: int = AROUND) -> list[Segment]:
    """The document's text cut where citations begin and end; spans may overlap. `cited`: (place, chunk) of this text.

    Of what is not cited, all but the `around` characters next to a citation are left out.
    """
    cuts = sorted({0, len(text), *(cut for _, chunk in cited for cut in (chunk.start, chunk.end))})
    found: list[Segment] = []
    for start, end in itertools.pairwise(cuts):
        covered = any(chunk.start <= start and end <= chunk.end for _, chunk in cited)
        begins = tuple(place for place, chunk in cited if chunk.start == start)
        if covered:
            found.append(Segment(text[start:end], True, begins))
        else:
            found += _shortened(text[start:end], around, first=start == 0, last=end == len(text))
    return found


def _shortened(text: str, around: int, first: bool, last: bool) -> list[Segment]:
    """Text between citations without its far middle; before the first and after the last it has one near side only."""
    head, tail = 0 if first else around, 0 if last else around
    omitted = len(text) - head - tail
    if omitted <= 0:
        return [Segment(text)]
    kept = [Segment(text[:head]), Segment("", omitted=omitted), Segment(text[len(text) - tail :])]
    return [one for one in kept if one.text or one.omitted]
