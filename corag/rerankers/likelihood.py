"""Likelihood signal: how probable the question is once the language model has read the text (UPR)."""

import math
from collections.abc import Sequence
from typing import Protocol

from corag.rerankers.base import Pair, joined
from corag.rerankers.identity import ROUNDING

_HEAD = "Passage:"
_TAIL = "\nQuestion:"


class LikelihoodModel(Protocol):
    """A language model that tells the probability of a given continuation."""

    weights: str
    context_length: int

    def continuation_log_probabilities(
        self, head: str, texts: Sequence[str], tail: str, continuations: Sequence[str], max_length: int, batch_size: int
    ) -> list[tuple[float, bool]]:
        """Per row the mean log-probability a token of the continuation after head + text + tail, and whether cut."""
        ...


class LikelihoodReranker:
    """Scores a pair by the mean log-probability of the query's tokens after "Passage: … Question:".

    Unsupervised passage reranking (arXiv 2204.07496) with whichever language model is given; the prompt is plain
    text, without a chat template. It sees the order of the chunks. A joined text that is too long loses its end.
    """

    def __init__(self, name: str, model: LikelihoodModel, max_length: int | None, batch_pairs: int) -> None:
        self.name = name
        self.batch_pairs = batch_pairs
        self.truncated = 0
        self._model = model
        self._max_length = min(max_length or model.context_length, model.context_length)
        self.identity = f"likelihood {model.weights} max_length={self._max_length}"

    def score_pairs(self, pairs: Sequence[Pair]) -> list[float]:
        """Mean log-probabilities [n], 0 or less, in the order of `pairs`; NaN for a query without tokens."""
        found = self._model.continuation_log_probabilities(
            _HEAD,
            [f" {joined(chunks)}" for _, chunks in pairs],
            _TAIL,
            [f" {query.strip()}" for query, _ in pairs],
            self._max_length,
            self.batch_pairs,
        )
        self.truncated += sum(cut for _, cut in found)
        return [score if math.isnan(score) else round(score, ROUNDING) for score, _ in found]

    def to_unit(self, score: float) -> float:
        """e^score: the geometric mean of the tokens' probabilities."""
        return math.exp(min(0.0, score))
