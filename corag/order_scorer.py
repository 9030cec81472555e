"""Scores requests of many searches: through the memo first, then in pooled reranker batches of similar length."""

import hashlib
import itertools
import logging
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from corag.benefit import normalizer
from corag.memo import Value, key
from corag.rerankers.base import Pair, Reranker
from corag.search.lockstep import Request
from corag.values import Candidate

logger = logging.getLogger(__name__)

BATCHES_PER_COMMIT = 16
"""Reranker batches whose scores are committed together: what a killed run may have to score again."""


class ScoreTable(Protocol):
    """Where raw scores are remembered: a table of the memo, or something in front of one."""

    def get_many(self, keys: Sequence[str]) -> dict[str, Value]:
        """The remembered scores by key."""
        ...

    def put_many(self, items: Mapping[str, Value]) -> None:
        """Remember scores."""
        ...


@dataclass
class PairCount:
    """Pairs scored by a reranker, those the memo knew, and those that came back as NaN."""

    scored: int = 0
    remembered: int = 0
    nan: int = 0


@dataclass(frozen=True, slots=True)
class _Query:
    text: str
    chunk_texts: tuple[str, ...]
    chunk_hashes: tuple[str, ...]
    key: str


class OrderScorer:
    """The benefits of chunk orders under one reranker, for the queries that it was told of.

    Raw scores are remembered under (reranker identity, query, chunk texts in order): a changed text, model or limit is
    another key. The normalisation of a query needs its single candidates, which a policy tree asks for first.
    """

    def __init__(
        self,
        reranker: Reranker,
        table: ScoreTable,
        normalize: Literal["per_query", "none"],
        count: PairCount | None = None,
    ) -> None:
        self._reranker = reranker
        self._table = table
        self._normalize = normalize
        self._queries: dict[Hashable, _Query] = {}
        self._to_benefit: dict[Hashable, Callable[[float], float]] = {}
        self.count = count or PairCount()

    def add_query(self, scope: Hashable, query: str, candidates: Sequence[Candidate]) -> None:
        """Tell of a query and its candidates before orders of `scope` are asked for; others of that scope end."""
        texts = tuple(candidate.chunk.text for candidate in candidates)
        known = self._queries.get(scope)
        if known is not None and (known.text, known.chunk_texts) == (query, texts):
            return
        hashes = tuple(_hash(text) for text in texts)
        self._queries[scope] = _Query(query, texts, hashes, _hash(key(self._reranker.identity, query)))
        # The range of other candidates would scale these wrongly.
        self._to_benefit.pop(scope, None)

    def __call__(self, requests: Sequence[Request]) -> tuple[list[float], dict[Hashable, str]]:
        """Benefits [n] of the requests, and the scopes on which the reranker raised, with the reason."""
        # The range of a query is that of all its single candidates, whichever of them the caller asks for first.
        singles: dict[Hashable, list[Request]] = {
            scope: [(scope, (index,)) for index in range(len(self._queries[scope].chunk_texts))]
            for scope in dict.fromkeys(scope for scope, _ in requests)
            if scope not in self._to_benefit
        }
        raw, failed = self._raw_scores(list(dict.fromkeys([*itertools.chain(*singles.values()), *requests])))
        for scope, alone in singles.items():
            if scope not in failed:
                scores = [raw[request] for request in alone]
                self._to_benefit[scope] = normalizer(scores, self._normalize, self._reranker.to_unit)
        benefits = [
            math.nan if scope in failed else self._to_benefit[scope](raw[scope, order]) for scope, order in requests
        ]
        self.count.nan += sum(
            worth != worth for worth, (scope, _) in zip(benefits, requests, strict=True) if scope not in failed
        )
        return benefits, failed

    def _raw_scores(self, requests: Sequence[Request]) -> tuple[dict[Request, float], dict[Hashable, str]]:
        keys = {request: self._key(request) for request in requests}
        known = self._table.get_many(sorted(set(keys.values())))
        raw = {request: float(known[name]) for request, name in keys.items() if name in known}
        self.count.remembered += len(raw)
        # Questions of one text share their pairs: the first of each pair stands for the others.
        first = {keys[request]: request for request in reversed(requests) if request not in raw}
        missing = sorted(first.values(), key=lambda request: (self._length(request), keys[request]))
        failed: dict[Hashable, str] = {}
        # Whole batches only: cutting the pooled pairs here leaves the reranker the batches that it would make itself.
        size = BATCHES_PER_COMMIT * self._reranker.batch_pairs
        for start in range(0, len(missing), size):
            batch = [request for request in missing[start : start + size] if request[0] not in failed]
            fresh = self._score(batch, failed)
            self._table.put_many({keys[request]: score for request, score in fresh.items()})
            raw.update(fresh)
        for request in requests:
            twin = first.get(keys[request], request)
            if twin[0] in failed:
                failed.setdefault(request[0], failed[twin[0]])
            raw.setdefault(request, raw.get(twin, math.nan))
        return raw, failed

    def _score(self, requests: Sequence[Request], failed: dict[Hashable, str]) -> dict[Request, float]:
        """Scores of one batch; where the reranker raises, each query is tried alone and only the culprit fails."""
        if not requests:
            return {}
        try:
            scores = [float(score) for score in self._reranker.score_pairs([self._pair(one) for one in requests])]
            if len(scores) != len(requests):
                raise ValueError(f"{len(scores)} scores for {len(requests)} pairs")
        except Exception as error:  # noqa: BLE001 - any reranker may raise anything: it is reported with its query
            if len({scope for scope, _ in requests}) == 1:
                scope = requests[0][0]
                reason = " ".join(str(error).split())
                failed[scope] = f"reranker {self._reranker.name}: {type(error).__name__}: {reason}"
                logger.warning("%s (query %r)", failed[scope], self._queries[scope].text[:80])
                return {}
            alone: dict[Request, float] = {}
            for scope in dict.fromkeys(scope for scope, _ in requests):
                alone.update(self._score([request for request in requests if request[0] == scope], failed))
            return alone
        self.count.scored += len(requests)
        return dict(zip(requests, scores, strict=True))

    def _pair(self, request: Request) -> Pair:
        query = self._queries[request[0]]
        return query.text, tuple(query.chunk_texts[index] for index in request[1])

    def _length(self, request: Request) -> int:
        query = self._queries[request[0]]
        return sum(len(query.chunk_texts[index]) for index in request[1])

    def _key(self, request: Request) -> str:
        query = self._queries[request[0]]
        # All hashes have one length, so that no two lists of them share a key.
        return ":".join([query.key, *[query.chunk_hashes[index] for index in request[1]]])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


Scorers = Mapping[str, OrderScorer]
"""A scorer per reranker name."""
