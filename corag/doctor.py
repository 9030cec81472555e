"""Checks that the parts of a configuration are there and fit each other."""

from collections.abc import Callable
from dataclasses import dataclass

from corag.components import Components
from corag.errors import CoragError
from corag.generators.openai_api import OpenAIGenerator
from corag.generators.openai_check import check_server
from corag.values import Prompt


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was found, or what is wrong and how to mend it."""

    check: str
    passed: bool
    detail: str

    def __str__(self) -> str:
        return f"{'ok     ' if self.passed else 'PROBLEM'}  {self.check:<22} {self.detail}"


def examine_parts(parts: Components, more: list[tuple[str, Callable[[], str]]]) -> list[Finding]:
    """A finding for each part of the configuration, and for each of the checks `more`; all are always made."""
    checks: list[tuple[str, Callable[[], str]]] = [
        ("embedder", lambda: _embedder(parts)),
        ("tokenizer", lambda: f"counts {parts.tokenizer.count('one two three')} tokens in 'one two three'"),
        ("vector store", lambda: _store(parts)),
        ("generator", lambda: _generator(parts)),
        *[(f"reranker {one.name}", lambda name=one.name: _reranker(parts, name)) for one in parts.config.rerankers],
        *more,
    ]
    return [_check(name, check) for name, check in checks]


def _check(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, check())
    except CoragError as error:
        return Finding(name, False, " ".join(str(error).split()))


def _embedder(parts: Components) -> str:
    embedder = parts.embedder
    return f"{embedder.name}, {embedder.dimension}-d, reads {embedder.max_length} tokens"


def _store(parts: Components) -> str:
    return f"{parts.store_uri}: {parts.store.count} chunks, version {parts.store.version}"


def _generator(parts: Components) -> str:
    if isinstance(parts.generator, OpenAIGenerator):
        return check_server(parts.generator, parts.config.generator)
    prompt = Prompt(system="Answer briefly.", user="Say yes.")
    (generation,) = parts.generator.generate([prompt])
    if generation.error is not None:
        raise CoragError(generation.error)
    return f"{parts.generator.name} answers; reads {parts.generator.context_length} tokens"


def _reranker(parts: Components, name: str) -> str:
    reranker = parts.reranker(name)
    (score,) = reranker.score_pairs([("what is a harbour", ("A harbour shelters ships.",))])
    return f"scores a pair ({score:.3f}); {reranker.identity}"
