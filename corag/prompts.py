"""Builds the prompt of one question from the chunks that the search chose."""

import re
from collections.abc import Mapping, Sequence

from corag.settings import PromptSettings
from corag.values import Prompt

JOINT = "\n\n"
"""What stands between two chunks, in the prompt and in what a reranker scores."""


def build_prompt(question: str, chunk_texts: Sequence[str], settings: PromptSettings) -> Prompt:
    """The two messages for the generator: the chunks stand in the given order, joined by a blank line.

    Without any chunk `settings.user_without_context` is used. Only the placeholders of the templates are filled in:
    braces in a question or a chunk are text.
    """
    template = settings.user if chunk_texts else settings.user_without_context
    values = {"question": question.strip(), "context": JOINT.join(chunk_texts)}
    return Prompt(system=_fill(settings.system, values), user=_fill(template, values))


def _fill(template: str, values: Mapping[str, str]) -> str:
    # One pass, so that what is filled in is never read as a template again.
    return re.sub(r"\{(question|context)\}", lambda match: values[match[1]], template)
