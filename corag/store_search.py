"""The store's three ways to find candidates: by vector, by words, and by both."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corag.embedders.base import Vectors
from corag.store_schema import CHUNK_COLUMNS, to_chunks
from corag.values import Candidate

if TYPE_CHECKING:
    import pyarrow as pa

_QUERIES_PER_SCAN = 256
_SIMILARITY_DIGITS = 6
_FUSION_CONSTANT = 60
_QUERY_CHARACTERS = 2000
_LEAST_PROBES = 20
_PROBED_SHARE = 0.85
_REFINED = 30
"""How many times more candidates than asked for are compared by their exact vectors."""


def by_vector(table: Any, vectors: Vectors, limit: int, where: str | None, indexed_rows: int) -> list[list[Candidate]]:
    """Per query vector the `limit` nearest chunks by cosine, most similar first, ties by chunk id."""
    import pyarrow.compute as pc

    found: list[list[Candidate]] = []
    for start in range(0, len(vectors), _QUERIES_PER_SCAN):
        part = vectors[start : start + _QUERIES_PER_SCAN]
        query = table.search(part, vector_column_name="vector").distance_type("cosine").limit(limit)
        if where is not None:
            query = query.where(where, prefilter=True)
        if indexed_rows:
            # A share of the partitions, and all of them where a narrow filter leaves too few rows.
            query = query.minimum_nprobes(probes(indexed_rows)).maximum_nprobes(0).refine_factor(_REFINED)
        rows = query.select([*CHUNK_COLUMNS, "vector", "_distance"]).to_arrow()
        for index, vector in enumerate(part):
            own = rows.filter(pc.equal(rows["query_index"], index)) if "query_index" in rows.column_names else rows
            found.append(_by_similarity(_candidates(own, vector)))
    return found


def by_words(table: Any, text: str, vector: Vectors, limit: int, where: str | None) -> list[Candidate]:
    """The `limit` best chunks for the words of `text` (BM25), best first, ties by chunk id."""
    from lancedb.query import MatchQuery

    words = text[:_QUERY_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
    match = MatchQuery(words, "text")  # type: ignore[call-arg]  # its defaults are hidden from the type checker
    query = table.search(match, query_type="fts").limit(limit)
    if where is not None:
        query = query.where(where, prefilter=True)
    rows = query.select([*CHUNK_COLUMNS, "vector", "_score"]).to_arrow()
    scored = zip(rows["_score"].to_pylist(), _candidates(rows, vector), strict=True)
    return [candidate for _, candidate in sorted(scored, key=lambda pair: (-pair[0], pair[1].chunk.chunk_id))]


def fuse(rankings: Sequence[Sequence[Candidate]], limit: int) -> list[Candidate]:
    """The `limit` best of several rankings by reciprocal rank fusion, ties by similarity, then chunk id."""
    points: dict[str, float] = {}
    candidates: dict[str, Candidate] = {}
    for ranking in rankings:
        for rank, candidate in enumerate(ranking, start=1):
            name = candidate.chunk.chunk_id
            points[name] = points.get(name, 0.0) + 1.0 / (_FUSION_CONSTANT + rank)
            candidates[name] = candidate
    order = sorted(candidates, key=lambda name: (-points[name], -candidates[name].similarity, name))
    return [candidates[name] for name in order[:limit]]


def partitions(rows: int) -> int:
    """How many partitions the vector index of `rows` rows gets; fewer are quicker to build, more to skip."""
    return max(1, round(rows**0.5 / 4))


def probes(rows: int) -> int:
    """How many partitions a query looks into."""
    return max(_LEAST_PROBES, round(partitions(rows) * _PROBED_SHARE))


def _candidates(rows: "pa.Table", vector: Vectors) -> list[Candidate]:
    """The candidates of `rows` with their similarity, worked out anew from the stored vectors.

    It is rounded to what 32-bit vectors hold: copies of a text that were embedded in different batches tie.
    """
    if not len(rows):
        return []
    flat = rows["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    stored = flat.reshape(len(rows), -1).astype(np.float64)
    unit = vector.astype(np.float64) / np.linalg.norm(vector.astype(np.float64))
    similarities = np.clip((stored * unit).sum(axis=1) / np.sqrt((stored * stored).sum(axis=1)), -1.0, 1.0)
    return [
        Candidate(chunk, round(float(similarity), _SIMILARITY_DIGITS))
        for chunk, similarity in zip(to_chunks(rows), similarities, strict=True)
    ]


def _by_similarity(candidates: Sequence[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda candidate: (-candidate.similarity, candidate.chunk.chunk_id))
