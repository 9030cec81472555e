"""The packaged all-MiniLM-L6-v2, or another BERT-like folder with mean pooling, through plain transformers.

Its vectors equal those of sentence-transformers, whose import takes twice as long; beside them it gives the
vectors of the single tokens, for late interaction.
"""

import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from corag.embedders.base import Vectors, clean, embed_by_length
from corag.embedders.hub import model_folder
from corag.embedders.revision import folder_revision
from corag.errors import ModelError
from corag.packaged import minilm_folder

PACKAGED_NAME = "all-MiniLM-L6-v2"

# No text has more characters a token than this, but for padding and blobs: the rest is not worth tokenizing.
_CHARACTERS_PER_TOKEN = 64


class MiniLM:
    """Embeds with mean pooling over the last layer. `model` is a folder or hub name; None takes the packaged one.

    The model itself is loaded at the first text: a run whose texts are all remembered never waits for it.

    Raises:
        ModelError: the folder holds no such model, or pools otherwise.
    """

    def __init__(self, model: str | None, max_length: int, batch_size: int) -> None:
        folder = minilm_folder() if model is None else model_folder(model)
        config = _read_config(folder)
        self._folder = folder
        self._batch_size = batch_size
        self.name = PACKAGED_NAME if model is None else folder.name
        self.revision = folder_revision(folder)
        self.dimension = int(config["hidden_size"])
        self.max_length = min(max_length, int(config["max_position_embeddings"]))
        self.truncated = 0

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        """The tokenizer and the model."""
        return _load(self._folder)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors [n, d] of length 1, in the order of `texts`."""
        ids = self._token_ids(texts)

        def embed(batch: Sequence[int]) -> Vectors:
            hidden, mask = self._forward([ids[index] for index in batch])
            weights = mask[:, :, None]
            return (hidden * weights).sum(axis=1) / weights.sum(axis=1)

        return embed_by_length([len(one) for one in ids], self.dimension, self._batch_size, embed)

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        """Per text the vectors [t, d] of its t tokens, each of length 1; special tokens are left out."""
        ids = self._token_ids(texts)
        order = sorted(range(len(ids)), key=lambda index: (-len(ids[index]), index))
        found: dict[int, Vectors] = {}
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            hidden, _ = self._forward([ids[index] for index in batch])
            for row, index in enumerate(batch):
                tokens = hidden[row, 1 : len(ids[index]) - 1]
                found[index] = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
        return [found[index] for index in range(len(ids))]

    def _token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids with the two special tokens around them, cut to the model's length."""
        longest = self.max_length * _CHARACTERS_PER_TOKEN
        shortened = [clean(text[:longest]) for text in texts]
        tokenizer, _ = self._parts
        all_ids = [encoding.ids for encoding in tokenizer.encode_batch(shortened)]
        self.truncated += sum(
            len(ids) > self.max_length or len(text) > longest for ids, text in zip(all_ids, texts, strict=True)
        )
        return [ids if len(ids) <= self.max_length else [*ids[: self.max_length - 1], ids[-1]] for ids in all_ids]

    def _forward(self, ids: Sequence[Sequence[int]]) -> tuple[Vectors, Vectors]:
        """The last layer [n, t, d] and the mask [n, t] of the tokens that are there."""
        import torch

        width = max(len(one) for one in ids)
        tokens = np.zeros((len(ids), width), dtype=np.int64)
        mask = np.zeros((len(ids), width), dtype=np.int64)
        for row, one in enumerate(ids):
            tokens[row, : len(one)] = one
            mask[row, : len(one)] = 1
        _, model = self._parts
        with torch.inference_mode():
            output = model(input_ids=torch.from_numpy(tokens), attention_mask=torch.from_numpy(mask))
        return output.last_hidden_state.float().numpy(), mask.astype(np.float32)


def _read_config(folder: Path) -> dict[str, Any]:
    """The model's configuration, after a look at whether its files and its pooling are as needed."""
    described = folder / "1_Pooling" / "config.json"
    if described.is_file() and not json.loads(described.read_text("utf-8")).get("pooling_mode_mean_tokens"):
        raise ModelError(f"{folder}: this model does not pool by the mean of its tokens; use embedder.kind: flag")
    if not (folder / "tokenizer.json").is_file():
        raise ModelError(f"{folder}: no tokenizer.json in this model folder; use embedder.kind: flag")
    config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    if not {"hidden_size", "max_position_embeddings"} <= set(config):
        raise ModelError(f"{folder}: its config.json describes no BERT-like encoder; use embedder.kind: flag")
    return config


def _load(folder: Path) -> tuple[Any, Any]:
    # Without this the library draws a bar for every model that it loads.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from tokenizers import Tokenizer
    from transformers import AutoModel
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        model = AutoModel.from_pretrained(str(folder), local_files_only=True, dtype="auto").float().eval()
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(f"{folder}: the embedder cannot be loaded ({reason}); restore the folder") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, model
