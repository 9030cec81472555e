"""Finds and loads the model of an in-process generator."""

import gc
from collections.abc import Set
from pathlib import Path
from typing import Any

from corag.embedders.hub import model_folder
from corag.embedders.revision import folder_revision
from corag.errors import ModelError
from corag.generators.convert import PACKAGED_NAME, converted_smollm2, packaged_revision
from corag.settings import GeneratorSettings


def model_name(settings: GeneratorSettings) -> str:
    """The name of the model: the hub name or folder as configured, or the packaged model's."""
    if settings.model is None:
        return PACKAGED_NAME
    folder = Path(settings.model).expanduser()
    return folder.resolve().name if folder.is_dir() else settings.model


def local_weights(settings: GeneratorSettings) -> str:
    """Name, revision and dtype of the weights, told without loading or converting them.

    Raises:
        ModelError: the model cannot be found.
    """
    revision = packaged_revision() if settings.model is None else folder_revision(model_folder(settings.model))
    return f"{model_name(settings)}@{revision} {settings.dtype}"


def local_identity(settings: GeneratorSettings) -> str:
    """The identity of the generator of `settings`, told without loading it.

    Raises:
        ModelError: the model cannot be found.
    """
    return (
        f"transformers {local_weights(settings)} template={settings.chat_template} "
        f"context_length={settings.context_length} max_answer_tokens={settings.max_answer_tokens} greedy"
    )


def local_folder(settings: GeneratorSettings, models: Path) -> Path:
    """The folder to load from: the configured one, or the packaged model converted below `models`.

    Raises:
        ModelError: the model cannot be found or converted.
    """
    return converted_smollm2(models) if settings.model is None else model_folder(settings.model)


def load_causal_model(folder: Path, settings: GeneratorSettings) -> Any:
    """The model in `folder`, ready to answer, on the GPU if there is one.

    Raises:
        ModelError: it cannot be read, or the GPU has not enough free memory for its weights.
    """
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    name = model_name(settings)
    try:
        model = AutoModelForCausalLM.from_pretrained(
            str(folder), local_files_only=True, dtype=getattr(torch, settings.dtype)
        ).eval()
    except (OSError, ValueError, KeyError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(f"{folder}: the generator cannot be loaded ({reason}); restore the folder") from None
    if not torch.cuda.is_available():
        return model
    # What an earlier stage of this process has let go of counts as free only after this.
    gc.collect()
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    check_memory(name, sum(part.numel() * part.element_size() for part in model.parameters()), free)
    return model.to("cuda")


def check_memory(name: str, needed: int, free: int) -> None:
    """Refuses a model whose weights need more bytes of GPU memory than are free.

    Raises:
        ModelError: both figures, and what to do.
    """
    if needed > free:
        raise ModelError(
            f"{name}: its weights need {needed / 1e9:.1f} GB of GPU memory and {free / 1e9:.1f} GB are free; "
            "end what holds the rest, or take a smaller model or generator.kind openai"
        )


def end_ids(tokenizer: Any, model: Any) -> Set[int]:
    """The token ids that end an answer."""
    ends = {tokenizer.eos_token_id}
    named = model.generation_config.eos_token_id
    ends.update(named if isinstance(named, list) else [named])
    return {token for token in ends if token is not None}
