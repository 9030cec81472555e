"""A causal language model in this process, through transformers: on a GPU if there is one, else on the CPU."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from corag.generators.base import failed, printable
from corag.generators.chat import ChatFormat, load_chat_tokenizer
from corag.generators.greedy import Decoded, continuation_means, greedy_decode
from corag.generators.local_model import (
    end_ids,
    load_causal_model,
    local_folder,
    local_identity,
    local_weights,
    model_name,
)
from corag.settings import GeneratorSettings
from corag.values import Generation, Prompt

_Result = TypeVar("_Result")

# No text has more characters a token than this, but for padding and blobs: a longer prompt is not worth tokenizing.
_CHARACTERS_PER_TOKEN = 64

# Bounds the memory of the logits: so many positions times the vocabulary.
_SCORED_POSITIONS = 1024


class TransformersGenerator:
    """Answers prompts greedily in batches of similar length. `models` is where the packaged model is converted to.

    Raises:
        ModelError: the model cannot be found, loaded, or held in the device's memory.
    """

    def __init__(self, settings: GeneratorSettings, models: Path) -> None:
        folder = local_folder(settings, models)
        self.name = model_name(settings)
        self.weights = local_weights(settings)
        self.identity = local_identity(settings)
        self.given_up = False
        self._settings = settings
        self._tokenizer = load_chat_tokenizer(folder, self.name)
        self._chat = ChatFormat(self._tokenizer, settings.chat_template, self.name)
        self._model = load_causal_model(folder, settings)
        self._ends = end_ids(self._tokenizer, self._model)
        positions = getattr(self._model.config, "max_position_embeddings", None)
        self.context_length = min(settings.context_length, positions or settings.context_length)

    def count_prompt(self, prompt: Prompt) -> int:
        """Tokens of the prompt with its chat template: the length of the ids that are sent."""
        return len(self._chat.ids(prompt))

    def generate(self, prompts: Sequence[Prompt]) -> list[Generation]:
        """One generation a prompt, in the order of `prompts`; a prompt beyond the context has an `error`."""
        results: dict[int, Generation] = {}
        ids: dict[int, list[int]] = {}
        for index, prompt in enumerate(prompts):
            sent = self._ids(prompt)
            if isinstance(sent, Generation):
                results[index] = sent
            else:
                ids[index] = sent
        for batch in _batches({index: len(row) for index, row in ids.items()}, self._settings.batch_size):
            decoded = _halving(
                lambda part: greedy_decode(
                    self._model, [ids[index] for index in part], self._settings.max_answer_tokens, self._ends
                ),
                batch,
            )
            for index, one in zip(batch, decoded, strict=True):
                results[index] = self._generation(one, len(ids[index]))
        return [results[index] for index in range(len(prompts))]

    def continuation_log_probabilities(
        self, head: str, texts: Sequence[str], tail: str, continuations: Sequence[str], max_length: int, batch_size: int
    ) -> list[tuple[float, bool]]:
        """Per row the mean log-probability a token of the continuation after head + text + tail, and whether cut.

        Where the whole exceeds `max_length` tokens, the text loses its end; where that does not suffice, the
        continuation too. NaN for a continuation without tokens, or where memory does not suffice.
        """
        rows = [
            self._continued(head, text, tail, continuation, max_length)
            for text, continuation in zip(texts, continuations, strict=True)
        ]
        widest = max((length for _, length, _ in rows), default=1)
        size = min(batch_size, max(1, _SCORED_POSITIONS // max(1, widest)))
        means: dict[int, float] = {}
        for batch in _batches({index: len(row) for index, (row, _, _) in enumerate(rows)}, size):
            found = _halving(
                lambda part: continuation_means(
                    self._model, [rows[index][0] for index in part], [rows[index][1] for index in part]
                ),
                batch,
            )
            means.update(zip(batch, (math.nan if one is None else one for one in found), strict=True))
        return [(means[index], cut) for index, (_, _, cut) in enumerate(rows)]

    def close(self) -> None:
        """Let go of the model's memory; the generator is of no further use."""
        import torch

        self._model = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _ids(self, prompt: Prompt) -> list[int] | Generation:
        """The ids to send, or why the prompt does not fit."""
        characters = len(prompt.system) + len(prompt.user)
        if characters > self.context_length * _CHARACTERS_PER_TOKEN:
            return failed(f"prompt of {characters} characters exceeds the context of {self.context_length} tokens")
        ids = self._chat.ids(prompt)
        if len(ids) + self._settings.max_answer_tokens > self.context_length:
            return failed(
                f"prompt of {len(ids)} tokens and {self._settings.max_answer_tokens} for the answer exceed the "
                f"context of {self.context_length} tokens",
                len(ids),
            )
        return ids

    def _generation(self, decoded: Decoded | None, prompt_tokens: int) -> Generation:
        if decoded is None:
            return failed("out of memory for this prompt alone", prompt_tokens)
        if decoded.finish == "invalid":
            return failed(f"the model gave NaN in {self._settings.dtype}; use float32", prompt_tokens)
        text = printable(self._tokenizer.decode(decoded.ids, skip_special_tokens=True))
        return Generation(text, prompt_tokens, len(decoded.ids), decoded.finish)

    def _continued(
        self, head: str, text: str, tail: str, continuation: str, max_length: int
    ) -> tuple[list[int], int, bool]:
        """The ids of the whole, how many of them belong to the continuation, and whether anything was cut."""
        before, middle, after, last = (
            self._tokenizer(self._chat.safe(part[: max_length * _CHARACTERS_PER_TOKEN]), add_special_tokens=False)[
                "input_ids"
            ]
            for part in (head, text, tail, continuation)
        )
        fixed = [*self._chat.begin, *before]
        last_kept = last[: max(0, max_length - len(fixed) - len(after))]
        middle_kept = middle[: max(0, max_length - len(fixed) - len(after) - len(last_kept))]
        cut = len(last_kept) < len(last) or len(middle_kept) < len(middle)
        return [*fixed, *middle_kept, *after, *last_kept], len(last_kept), cut


def _batches(lengths: dict[int, int], size: int) -> list[list[int]]:
    """The indices in batches of similar length; the longest first, so that a lack of memory shows at once."""
    order = sorted(lengths, key=lambda index: (-lengths[index], index))
    return [order[start : start + size] for start in range(0, len(order), size)]


def _halving(work: Callable[[list[int]], list[_Result]], batch: list[int]) -> list[_Result | None]:
    """`work(batch)`, in ever smaller halves where the device's memory does not suffice; None for one alone too big."""
    import torch

    try:
        return list(work(batch))
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
    if len(batch) == 1:
        return [None]
    middle = len(batch) // 2
    return _halving(work, batch[:middle]) + _halving(work, batch[middle:])
