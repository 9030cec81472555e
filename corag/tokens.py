"""Counts tokens as the generator does: what chunks cost and budgets are measured in."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from corag.errors import ModelError
from corag.settings import GeneratorSettings

if TYPE_CHECKING:
    import tokenizers


class Tokenizer(Protocol):
    """Tokens of plain text, without the special tokens of a model."""

    name: str

    def count(self, text: str) -> int:
        """How many tokens `text` has."""
        ...

    def counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has."""
        ...

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each token, in characters of `text`."""
        ...


class FastTokenizer:
    """A tokenizer of the Hugging Face `tokenizers` library; a lone surrogate counts as U+FFFD."""

    def __init__(self, inner: "tokenizers.Tokenizer", name: str) -> None:
        inner.no_truncation()
        inner.no_padding()
        self._inner = inner
        self.name = name

    def count(self, text: str) -> int:
        """How many tokens `text` has."""
        return len(self._inner.encode(_encodable(text), add_special_tokens=False).ids)

    def counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has."""
        encoded = self._inner.encode_batch([_encodable(text) for text in texts], add_special_tokens=False)
        return [len(one.ids) for one in encoded]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each token, in characters of `text`."""
        return list(self._inner.encode(_encodable(text), add_special_tokens=False).offsets)


def load_tokenizer(source: str | Path, name: str | None = None) -> FastTokenizer:
    """The tokenizer of a folder's `tokenizer.json`, or of a hub name.

    Raises:
        ModelError: there is none, or it cannot be read.
    """
    import tokenizers

    file = Path(source) / "tokenizer.json"
    try:
        if file.is_file():
            return FastTokenizer(tokenizers.Tokenizer.from_file(str(file)), name or Path(source).name)
        if Path(source).exists() or str(source).startswith(("/", ".")):
            raise ModelError(f"{source}: holds no tokenizer.json; name a folder that does, or a hub name")
        from transformers import AutoTokenizer

        from corag.embedders.hub import TOKENIZER_FILES, model_folder

        inner = AutoTokenizer.from_pretrained(str(model_folder(str(source), TOKENIZER_FILES))).backend_tokenizer
    except ModelError:
        raise
    except Exception as error:  # noqa: BLE001 - the libraries raise bare exceptions for unreadable files and hubs
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"{source}: the tokenizer cannot be loaded ({reason}); name a local folder") from None
    return FastTokenizer(inner, name or str(source))


def generator_tokenizer(settings: GeneratorSettings, models: Path) -> FastTokenizer:
    """The tokenizer of the configured generator; `models` is where the packaged model is converted to.

    Raises:
        ModelError: it cannot be found.
    """
    if settings.tokenizer is not None:
        return load_tokenizer(settings.tokenizer)
    if settings.kind == "openai":
        if settings.model is None:
            raise ModelError("generator.tokenizer is not set: name the folder or hub name of the served model's own")
        return load_tokenizer(settings.model)
    from corag.generators.local_model import local_folder, model_name

    return load_tokenizer(local_folder(settings, models), model_name(settings))


def _encodable(text: str) -> str:
    """`text` with each lone surrogate replaced, one character for one, so that offsets stay."""
    return "".join("\ufffd" if "\ud800" <= one <= "\udfff" else one for one in text) if _has_surrogate(text) else text


def _has_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
