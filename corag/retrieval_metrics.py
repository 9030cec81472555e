"""How well retrieval found the documents that are known to be relevant: recall and nDCG."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from corag.values import Candidate, Chunk

NDCG_DEPTH = 10


@dataclass(frozen=True, slots=True)
class RetrievalScore:
    """Of one question: `recall` among its first k candidates, and `ndcg` at 10; both in [0, 1]."""

    recall: float
    ndcg: float


def score_retrieval(
    candidates: Sequence[Candidate],
    relevant_ids: Collection[str],
    k: int,
    copies: Mapping[str, Collection[str]] | None = None,
) -> RetrievalScore | None:
    """How well `candidates`, best first, hold the documents `relevant_ids`; None where none is known to be relevant.

    `copies` names, per text of a chunk, every document that holds it (see `documents_by_text`): retrieval returns one
    of equal texts, and any copy of a relevant document counts as that document.
    """
    if not relevant_ids:
        return None
    held = copies or {}
    ranked = [{one.chunk.doc_id, *held.get(one.chunk.text, ())} for one in candidates]
    return RetrievalScore(recall_at(ranked, relevant_ids, k), ndcg_at(ranked, relevant_ids, NDCG_DEPTH))


def documents_by_text(chunks: Iterable[Chunk]) -> dict[str, set[str]]:
    """Per text that several documents share, their ids."""
    holders: dict[str, set[str]] = {}
    for chunk in chunks:
        holders.setdefault(chunk.text, set()).add(chunk.doc_id)
    return {text: held for text, held in holders.items() if len(held) > 1}


def recall_at(ranked: Sequence[Collection[str]], relevant_ids: Collection[str], k: int) -> float:
    """The share of `relevant_ids` among the documents of the first `k` candidates.

    `ranked` has, per candidate, the ids of the documents that it stands for.
    """
    found = {doc_id for documents in ranked[:k] for doc_id in documents}
    return len(found & set(relevant_ids)) / len(set(relevant_ids))


def ndcg_at(ranked: Sequence[Collection[str]], relevant_ids: Collection[str], k: int) -> float:
    """The discounted gain of the first `k` documents against that of the best possible order: Σ 1/log2(rank + 1).

    Documents count at their first candidate; more candidates of a document take no rank of their own.
    """
    wanted, seen, rank, gain = set(relevant_ids), set[str](), 0, 0.0
    for documents in ranked:
        new = set(documents) - seen
        if not new:
            continue
        seen |= new
        for _ in range(max(1, len(new & wanted))):
            rank += 1
            if rank <= k and new & wanted:
                gain += 1 / math.log2(rank + 1)
    best = sum(1 / math.log2(place + 1) for place in range(1, min(k, len(wanted)) + 1))
    return gain / best
