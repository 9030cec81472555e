"""From questions to candidates: embed, search the store, drop chunks whose text is already there."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from corag.embedders.base import Embedder, Vectors, valid_rows
from corag.errors import InputError
from corag.records import text_field
from corag.settings import RetrievalSettings
from corag.store import ChunkStore
from corag.values import Candidate, Question
from corag.words import words

FILTER_FIELD = "filter"
"""A question's own field `filter.source`, or `source` in its field `filter` (a JSON object), restricts its candidates
to chunks with that `source`."""

_SPARE_FACTOR = 2


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The candidates of one question, best first, and its vector [d].

    `error` is a one-line reason where the question could not be searched; a search that finds nothing is no error.
    `mean` [d] is the mean of the candidates' vectors, zeros without candidates; None where it was not asked for.
    """

    qid: str
    candidates: tuple[Candidate, ...]
    vector: Vectors | None
    error: str | None = None
    mean: Vectors | None = None


def retrieve(
    store: ChunkStore,
    embedder: Embedder,
    questions: Sequence[Question],
    settings: RetrievalSettings,
    candidate_mean: bool = False,
) -> list[Retrieval]:
    """One retrieval a question, in the order of `questions`; a batch gives what single questions give.

    Each has `settings.top_k` candidates of distinct words (fewer where the store holds fewer): of equal texts the best
    one stays, the lower chunk id on ties. A question without a usable vector or filter fails alone. `candidate_mean`
    adds the mean of the candidates' vectors, which an embedder with a memory mostly knows.

    Raises:
        StoreError: the store cannot be searched.
    """
    if not questions:
        return []
    vectors = embedder.embed([question.question for question in questions])
    usable = valid_rows(vectors)
    errors: dict[int, str] = {}
    groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for index, question in enumerate(questions):
        if not usable[index]:
            errors[index] = "the embedder gave no usable vector for the question"
            continue
        try:
            wanted = wanted_metadata(question, settings.filter)
        except InputError as error:
            errors[index] = str(error)
        else:
            groups.setdefault(tuple(sorted(wanted.items())), []).append(index)
    found: dict[int, list[Candidate]] = {}
    for wanted_pairs, members in sorted(groups.items()):
        texts = [questions[index].question for index in members]
        candidates = _search_distinct(store, vectors[members], texts, settings, dict(wanted_pairs))
        found.update(zip(members, candidates, strict=True))
    means = _means(found, embedder) if candidate_mean else {}
    return [
        Retrieval(question.qid, tuple(found[index]), vectors[index], mean=means.get(index))
        if index in found
        else Retrieval(question.qid, (), None, errors[index])
        for index, question in enumerate(questions)
    ]


def _means(found: Mapping[int, Sequence[Candidate]], embedder: Embedder) -> dict[int, Vectors]:
    """The mean vector of each question's candidates."""
    texts = list(dict.fromkeys(one.chunk.text for candidates in found.values() for one in candidates))
    known = dict(zip(texts, embedder.embed(texts), strict=True))
    nothing = np.zeros(embedder.dimension, dtype=np.float32)
    return {
        index: np.mean([known[one.chunk.text] for one in candidates], axis=0) if candidates else nothing
        for index, candidates in found.items()
    }


def wanted_metadata(question: Question, configured: Mapping[str, str]) -> dict[str, str]:
    """The metadata that the question's candidates must have: the configured filter, then the question's own.

    Raises:
        InputError: the question's field `filter` is no JSON object.
    """
    prefix = f"{FILTER_FIELD}."
    own = {name.removeprefix(prefix): value for name, value in question.metadata.items() if name.startswith(prefix)}
    return {**configured, **_filter_object(question), **own}


def _filter_object(question: Question) -> dict[str, str]:
    text = question.metadata.get(FILTER_FIELD, "")
    if not text.strip():
        return {}
    try:
        held = json.loads(text)
    except ValueError:
        held = None
    if not isinstance(held, dict):
        raise InputError(f'the field `filter` is no JSON object such as {{"source": "a"}}: {text[:80]!r}')
    return {name: text_field(value) for name, value in held.items()}


def distinct_texts(candidates: Sequence[Candidate], top_k: int) -> list[Candidate]:
    """The first `top_k` of `candidates` whose words differ: case, spaces and punctuation make no other text."""
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        text = candidate.chunk.text
        first.setdefault(" ".join(words(text)) or text, candidate)
    return list(first.values())[:top_k]


def _search_distinct(
    store: ChunkStore, vectors: Vectors, texts: Sequence[str], settings: RetrievalSettings, wanted: Mapping[str, str]
) -> list[list[Candidate]]:
    """Candidates of distinct text per query, searching deeper for those that copies have left short."""
    results: list[list[Candidate]] = [[] for _ in texts]
    pending = list(range(len(texts)))
    limit = settings.top_k * _SPARE_FACTOR
    while pending:
        hits = store.search(vectors[pending], [texts[index] for index in pending], limit, settings.mode, wanted)
        short = []
        for index, candidates in zip(pending, hits, strict=True):
            results[index] = distinct_texts(candidates, settings.top_k)
            if len(results[index]) < settings.top_k and len(candidates) >= limit:
                short.append(index)
        pending, limit = short, limit * _SPARE_FACTOR
    return results
