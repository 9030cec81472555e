"""How an answer is compared with its references: ROUGE through rouge-score, for any script, and bootstrap intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from corag.settings import MetricSettings
from corag.words import words


@dataclass(frozen=True, slots=True)
class Rouge:
    """Precision, recall and F1 of ROUGE-L, and the F1 of ROUGE-1 and ROUGE-2; each in [0, 1]."""

    rouge_1: float
    rouge_2: float
    rouge_l: float
    precision: float
    recall: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the bounds of its bootstrap interval over `n` questions."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


class _Scorer(Protocol):
    def score(self, target: str, prediction: str) -> dict: ...


class _WordTokenizer:
    """Words of any script for rouge-score, whose own tokenizer keeps a-z and 0-9 only and scores Chinese as 0."""

    def __init__(self, stemming: bool) -> None:
        from nltk.stem.porter import PorterStemmer

        self._stemmer = PorterStemmer() if stemming else None

    def tokenize(self, text: str) -> list[str]:
        found = words(text)
        if self._stemmer is None:
            return found
        # rouge-score's own rule: words of up to three letters keep their ending.
        return [self._stemmer.stem(word) if len(word) > 3 and word.isascii() else word for word in found]


@cache
def _scorer(stemming: bool) -> _Scorer:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=_WordTokenizer(stemming))


def rouge(reference: str, answer: str, settings: MetricSettings) -> Rouge:
    """ROUGE of `answer` against one reference; an empty side scores 0.

    Only the first `max_answer_characters` of the answer are compared: a runaway answer must not stall a batch.
    """
    scores = _scorer(settings.stemming).score(reference, answer[: settings.max_answer_characters])
    longest = scores["rougeL"]
    return Rouge(
        rouge_1=float(scores["rouge1"].fmeasure),
        rouge_2=float(scores["rouge2"].fmeasure),
        rouge_l=float(longest.fmeasure),
        precision=float(longest.precision),
        recall=float(longest.recall),
    )


def best_rouge(references: Sequence[str], answer: str, settings: MetricSettings) -> Rouge | None:
    """The ROUGE against the reference that `answer` matches best by ROUGE-L; None without a usable reference."""
    usable = [reference for reference in references if words(reference)]
    if not usable:
        return None
    return max((rouge(reference, answer, settings) for reference in usable), key=lambda score: score.rouge_l)


def exact_match(references: Sequence[str], answer: str) -> float:
    """1.0 where the answer's words equal those of some reference, else 0.0."""
    return float(any(words(reference) == words(answer) for reference in references if words(reference)))


def token_f1(references: Sequence[str], answer: str) -> float:
    """The best F1 over the multiset of words that the answer shares with a reference."""
    from collections import Counter

    got = Counter(words(answer))
    best = 0.0
    for reference in references:
        want = Counter(words(reference))
        shared = sum((got & want).values())
        if shared:
            precision, recall = shared / sum(got.values()), shared / sum(want.values())
            best = max(best, 2 * precision * recall / (precision + recall))
    return best


def bootstrap(values: Sequence[float], *, seed: int, samples: int = 1000, level: float = 0.95) -> Interval:
    """The mean of `values` with its percentile bootstrap interval; for a paired difference pass the differences."""
    import numpy as np

    data: np.ndarray = np.asarray(values, dtype=np.float64)
    if data.size == 0:
        return Interval(float("nan"), float("nan"), float("nan"), 0)
    generator = np.random.default_rng(seed)
    means = np.empty(samples)
    for sample in range(samples):
        means[sample] = data[generator.integers(0, data.size, data.size)].mean()
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(data.mean()), float(low), float(high), int(data.size))
