"""The same chunks in another order: what tells the worth of an order from that of the set."""

import random
from collections.abc import Sequence

from corag.values import Chunk


def in_document_order(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """The chunks by document, then by their place in it."""
    return tuple(sorted(chunks, key=lambda chunk: (chunk.doc_id, chunk.position, chunk.chunk_id)))


def shuffled(chunks: Sequence[Chunk], seed: int, qid: str) -> tuple[Chunk, ...]:
    """The chunks in an order drawn by the seed and the question: it depends on the set, not on the order given."""
    mixed = list(in_document_order(chunks))
    random.Random(f"{seed} {qid}").shuffle(mixed)  # noqa: S311 - a sample, not a secret
    return tuple(mixed)
