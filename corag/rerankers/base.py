"""What every reranker offers, and the few lines that all of them share."""

import math
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from corag.prompts import JOINT

Pair = tuple[str, tuple[str, ...]]
"""(query, texts of the chunks in order)."""

Value = TypeVar("Value")


class Reranker(Protocol):
    """Scores how much an order of chunks helps to answer a query.

    `identity` holds whatever decides a score (kind, model revision, maximal length, dtype): it is part of each memo
    key. `truncated` counts the pairs that were longer than the model reads, since it was loaded.
    """

    name: str
    batch_pairs: int

    @property
    def identity(self) -> str:
        """Changes when scores may change."""
        ...

    @property
    def truncated(self) -> int:
        """Pairs cut since the reranker was loaded."""
        ...

    def score_pairs(self, pairs: Sequence[Pair]) -> list[float]:
        """Raw scores [n] in the order of `pairs`; higher is better; NaN where the model gives none."""
        ...

    def to_unit(self, score: float) -> float:
        """The raw score mapped to [0, 1], strictly increasing but for rounding; NaN stays NaN."""
        ...


def score(reranker: Reranker, query: str, texts: Sequence[str]) -> list[float]:
    """Raw scores [n] of single texts for one query, in the order of `texts`."""
    return reranker.score_pairs([(query, (text,)) for text in texts])


def joined(texts: Sequence[str]) -> str:
    """The texts of an order as the generator's prompt joins them."""
    return JOINT.join(texts)


def sigmoid(value: float) -> float:
    """1 / (1 + e^−value), without overflow."""
    if value >= 0:
        return 1.0 / (1.0 + math.exp(-value))
    return math.exp(value) / (1.0 + math.exp(value))


class RecentlyUsed(Generic[Value]):
    """A dictionary that forgets what was not used for longest, once the sizes of its values exceed `capacity`."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable) -> Value | None:
        """The value of `key`, now the last to be forgotten; None where it is not held."""
        held = self._values.get(key)
        if held is None:
            return None
        self._values.move_to_end(key)
        return held[0]

    def put(self, key: Hashable, value: Value, size: int = 1) -> None:
        """Hold `value`, forgetting others as far as need be; the newest is always held."""
        if key in self._values:
            self._size -= self._values.pop(key)[1]
        self._values[key] = (value, size)
        self._size += size
        while self._size > self._capacity and len(self._values) > 1:
            _, (_, freed) = self._values.popitem(last=False)
            self._size -= freed

    def __len__(self) -> int:
        return len(self._values)
