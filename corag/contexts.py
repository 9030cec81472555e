"""Contexts made without a search: the relevant chunks of a question, and random ones, within the budget."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from corag.values import Chunk

if TYPE_CHECKING:
    import numpy as np


def relevant_context(
    query_vector: "np.ndarray",
    chunks_by_document: Mapping[str, Sequence[Chunk]],
    vectors_by_document: Mapping[str, "np.ndarray"],
    relevant_ids: Sequence[str],
    budget: int,
) -> list[Chunk]:
    """The chunks of the relevant documents nearest to the question, taken in turn from each document, within B.

    Taking in turn gives a question about two documents a chunk of each. `query_vector` is [d], the vectors of a
    document [n, d]. An empty list means that no relevant document is in the store.
    """
    import numpy as np

    queues = []
    for doc_id in relevant_ids:
        chunks = chunks_by_document.get(doc_id)
        if chunks:
            similarity = vectors_by_document[doc_id] @ query_vector
            queues.append([chunks[index] for index in np.argsort(-similarity, kind="stable")])
    chosen: list[Chunk] = []
    spent = 0
    for turn in range(max((len(queue) for queue in queues), default=0)):
        for queue in queues:
            if turn < len(queue) and spent + queue[turn].tokens <= budget:
                chosen.append(queue[turn])
                spent += queue[turn].tokens
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
