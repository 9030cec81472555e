"""Cross-encoders read by FlagEmbedding from a local folder or the hub: the production path."""

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corag.embedders.base import clean
from corag.embedders.hub import model_folder
from corag.embedders.revision import folder_revision
from corag.errors import ConfigError, ModelError
from corag.rerankers.base import Pair, joined, sigmoid
from corag.rerankers.identity import identity_of
from corag.settings import RerankerSettings

_PROBE_BATCHES = 4
_SMALLEST_BATCH = 8


class FlagCrossEncoder:
    """Scores pairs with FlagEmbedding's FlagReranker (`flag`) or FlagLLMReranker (`flag-llm`); scores are raw logits.

    `settings.max_length` defaults to all the positions that the model has, not to the library's 512. Half precision
    is used on a GPU only.

    Raises:
        ConfigError: no model is named, or `max_length` exceeds its positions.
        ModelError: the model cannot be found or loaded, or has more than one label.
    """

    def __init__(self, settings: RerankerSettings) -> None:
        if settings.model is None:
            raise ConfigError(
                f"rerankers.{settings.name}.model is empty; name a folder or hub model for {settings.kind}"
            )
        folder = model_folder(settings.model)
        self._library, half = _load(folder, settings)
        self.name = settings.name
        self.batch_pairs = settings.batch_pairs
        self.truncated = 0
        limit = _positions(self._library, settings.kind)
        if settings.max_length is not None and settings.max_length > limit:
            raise ConfigError(
                f"rerankers.{settings.name}.max_length ({settings.max_length}) exceeds the {limit} tokens that "
                f"{settings.model} reads; lower or remove it"
            )
        self.max_length = settings.max_length or limit
        self.identity = identity_of(
            settings.kind, folder.name, folder_revision(folder), self.max_length, "float16" if half else "float32"
        )

    def score_pairs(self, pairs: Sequence[Pair]) -> list[float]:
        """Logits [n] in the order of `pairs`; NaN where the model overflows."""
        rows = [(clean(query), clean(joined(chunks))) for query, chunks in pairs]
        if not rows:
            return []
        self._count_cut(rows)
        # The library runs its first batch twice, to find out whether it fits: a smaller one wastes less.
        batch = min(self.batch_pairs, max(_SMALLEST_BATCH, -(-len(rows) // _PROBE_BATCHES)))
        # It draws progress bars that cannot be turned off.
        with contextlib.redirect_stderr(io.StringIO()):
            scores = self._library.compute_score(rows, batch_size=batch, max_length=self.max_length, normalize=False)
        return [float(score) for score in scores]

    def to_unit(self, score: float) -> float:
        """The sigmoid of the logit."""
        return sigmoid(score)

    def _count_cut(self, rows: Sequence[tuple[str, str]]) -> None:
        tokenizer = self._library.tokenizer
        query_limit = self.max_length * 3 // 4
        special = tokenizer.num_special_tokens_to_add(pair=True)
        queries = tokenizer([query for query, _ in rows], add_special_tokens=False)["input_ids"]
        texts = tokenizer([text for _, text in rows], add_special_tokens=False)["input_ids"]
        for query, text in zip(queries, texts, strict=True):
            length = min(len(query), query_limit) + len(text) + special
            self.truncated += len(query) > query_limit or length > self.max_length


def _load(folder: Path, settings: RerankerSettings) -> tuple[Any, bool]:
    import torch
    from FlagEmbedding import FlagLLMReranker, FlagReranker
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    gpu = torch.cuda.is_available()
    half = settings.fp16 and gpu
    adapter = FlagReranker if settings.kind == "flag" else FlagLLMReranker
    try:
        library = adapter(
            str(folder),
            use_fp16=half,
            trust_remote_code=settings.trust_remote_code,
            devices="cuda:0" if gpu else "cpu",
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(
            f"{folder}: reranker {settings.name!r} cannot be loaded ({reason}); restore the folder, or set "
            "trust_remote_code if you trust the code that it brings"
        ) from None
    labels = getattr(library.model.config, "num_labels", 1)
    if settings.kind == "flag" and labels != 1:
        raise ModelError(
            f"{folder}: {labels} labels, but a reranker has one; name a cross-encoder trained for reranking"
        )
    return library, half


def _positions(library: Any, kind: str) -> int:
    """The most tokens that the model reads, special ones (or the language model's instruction) left out where added."""
    config = library.model.config
    positions = int(getattr(config, "max_position_embeddings", 0) or 10**9)
    if "roberta" in config.model_type and getattr(config, "position_embedding_type", "absolute") == "absolute":
        # Positions start behind the padding's.
        positions -= (config.pad_token_id or 0) + 1
    positions = min(positions, int(library.tokenizer.model_max_length))
    # The language model's instruction comes on top of the library's max_length.
    return positions - _INSTRUCTION_TOKENS if kind == "flag-llm" else positions


_INSTRUCTION_TOKENS = 64
