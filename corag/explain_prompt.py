"""Where the tokens of a prompt go, and which chunk each sentence of an answer stands on."""

import re
from collections.abc import Sequence

from corag.tokens import Tokenizer
from corag.values import Chunk, Prompt
from corag.words import words

SHARED = 0.5
"""A sentence is marked with a chunk that holds at least this share of its words."""


def prompt_parts(
    question: str, chunks: Sequence[Chunk], prompt: Prompt, total: int, tokenizer: Tokenizer
) -> list[tuple[str, int]]:
    """What the `total` tokens of the prompt are spent on: system, each chunk, question, and the template around them.

    The template is the rest: the wording of `prompt.user`, the blank lines between chunks, the marks of the chat.
    """
    parts = [("system", tokenizer.count(prompt.system))]
    parts += [(f"[{place}] {chunk.chunk_id}", chunk.tokens) for place, chunk in enumerate(chunks, 1)]
    parts.append(("question", tokenizer.count(question.strip())))
    parts.append(("template", total - sum(tokens for _, tokens in parts)))
    return parts


def marked_sentences(answer: str, chunks: Sequence[Chunk]) -> list[tuple[str, list[int]]]:
    """The sentences of the answer, each with the places (from 1) of the chunks that hold most of its words.

    Models do not cite by themselves: the marks show agreement in words, nothing more. Only the chunks that share the
    most are named, and none where all share less than half.
    """
    held = [set(words(chunk.text)) for chunk in chunks]
    marked = []
    for sentence in re.findall(r".+?(?:[.!?](?=\s|$)|[。！？]|\n|$)\s*", answer, flags=re.DOTALL):
        own = words(sentence)
        shares = [sum(word in words_of for word in own) / len(own) if own else 0.0 for words_of in held]
        most = max(shares, default=0.0)
        places = [place for place, share in enumerate(shares, 1) if share == most and share >= SHARED]
        marked.append((sentence.strip(), places))
    return [(sentence, places) for sentence, places in marked if sentence]
