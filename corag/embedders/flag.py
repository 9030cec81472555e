"""Any embedder that FlagEmbedding reads, from a folder or the hub: the production path (BGE-M3 and its kin)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corag.embedders.base import Vectors, clean, embed_by_length
from corag.embedders.hub import model_folder
from corag.embedders.revision import folder_revision
from corag.errors import ConfigError, ModelError

_CHARACTERS_PER_TOKEN = 64


class FlagEmbedder:
    """Embeds with FlagEmbedding: BGE-M3's dense vectors where the folder is a BGE-M3, else a FlagModel.

    The pooling is the one that the folder names (`1_Pooling/config.json`), or the first token where it names none.
    Half precision is used on a GPU only.

    Raises:
        ConfigError: no model is named.
        ModelError: it cannot be found or loaded.
    """

    def __init__(self, model: str | None, max_length: int, batch_size: int) -> None:
        if model is None:
            raise ConfigError("embedder.kind is flag but embedder.model is empty; name a folder or hub model")
        folder = model_folder(model)
        self._model = _load(folder)
        self._batch_size = batch_size
        self.name = model if not Path(model).expanduser().is_dir() else folder.name
        self.revision = folder_revision(folder)
        config = self._model.model.config if hasattr(self._model.model, "config") else self._model.model.model.config
        self.dimension = int(config.hidden_size)
        self.max_length = min(max_length, int(self._model.tokenizer.model_max_length), _positions(config))
        self.truncated = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors [n, d] of length 1, in the order of `texts`."""
        longest = self.max_length * _CHARACTERS_PER_TOKEN
        cleaned = [clean(text[:longest]) for text in texts]
        lengths = [len(ids) for ids in self._model.tokenizer(cleaned)["input_ids"]] if cleaned else []
        self.truncated += sum(
            length > self.max_length or len(text) > longest for length, text in zip(lengths, texts, strict=True)
        )

        def embed(batch: Sequence[int]) -> Vectors:
            # A batch smaller than its limit draws no progress bar.
            encoded = self._model.encode(
                [cleaned[index] for index in batch], batch_size=len(batch) + 1, max_length=self.max_length
            )
            return np.asarray(encoded["dense_vecs"] if isinstance(encoded, dict) else encoded, dtype=np.float32)

        return embed_by_length(lengths, self.dimension, self._batch_size, embed)


def is_bge_m3(folder: Path) -> bool:
    """Whether the folder holds a BGE-M3: only it has a head for single-token vectors beside the encoder."""
    return (folder / "colbert_linear.pt").is_file()


def _positions(config: Any) -> int:
    # RoBERTa's kin give the first two positions away to padding.
    spare = 2 if "roberta" in config.model_type else 0
    return int(config.max_position_embeddings) - spare


def _pooling(folder: Path) -> str:
    described = folder / "1_Pooling" / "config.json"
    if described.is_file() and json.loads(described.read_text("utf-8")).get("pooling_mode_mean_tokens"):
        return "mean"
    return "cls"


def _load(folder: Path) -> Any:
    import torch
    from FlagEmbedding import BGEM3FlagModel, FlagModel
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    gpu = torch.cuda.is_available()
    device = "cuda:0" if gpu else "cpu"
    try:
        if is_bge_m3(folder):
            return BGEM3FlagModel(str(folder), use_fp16=gpu, devices=device)
        return FlagModel(str(folder), pooling_method=_pooling(folder), use_fp16=gpu, devices=device)
    except (OSError, ValueError, KeyError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(f"{folder}: the embedder cannot be loaded ({reason}); restore the folder") from None
