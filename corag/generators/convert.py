"""Converts the packaged GGUF model to safetensors, once."""

import contextlib
import io
import logging
import shutil
from pathlib import Path

from corag.embedders.revision import folder_revision
from corag.errors import ModelError
from corag.packaged import smollm2_file

logger = logging.getLogger(__name__)

PACKAGED_NAME = "SmolLM2-135M-Instruct"


def packaged_revision() -> str:
    """Twelve hex digits that change with the packaged GGUF file."""
    return folder_revision(smollm2_file().parent)


def converted_smollm2(models: Path) -> Path:
    """The folder below `models` with the packaged SmolLM2 as float32 safetensors and its tokenizer (540 MB).

    Converted at the first call (20 seconds), whichever process comes first; the folder appears under its name only
    when it is whole.

    Raises:
        ModelError: the package is missing, or the folder cannot be written.
    """
    from filelock import FileLock

    source = smollm2_file()
    target = models / f"{PACKAGED_NAME}-{packaged_revision()}"
    if target.is_dir():
        return target
    aside = target.with_name(f".{target.name}.part")
    try:
        models.mkdir(parents=True, exist_ok=True)
        with FileLock(str(target.with_name(f".{target.name}.lock"))):
            if not target.is_dir():
                # What a killed conversion left behind.
                shutil.rmtree(aside, ignore_errors=True)
                logger.info("converting %s to safetensors, once: %s", source.name, target)
                _convert(source, aside)
                aside.rename(target)
    except OSError as error:
        raise ModelError(f"{target}: the packaged model cannot be converted ({error}); free space or rights") from None
    return target


def _convert(source: Path, target: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # The library draws bars that cannot be turned off.
    with contextlib.redirect_stderr(io.StringIO()):
        tokenizer = AutoTokenizer.from_pretrained(str(source.parent), gguf_file=source.name)
        loaded = AutoModelForCausalLM.from_pretrained(str(source.parent), gguf_file=source.name, dtype=torch.float32)
        # A model that was read from GGUF refuses to be saved: its weights move to a plain one.
        del loaded.config.quantization_config
        plain = AutoModelForCausalLM.from_config(loaded.config)
        plain.load_state_dict(loaded.state_dict())
        plain.generation_config = loaded.generation_config
        plain.save_pretrained(str(target))
        tokenizer.save_pretrained(str(target))
