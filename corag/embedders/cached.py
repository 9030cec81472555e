"""Embeds each text once: vectors are remembered by the model, its weights and the text."""

from collections.abc import Sequence

import numpy as np

from corag.embedders.base import Embedder, Vectors, valid_rows
from corag.memo import Memo, key

TEXTS_PER_COMMIT = 1024


class CachedEmbedder:
    """`inner` with a memory in the table `embeddings` of `memo`; `embedded` counts the texts that were not in it.

    A text without a usable vector is not remembered. `truncated` counts freshly embedded texts only. `inner` gets at
    most `texts_per_commit` texts at a time, and their vectors are remembered together.
    """

    def __init__(self, inner: Embedder, memo: Memo, texts_per_commit: int = TEXTS_PER_COMMIT) -> None:
        self.inner = inner
        self.name = inner.name
        self.revision = inner.revision
        self.dimension = inner.dimension
        self.max_length = inner.max_length
        self.embedded = 0
        self.texts_per_commit = texts_per_commit
        self._table = memo.table("embeddings", large=True)

    @property
    def truncated(self) -> int:
        """Texts that were cut since the embedder was loaded."""
        return self.inner.truncated

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors [n, d] of length 1, in the order of `texts`; equal texts are embedded once."""
        keys = [key(self.name, self.revision, self.max_length, text) for text in texts]
        remembered = self._table.get_many(sorted(set(keys)))
        known = {
            name: np.frombuffer(value, dtype="<f4") for name, value in remembered.items() if isinstance(value, bytes)
        }
        missing = {name: text for name, text in zip(keys, texts, strict=True) if name not in known}
        names = list(missing)
        for start in range(0, len(names), self.texts_per_commit):
            part = names[start : start + self.texts_per_commit]
            vectors = self.inner.embed([missing[name] for name in part])
            self.embedded += len(part)
            known.update(zip(part, vectors, strict=True))
            usable = valid_rows(vectors)
            self._table.put_many(
                {name: vectors[row].astype("<f4").tobytes() for row, name in enumerate(part) if usable[row]}
            )
        return np.stack([known[name] for name in keys]) if keys else np.empty((0, self.dimension), dtype=np.float32)
