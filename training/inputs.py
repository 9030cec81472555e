"""What a sweep hands to training: its trials as two arrays over the grid, its labels, and the questions' vectors."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from corag.errors import InputError
from corag.values import Configuration, Label, Question

if TYPE_CHECKING:
    import pandas as pd

Part = Literal["train", "held_out"]


@dataclass(frozen=True, slots=True)
class Embedding:
    """Whose vectors these are."""

    name: str
    revision: str
    dimension: int


@dataclass(frozen=True, slots=True, eq=False)
class TrainingInput:
    """The recorded work of a sweep over n questions and a grid of g configurations.

    vectors: float32 [n, d] the questions' embeddings, in the order of `questions`.
    parts: [n] `train` or `held_out`.
    rouge_l: float64 [n, g] each trial's ROUGE-L; NaN where the trial failed or was never run.
    tokens: float64 [n, g] each trial's context tokens; NaN where it was never run.
    rerankers: the swept rerankers in the order of the configuration; the agent's classes.
    corpus_version: what the trials were run on, part of the fingerprint.
    """

    questions: tuple[Question, ...]
    parts: tuple[Part, ...]
    vectors: np.ndarray
    grid: tuple[Configuration, ...]
    rouge_l: np.ndarray
    tokens: np.ndarray
    labels: Mapping[str, Label]
    rerankers: tuple[str, ...]
    embedding: Embedding
    corpus_version: str = ""

    def rows(self, part: Part) -> np.ndarray:
        """int64 [k] the rows of one part, in their order."""
        return np.flatnonzero(np.array([which == part for which in self.parts], dtype=bool))

    @property
    def recorded(self) -> np.ndarray:
        """Bool [n, g] where a trial was run, whether or not it succeeded."""
        return ~np.isnan(self.tokens)

    @property
    def fingerprint(self) -> str:
        """A hash of everything an agent is trained and judged on: equal fingerprints, equal data."""
        digest = hashlib.sha256()
        for row, question in enumerate(self.questions):
            label = self.labels.get(question.qid)
            digest.update(repr((question.qid, question.question, self.parts[row], label)).encode("utf-8", "replace"))
        for array in (self.vectors, self.rouge_l, self.tokens):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(repr((self.grid, self.rerankers, self.embedding, self.corpus_version)).encode())
        return digest.hexdigest()


def training_input(
    trials: "pd.DataFrame",
    labels: Sequence[Label],
    questions: Sequence[Question],
    vectors: np.ndarray,
    parts: Mapping[str, Part],
    *,
    rerankers: Sequence[str],
    embedding: Embedding,
    corpus_version: str = "",
) -> TrainingInput:
    """The arrays of a sweep, from its trials table and its labels.

    `trials` has one row a (qid, configuration): qid, reranker, iterations, cost_coefficient,
    exploration_coefficient, context_tokens, rouge_l (null where it failed) and maybe error; other columns are
    ignored. `vectors` float32 [n, d] belong to `questions`, `parts` is keyed by qid. Trials of other
    questions are ignored; a question without trials has NaN everywhere.

    Raises:
        InputError: the vectors do not belong to the questions, or a trial appears twice.
    """
    from pandas import isna

    given = np.ascontiguousarray(vectors, dtype=np.float32)
    if given.shape != (len(questions), embedding.dimension):
        raise InputError(
            f"training: {len(questions)} questions of {embedding.dimension} dimensions, "
            f"but the vectors are {list(given.shape)}; embed the questions again"
        )
    row_of = {question.qid: row for row, question in enumerate(questions)}
    grid = _grid(trials, rerankers)
    column_of = {configuration: column for column, configuration in enumerate(grid)}
    rouge_l = np.full((len(questions), len(grid)), np.nan)
    tokens = np.full((len(questions), len(grid)), np.nan)
    errors = trials["error"] if "error" in trials else [None] * len(trials)
    names = ("qid", "context_tokens", "rouge_l")
    for configuration, qid, cost, score, error in zip(
        _configurations(trials), *(trials[name] for name in names), errors, strict=True
    ):
        row, column = row_of.get(str(qid)), column_of.get(configuration)
        if row is None or column is None:
            continue
        if not np.isnan(tokens[row, column]):
            raise InputError(f"training: question {qid!r} has two trials of {configuration}; sweep again")
        tokens[row, column] = 0.0 if isna(cost) else float(cost)
        failed = isinstance(error, str) or isna(score)
        rouge_l[row, column] = np.nan if failed else float(score)
    return TrainingInput(
        questions=tuple(questions),
        parts=tuple(parts[question.qid] for question in questions),
        vectors=given,
        grid=grid,
        rouge_l=rouge_l,
        tokens=tokens,
        labels={label.qid: label for label in labels},
        rerankers=tuple(rerankers),
        embedding=embedding,
        corpus_version=corpus_version,
    )


def _configurations(trials: "pd.DataFrame") -> list[Configuration]:
    columns = ("reranker", "iterations", "cost_coefficient", "exploration_coefficient")
    return [
        Configuration(str(reranker), int(iterations), float(cost), float(exploration))
        for reranker, iterations, cost, exploration in zip(*(trials[name] for name in columns), strict=True)
    ]


def _grid(trials: "pd.DataFrame", rerankers: Sequence[str]) -> tuple[Configuration, ...]:
    """The distinct configurations tried, by the rerankers' configured order, then by their parameters."""
    place = {name: index for index, name in enumerate(rerankers)}
    known = {configuration for configuration in _configurations(trials) if configuration.reranker in place}
    return tuple(sorted(known, key=lambda configuration: (place[configuration.reranker], configuration)))
