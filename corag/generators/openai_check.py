"""Whether a server with the OpenAI API fits the configuration: the model's name, its context length, its tokens."""

from corag.errors import ModelError
from corag.generators.openai_api import OpenAIGenerator
from corag.settings import GeneratorSettings
from corag.values import Prompt

PROBES = (
    Prompt(system="You are a helpful assistant.", user="Say yes."),
    Prompt(system="Answer briefly.", user="Émile paid 3,50 € at 米の市場 – why?\n\nBecause it was Tuesday; naïvely."),
)
"""Prompts whose tokens are counted on both sides: plain words, and what tokenizers differ about."""


def check_server(generator: OpenAIGenerator, settings: GeneratorSettings) -> str:
    """What was found, in one line.

    Raises:
        ModelError: the server does not answer, does not serve the model, was started with a shorter context, or counts
            the tokens of a prompt otherwise than the configured tokenizer does, so that budgets would not hold.
    """
    served = generator.served_models()
    if generator.name not in served:
        raise ModelError(
            f"{settings.base_url}: does not serve {generator.name!r} but {', '.join(sorted(served)) or 'nothing'}; "
            "correct generator.model, or serve it under this name"
        )
    length = served[generator.name]
    if length is not None and length < settings.context_length:
        raise ModelError(
            f"{settings.base_url}: reads {length} tokens, generator.context_length says {settings.context_length}; "
            "lower the key, or start the server with a greater --max-model-len"
        )
    counted = [generator.count_prompt(prompt) for prompt in PROBES]
    for prompt, count, generation in zip(PROBES, counted, generator.generate(PROBES), strict=True):
        if generation.error is not None:
            raise ModelError(generation.error)
        if generation.prompt_tokens != count:
            raise ModelError(
                f"{settings.base_url}: counts {generation.prompt_tokens} tokens where generator.tokenizer counts "
                f"{count} ({prompt.user[:20]!r} with its template), so that budgets would not hold; name the tokenizer "
                "of the served model"
            )
    told = "" if length is None else f", reads {length} tokens"
    return f"{generator.name} answers at {settings.base_url}{told}, and counts tokens as the tokenizer does"
