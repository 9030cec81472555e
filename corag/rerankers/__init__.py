"""Scores of (query, chunk order): cross-encoders through FlagEmbedding, and signals of the embedded models."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from corag.errors import ConfigError, ModelError
from corag.rerankers.base import Pair, Reranker, joined, score
from corag.settings import RerankerSettings

if TYPE_CHECKING:
    from corag.embedders import Embedder
    from corag.embedders.minilm import MiniLM
    from corag.generators import Generator

__all__ = ["Pair", "Reranker", "joined", "load_reranker", "score"]


def load_reranker(
    settings: RerankerSettings,
    *,
    embedder: "Callable[[], Embedder]",
    generator: "Callable[[], Generator]",
    corpus: Callable[[], Sequence[str]],
) -> Reranker:
    """The reranker or signal that `settings` name, loaded.

    Only what its kind needs is called: `embedder` for `dense` and, where it knows single tokens, for
    `late-interaction` (else the packaged MiniLM); `generator` for `likelihood` without an own model; `corpus`, the
    texts of all chunks, for `lexical`, at its first use.

    Raises:
        ConfigError: the kind needs a model and none is named, or takes none and one is named.
        ModelError: a model cannot be found, loaded or used so.
    """
    if settings.kind in ("flag", "flag-llm"):
        from corag.rerankers.flag import FlagCrossEncoder

        return FlagCrossEncoder(settings)
    if settings.kind == "likelihood":
        return _likelihood(settings, generator)
    if settings.kind in ("dense", "late-interaction"):
        return _embedded(settings, embedder)
    if settings.model is not None:
        raise ConfigError(f"rerankers.{settings.name}: kind {settings.kind} takes no model; remove it")
    if settings.kind == "static":
        from corag.rerankers.static import load_static

        return load_static(settings.name, settings.batch_pairs)
    from corag.rerankers.lexical import LexicalReranker

    return LexicalReranker(settings.name, corpus, settings.batch_pairs)


def _embedded(settings: RerankerSettings, embedder: "Callable[[], Embedder]") -> Reranker:
    from corag.rerankers.dense import CosineReranker
    from corag.rerankers.late_interaction import LateInteractionReranker, TokenEmbedder

    own = settings.model is not None or settings.max_length is not None
    model = _minilm(settings) if own else _bare(embedder())
    if settings.kind == "dense":
        return CosineReranker(settings.name, "dense", model, settings.batch_pairs)
    tokens = model if isinstance(model, TokenEmbedder) else _minilm(settings)
    return LateInteractionReranker(settings.name, tokens, settings.batch_pairs)


def _bare(embedder: "Embedder") -> "Embedder":
    """The embedder without its memory: scores have one of their own, and vectors of joined texts only fill it."""
    from corag.embedders import CachedEmbedder

    return embedder.inner if isinstance(embedder, CachedEmbedder) else embedder


def _minilm(settings: RerankerSettings) -> "MiniLM":
    from corag.embedders.minilm import MiniLM

    return MiniLM(settings.model, settings.max_length or 512, settings.batch_pairs)


def _likelihood(settings: RerankerSettings, generator: "Callable[[], Generator]") -> Reranker:
    from corag.generators.transformers_local import TransformersGenerator
    from corag.rerankers.likelihood import LikelihoodReranker
    from corag.settings import GeneratorSettings

    if settings.model is not None:
        model: Generator = TransformersGenerator(GeneratorSettings.model_validate({"model": settings.model}), Path())
    else:
        model = generator()
    if not isinstance(model, TransformersGenerator):
        raise ModelError(
            f"rerankers.{settings.name}: kind likelihood needs a model in this process, and generator.kind is openai; "
            "name a model folder for this reranker, or choose another kind"
        )
    return LikelihoodReranker(settings.name, model, settings.max_length, settings.batch_pairs)
