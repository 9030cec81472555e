"""The packaged wordllama: static word-piece vectors, hundreds of texts a second, for very large corpora."""

from collections.abc import Sequence

from corag.embedders.base import Vectors, clean, embed_by_length
from corag.embedders.revision import folder_revision
from corag.errors import ModelError
from corag.packaged import wordllama_folder

PACKAGED_NAME = "wordllama-l2-supercat"
UNLIMITED = 1_000_000_000


class StaticEmbedder:
    """Embeds by the mean of its tokens' vectors [256]; reads a text of any length whole. Needs no network."""

    def __init__(self, batch_size: int) -> None:
        from wordllama import WordLlama

        folder = wordllama_folder()
        try:
            self._model = WordLlama.load(cache_dir=folder, disable_download=True)
        except (OSError, ValueError) as error:
            raise ModelError(f"{folder}: the packaged wordllama cannot be loaded ({error}); reinstall it") from None
        self._batch_size = batch_size
        self.name = PACKAGED_NAME
        self.revision = folder_revision(folder / "weights")
        self.dimension = int(self._model.embedding.shape[1])
        self.max_length = UNLIMITED
        self.truncated = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors [n, 256] of length 1, in the order of `texts`; a text without any token gets a row of NaN."""
        cleaned = [clean(text) for text in texts]

        def embed(batch: Sequence[int]) -> Vectors:
            return self._model.embed([cleaned[index] for index in batch], batch_size=len(batch))

        vectors = embed_by_length([len(one) for one in cleaned], self.dimension, self._batch_size, embed)
        vectors[[not one.strip() for one in cleaned]] = float("nan")
        return vectors
