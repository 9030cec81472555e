"""What every embedder offers, and the arithmetic that all of them share."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors.

    `revision` changes when the weights do; `max_length` counts the model's own tokens, special ones included.
    """

    name: str
    revision: str
    dimension: int
    max_length: int

    @property
    def truncated(self) -> int:
        """Texts that were longer than `max_length` and were cut, since the embedder was loaded."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors [n, d] of length 1, in the order of `texts`; a text without a usable vector gets a row of NaN."""
        ...


def valid_rows(vectors: Vectors) -> NDArray[np.bool_]:
    """Which rows [n] of `vectors` [n, d] are usable: finite and not zero."""
    return np.isfinite(vectors).all(axis=1) & (vectors != 0).any(axis=1)


def normalize(vectors: Vectors) -> Vectors:
    """`vectors` [n, d] scaled to length 1; a row that is zero or not finite becomes NaN."""
    vectors = np.asarray(vectors, dtype=np.float32)
    lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1, keepdims=True))
    usable = np.isfinite(lengths) & (lengths > 0)
    return np.where(usable, vectors / np.where(usable, lengths, 1.0), np.nan).astype(np.float32)


def clean(text: str) -> str:
    """`text` as valid Unicode: a lone surrogate, which no tokenizer takes, becomes U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def embed_by_length(
    lengths: Sequence[int], dimension: int, batch_size: int, embed: Callable[[Sequence[int]], Vectors]
) -> Vectors:
    """Vectors [n, d] in the order of the items whose `lengths` are given.

    `embed` gets the indices of one batch at a time; items of equal length share a batch, so that little is padded,
    and the longest go first, so that a lack of memory shows at once.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    vectors = np.empty((len(lengths), dimension), dtype=np.float32)
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        vectors[batch] = embed(batch)
    return normalize(vectors)
