"""Late-interaction signal: MaxSim between the token vectors of the query and of the chunks."""

import math
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from corag.embedders import Vectors
from corag.rerankers.base import Pair, RecentlyUsed
from corag.rerankers.identity import ROUNDING, identity_of

_CHUNK_BYTES = 256 << 20
_QUERY_BYTES = 32 << 20
_MAXIMA_BYTES = 128 << 20
_ENTRY_BYTES = 400

HalfVectors = NDArray[np.float16]


@runtime_checkable
class TokenEmbedder(Protocol):
    """An embedder that also gives the vectors of single tokens."""

    name: str
    revision: str
    max_length: int
    truncated: int

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        """Per text the vectors [t, d] of its t tokens, each of length 1."""
        ...


class LateInteractionReranker:
    """Scores a pair by the mean over the query's tokens of the greatest cosine with any token of the chunks.

    Blind to the order of the chunks: a set and each of its permutations score the same, and a further chunk never
    lowers the score. The token vectors of a chunk are computed once while they stay in memory (float16, 256 MB);
    per (query, chunk) only the maxima [q] over the chunk's tokens are kept, and an order costs the elementwise
    maximum of its chunks' maxima: microseconds.
    """

    def __init__(self, name: str, embedder: TokenEmbedder, batch_pairs: int) -> None:
        self.name = name
        self.batch_pairs = batch_pairs
        self.truncated = 0
        self.identity = identity_of(
            "late-interaction", embedder.name, embedder.revision, embedder.max_length, "float16"
        )
        self._embedder = embedder
        self._queries: RecentlyUsed[HalfVectors] = RecentlyUsed(_QUERY_BYTES)
        self._chunks: RecentlyUsed[HalfVectors] = RecentlyUsed(_CHUNK_BYTES)
        self._maxima: RecentlyUsed[Vectors] = RecentlyUsed(_MAXIMA_BYTES)
        self._cut: RecentlyUsed[bool] = RecentlyUsed(100_000)

    def score_pairs(self, pairs: Sequence[Pair]) -> list[float]:
        """Scores [n] in [−1, 1] in the order of `pairs`; NaN where the query or the chunks have no token."""
        maxima = self._chunk_maxima({(query, chunk) for query, chunks in pairs for chunk in chunks})
        scores = []
        for query, chunks in pairs:
            mean = np.maximum.reduce([maxima[query, chunk] for chunk in chunks]).mean()
            scores.append(round(float(mean), ROUNDING) if np.isfinite(mean) else math.nan)
            self.truncated += any(self._cut.get(chunk) for chunk in chunks)
        return scores

    def to_unit(self, score: float) -> float:
        """(1 + score) / 2."""
        return score if math.isnan(score) else min(1.0, max(0.0, (1.0 + score) / 2.0))

    def _chunk_maxima(self, needed: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Vectors]:
        """Per (query, chunk) the greatest cosine [q] of each query token with any token of the chunk."""
        known = {pair: held for pair in needed if (held := self._maxima.get(pair)) is not None}
        missing = sorted(set(needed) - known.keys())
        queries = self._vectors(self._queries, {query for query, _ in missing})
        chunks = self._vectors(self._chunks, {chunk for _, chunk in missing})
        for query, chunk in missing:
            tokens = chunks[chunk].astype(np.float32)
            # A chunk without tokens is worth less than any token; a query without tokens gets no maxima at all.
            maxima = (queries[query].astype(np.float32) @ tokens.T).max(axis=1, initial=-np.inf)
            if not maxima.size:
                maxima = np.full(1, -np.inf, dtype=np.float32)
            self._maxima.put((query, chunk), maxima, maxima.nbytes + _ENTRY_BYTES)
            known[query, chunk] = maxima
        return known

    def _vectors(self, cache: RecentlyUsed[HalfVectors], texts: Iterable[str]) -> dict[str, HalfVectors]:
        known = {text: vectors for text in texts if (vectors := cache.get(text)) is not None}
        # The longest first, so that neighbours in a batch are of one length.
        missing = sorted(set(texts) - known.keys(), key=lambda text: (-len(text), text))
        for start in range(0, len(missing), self.batch_pairs):
            part = missing[start : start + self.batch_pairs]
            for text, vectors in zip(part, self._embed(part), strict=True):
                cache.put(text, vectors, vectors.nbytes + _ENTRY_BYTES)
                known[text] = vectors
        return known

    def _embed(self, texts: Sequence[str]) -> list[HalfVectors]:
        before = self._embedder.truncated
        vectors = self._embedder.token_vectors(texts)
        if self._embedder.truncated > before:
            # The embedder counts what it cut without naming it: a cut text fills the model but for two special tokens.
            for text, one in zip(texts, vectors, strict=True):
                if len(one) >= self._embedder.max_length - 2:
                    self._cut.put(text, True)
        return [one.astype(np.float16) for one in vectors]
