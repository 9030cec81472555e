"""From a prompt to the token ids that are sent: the chat template is decided once, when a model is loaded."""

import logging
from pathlib import Path
from typing import Any, Literal

from corag.embedders.base import clean
from corag.errors import ModelError
from corag.values import Prompt

logger = logging.getLogger(__name__)

TemplateKind = Literal["own", "plain"]


class ChatFormat:
    """The chat template of one tokenizer (`own`), or plain text (`plain`): "system, blank line, user, Answer:".

    `wanted` is `own`, `plain`, or `auto`: own where the tokenizer has one, else plain with a warning. A template
    that knows no system message gets it at the head of the user's. The ids begin with exactly one BOS if the
    tokenizer uses one (`begin`). Text that spells a special token is broken up, so that no document can end its turn.

    Raises:
        ModelError: `own` is wanted and the tokenizer has no chat template.
    """

    def __init__(self, tokenizer: Any, wanted: Literal["auto", "own", "plain"], model: str) -> None:
        self._tokenizer = tokenizer
        self.kind: TemplateKind = _decide(tokenizer, wanted, model)
        self._special = sorted(str(token) for token in tokenizer.added_tokens_decoder.values() if token.special)
        self._system_in_user = self.kind == "own" and not _takes_system(tokenizer)
        bos = tokenizer.bos_token_id
        self.begin: list[int] = [bos] if bos is not None and tokenizer("a")["input_ids"][:1] == [bos] else []
        logger.info("%s: prompts use %s", model, "its own chat template" if self.kind == "own" else "plain text")

    def text(self, prompt: Prompt) -> str:
        """The prompt as one text, special tokens of the template included."""
        system, user = self.safe(prompt.system), self.safe(prompt.user)
        if self.kind == "plain":
            return plain_text(system, user)
        messages = _messages(system, user, system_in_user=self._system_in_user)
        return str(self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

    def ids(self, prompt: Prompt) -> list[int]:
        """The token ids that are sent."""
        ids: list[int] = self._tokenizer(self.text(prompt), add_special_tokens=False)["input_ids"]
        bos = self._tokenizer.bos_token_id
        while bos is not None and ids[:2] == [bos, bos]:
            ids = ids[1:]
        return ids if ids[:1] == self.begin else [*self.begin, *ids]

    def safe(self, text: str) -> str:
        """`text` as valid Unicode and without any special token."""
        text = clean(text)
        for token in self._special:
            if token and token in text:
                text = text.replace(token, f"{token[0]} {token[1:]}")
        return text


def plain_text(system: str, user: str) -> str:
    """The two messages as one text for a model without a chat template."""
    return "\n\n".join(part for part in (system, user, "Answer:") if part)


def load_chat_tokenizer(folder: Path, model: str) -> Any:
    """The tokenizer in `folder`, for `model`.

    Raises:
        ModelError: there is none.
    """
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(f"{model}: its tokenizer cannot be loaded ({reason}); restore {folder}") from None


def _decide(tokenizer: Any, wanted: str, model: str) -> TemplateKind:
    if wanted == "plain":
        return "plain"
    if tokenizer.chat_template:
        logger.info("%s: prompts have its own chat template", model)
        return "own"
    if wanted == "own":
        raise ModelError(
            f"{model}: it has no chat template; set generator.chat_template to plain, or take another model"
        )
    logger.warning("%s has no chat template: prompts are plain text, as for a base model", model)
    return "plain"


def _messages(system: str, user: str, *, system_in_user: bool) -> list[dict[str, str]]:
    if not system:
        return [{"role": "user", "content": user}]
    if system_in_user:
        return [{"role": "user", "content": f"{system}\n\n{user}"}]
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _takes_system(tokenizer: Any) -> bool:
    from jinja2.exceptions import TemplateError

    probe = "corag-system-probe"
    try:
        text = tokenizer.apply_chat_template(_messages(probe, "a", system_in_user=False), tokenize=False)
    except TemplateError:
        return False
    return probe in text
