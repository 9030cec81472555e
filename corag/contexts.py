"""Contexts made without a search: the relevant chunks of a question, and random ones, within the budget."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from corag.values import Chunk
from corag.words import words


def relevant_context(
    chunks_by_document: Mapping[str, Sequence[Chunk]],
    relevant_ids: Sequence[str],
    references: Sequence[str],
    budget: int,
) -> list[Chunk]:
    """The chunk of each relevant document that says most of a reference, in the order of the documents, within B.

    What a chunk says of a reference is the share of the reference's words that it holds; without a reference the first
    chunk is taken. An empty list means that no relevant document is in the store.
    """
    wanted = [set(words(reference)) for reference in references]

    def said(chunk: Chunk) -> float:
        held = set(words(chunk.text))
        return max((len(need & held) / len(need) for need in wanted if need), default=0.0)

    chosen: list[Chunk] = []
    texts: set[str] = set()
    spent = 0
    for doc_id in relevant_ids:
        chunks = chunks_by_document.get(doc_id)
        if not chunks:
            continue
        best = max(chunks, key=lambda chunk: (said(chunk), -chunk.position))
        if best.text not in texts and spent + best.tokens <= budget:
            chosen.append(best)
            texts.add(best.text)
            spent += best.tokens
    return chosen


def random_context(chunks: Sequence[Chunk], excluded: Sequence[str], budget: int, seed: int) -> list[Chunk]:
    """Chunks of other documents than `excluded`, drawn with the seed until the budget is spent."""
    banned = set(excluded)
    pool = sorted((chunk for chunk in chunks if chunk.doc_id not in banned), key=lambda chunk: chunk.chunk_id)
    random.Random(seed).shuffle(pool)  # noqa: S311 - a sample, not a secret
    chosen: list[Chunk] = []
    spent = 0
    for chunk in pool:
        if spent + chunk.tokens > budget:
            break
        chosen.append(chunk)
        spent += chunk.tokens
    return chosen


def group_by_document(chunks: Sequence[Chunk]) -> dict[str, list[Chunk]]:
    """The chunks of each document in the order of their position."""
    grouped: dict[str, list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        grouped[chunk.doc_id].append(chunk)
    return {doc_id: sorted(grouped[doc_id], key=lambda chunk: chunk.position) for doc_id in sorted(grouped)}
