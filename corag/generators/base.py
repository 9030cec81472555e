"""What every generator offers, and the few lines that all of them share."""

from collections.abc import Sequence
from typing import Protocol

from corag.values import Generation, Prompt


class Generator(Protocol):
    """Answers prompts, greedily.

    `identity` holds whatever decides an answer (model revision, dtype, template, lengths): it is part of each memo
    key. The batch size is not in it: with float arithmetic an answer may differ between batch sizes, while the same
    prompts with the same settings always give the same answers.
    """

    name: str
    identity: str
    context_length: int

    @property
    def given_up(self) -> bool:
        """Whether it waits on a server that is down and did not come back in time."""
        ...

    def count_prompt(self, prompt: Prompt) -> int:
        """Tokens of the prompt with its chat template: as many as are really sent."""
        ...

    def generate(self, prompts: Sequence[Prompt]) -> list[Generation]:
        """One generation a prompt, in the order of `prompts`; a prompt that fails has an `error` and does no harm."""
        ...

    def close(self) -> None:
        """Let go of memory or connections."""
        ...


def failed(reason: str, prompt_tokens: int = 0) -> Generation:
    """The generation of a prompt that got no answer, with a one-line reason."""
    return Generation("", prompt_tokens, 0, "error", " ".join(reason.split())[:400])


def printable(text: str) -> str:
    """`text` without white space around it, as valid Unicode: each lone surrogate is replaced."""
    return text.encode("utf-8", "replace").decode("utf-8").strip()
