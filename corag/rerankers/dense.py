"""Dense signal: the cosine of the query's and the joined text's vectors."""

import math
from collections.abc import Sequence

import numpy as np

from corag.embedders import Embedder, Vectors
from corag.rerankers.base import Pair, RecentlyUsed, joined
from corag.rerankers.identity import ROUNDING, identity_of

_QUERIES_KEPT = 4096


class CosineReranker:
    """Scores a pair by the cosine in [−1, 1] of the vectors of query and joined text under one embedder.

    No cross-encoder: query and text never meet inside the model. A query's vector is worked out once. Scores are
    rounded to six digits, so that the noise of batching does not decide between equal texts.
    """

    def __init__(self, name: str, kind: str, embedder: Embedder, batch_pairs: int) -> None:
        self.name = name
        self.batch_pairs = batch_pairs
        self.truncated = 0
        self.identity = identity_of(kind, embedder.name, embedder.revision, embedder.max_length, "float32")
        self._embedder = embedder
        self._queries: RecentlyUsed[Vectors] = RecentlyUsed(_QUERIES_KEPT)

    def score_pairs(self, pairs: Sequence[Pair]) -> list[float]:
        """Cosines [n] in the order of `pairs`; NaN where query or text has no usable vector."""
        if not pairs:
            return []
        queries = self._query_vectors(sorted({query for query, _ in pairs}))
        texts = [joined(chunks) for _, chunks in pairs]
        # Only the texts count as cut: the embedder may be shared with other rooms.
        cut_before = self._embedder.truncated
        vectors = self._embedder.embed(texts)
        self.truncated += self._embedder.truncated - cut_before
        cosines = np.einsum("nd,nd->n", np.stack([queries[query] for query, _ in pairs]), vectors, dtype=np.float64)
        return [round(float(cosine), ROUNDING) for cosine in cosines]

    def to_unit(self, score: float) -> float:
        """(1 + cosine) / 2."""
        return score if math.isnan(score) else min(1.0, max(0.0, (1.0 + score) / 2.0))

    def _query_vectors(self, queries: Sequence[str]) -> dict[str, Vectors]:
        known = {query: vector for query in queries if (vector := self._queries.get(query)) is not None}
        missing = [query for query in queries if query not in known]
        for query, vector in zip(missing, self._embedder.embed(missing) if missing else (), strict=True):
            self._queries.put(query, vector)
            known[query] = vector
        return known
