"""From a configured model (folder or hub name) to a local folder, without hanging where there is no hub."""

from collections.abc import Sequence
from pathlib import Path

from corag.errors import ModelError

HUB_TIMEOUT_SECONDS = 10.0


TOKENIZER_FILES = ("*.json", "*.txt", "*.model", "*.jinja")
"""What to download of a model of which only the tokenizer is wanted: a server has its weights."""


def model_folder(model: str, only: Sequence[str] | None = None) -> Path:
    """The local folder of `model`: a folder, a hub name that was downloaded before, or one downloaded now.

    `only` are patterns of the files that are wanted of a model of the hub.

    Raises:
        ModelError: there is no such folder, and the hub does not answer within seconds or lacks the name.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(f"{folder}: no config.json in this model folder; name a folder in Hugging Face layout")
        return folder
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise ModelError(f"{model}: no such model folder; correct the path, or name a model of the hub")
    return _from_hub(model, only)


def _from_hub(name: str, only: Sequence[str] | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    patterns = None if only is None else list(only)
    mend = "correct the name, or download the model beforehand and name its folder in the configuration"
    try:
        return Path(snapshot_download(name, local_files_only=True, allow_patterns=patterns))
    except HFValidationError:
        raise ModelError(f"{name}: neither a folder nor a model name of the hub; {mend}") from None
    except FileNotFoundError:
        pass
    try:
        return Path(snapshot_download(name, etag_timeout=HUB_TIMEOUT_SECONDS, allow_patterns=patterns))
    except OSError as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(f"{name}: no such folder, and not to be had from the model hub ({reason}); {mend}") from None
