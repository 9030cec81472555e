"""Lexical signal: BM25+ of the joined text, with the corpus statistics of rank-bm25."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from corag.rerankers.base import Pair, RecentlyUsed
from corag.rerankers.identity import identity_of
from corag.words import words

_CHUNKS_KEPT = 20_000
_QUERIES_KEPT = 4096
_HALF_UNIT = 10.0


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """What BM25+ needs of a corpus: inverse document frequencies, mean length in words, and its parameters."""

    idf: dict[str, float]
    average_length: float
    k1: float
    b: float
    delta: float

    @property
    def digest(self) -> str:
        """Twelve hex digits that change with the statistics."""
        content = json.dumps([sorted(self.idf.items()), self.average_length, self.k1, self.b, self.delta])
        return hashlib.sha256(content.encode()).hexdigest()[:12]


def corpus_statistics(texts: Sequence[str]) -> CorpusStatistics:
    """The statistics that rank-bm25's BM25Plus finds in `texts`; its idf is positive for a corpus of any size.

    A corpus without a single word has no idf, and every score is 0.
    """
    from rank_bm25 import BM25Plus

    tokens = [found for text in texts if (found := words(text))]
    if not tokens:
        return CorpusStatistics({}, 1.0, 1.5, 0.75, 1.0)
    fitted = BM25Plus(tokens)
    return CorpusStatistics(dict(fitted.idf), fitted.avgdl, fitted.k1, fitted.b, fitted.delta)


class LexicalReranker:
    """Scores a pair by BM25+ of the joined text. Blind to the order of the chunks; reads texts of any length whole.

    `corpus` is called once, at the first use, for the texts of all chunks: the statistics never come from the
    batch, so a score does not depend on what else is scored. The library only scores the documents that it was
    fitted on, so the formula itself stands here, over the library's own statistics; a test holds it to the library.
    """

    def __init__(self, name: str, corpus: Callable[[], Sequence[str]], batch_pairs: int) -> None:
        self.name = name
        self.batch_pairs = batch_pairs
        self.truncated = 0
        self._corpus = corpus
        self._queries: RecentlyUsed[list[str]] = RecentlyUsed(_QUERIES_KEPT)
        self._chunks: RecentlyUsed[tuple[dict[str, int], int]] = RecentlyUsed(_CHUNKS_KEPT)

    @cached_property
    def statistics(self) -> CorpusStatistics:
        """The statistics of the corpus, fitted at the first use."""
        return corpus_statistics(self._corpus())

    @cached_property
    def identity(self) -> str:
        """Changes with the corpus."""
        return identity_of("lexical", "bm25plus", self.statistics.digest, "unlimited", "float64")

    def score_pairs(self, pairs: Sequence[Pair]) -> list[float]:
        """BM25+ scores [n], 0 or more, in the order of `pairs`."""
        return [self._score(self._query_words(query), chunks) for query, chunks in pairs]

    def to_unit(self, score: float) -> float:
        """The score over itself plus 10: half at 10, a common score of a good match."""
        return score if math.isnan(score) else max(0.0, score) / (max(0.0, score) + _HALF_UNIT)

    def _score(self, query: Sequence[str], chunks: Sequence[str]) -> float:
        known = self.statistics
        # The joint between chunks holds no word, so the counts of a joined text are the sums over its chunks.
        counts = [self._word_counts(chunk) for chunk in chunks]
        length = sum(words_in_chunk for _, words_in_chunk in counts)
        norm = known.k1 * (1 - known.b + known.b * length / known.average_length)
        total = 0.0
        for word in query:
            frequency = sum(count.get(word, 0) for count, _ in counts)
            total += known.idf.get(word, 0.0) * (known.delta + frequency * (known.k1 + 1) / (norm + frequency))
        return total

    def _query_words(self, query: str) -> list[str]:
        held = self._queries.get(query)
        if held is None:
            held = [word for word in words(query) if word in self.statistics.idf]
            self._queries.put(query, held)
        return held

    def _word_counts(self, chunk: str) -> tuple[dict[str, int], int]:
        held = self._chunks.get(chunk)
        if held is None:
            found = words(chunk)
            held = (dict(Counter(found)), len(found))
            self._chunks.put(chunk, held)
        return held
