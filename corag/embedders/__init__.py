"""Models that turn texts into vectors: one small protocol, one file an adapter."""

from corag.embedders.base import Embedder, Vectors, valid_rows
from corag.embedders.cached import CachedEmbedder
from corag.errors import ConfigError
from corag.settings import EmbedderSettings

__all__ = ["CachedEmbedder", "Embedder", "Vectors", "load_embedder", "valid_rows"]


def load_embedder(settings: EmbedderSettings) -> Embedder:
    """The embedder of the configuration, loaded. The packaged ones (no `model` named) need no network.

    Raises:
        ModelError: the model cannot be found or loaded.
        ConfigError: the kind needs a model and none is named, or takes none and one is named.
    """
    if settings.kind == "minilm":
        from corag.embedders.minilm import MiniLM

        return MiniLM(settings.model, settings.max_length, settings.batch_size)
    if settings.kind == "static":
        from corag.embedders.static import StaticEmbedder

        if settings.model is not None:
            raise ConfigError(f"embedder.kind static has one packaged model; remove embedder.model ({settings.model})")
        return StaticEmbedder(settings.batch_size)
    from corag.embedders.flag import FlagEmbedder

    return FlagEmbedder(settings.model, settings.max_length, settings.batch_size)
