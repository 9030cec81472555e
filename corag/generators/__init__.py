"""Language models that answer prompts: in this process, or any server with the OpenAI API."""

from pathlib import Path

from corag.generators.base import Generator
from corag.settings import GeneratorSettings

__all__ = ["Generator", "generator_identity", "load_generator"]


def load_generator(settings: GeneratorSettings, models: Path) -> Generator:
    """The generator of the configuration, ready to answer. `models` holds converted weights.

    Raises:
        ConfigError: a server is to be asked and no model is named.
        ModelError: the model cannot be found, converted or loaded.
    """
    if settings.kind == "openai":
        from corag.generators.openai_api import OpenAIGenerator

        return OpenAIGenerator(settings)
    from corag.generators.transformers_local import TransformersGenerator

    return TransformersGenerator(settings, models)


def generator_identity(settings: GeneratorSettings) -> str:
    """`load_generator(settings, …).identity`, told without loading a model or asking a server.

    Raises:
        ConfigError: a server is to be asked and no model is named.
        ModelError: the model cannot be found.
    """
    if settings.kind == "openai":
        from corag.generators.openai_api import openai_identity

        return openai_identity(settings)
    from corag.generators.local_model import local_identity

    return local_identity(settings)
