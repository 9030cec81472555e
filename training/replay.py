"""Replay: judges policies on recorded trials, without a single new model call (METHOD: configuration agent)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from corag.metrics import Interval, bootstrap
from training.inputs import TrainingInput
from training.policies import BEST_FIXED, ORACLE

LARGEST_FAILED_SHARE = 0.5
"""A policy without a finished trial on more than this share of the questions is set aside, not compared."""

GAP_FLOOR = 1e-9
"""Below this gap between best fixed and oracle there is nothing to close."""


@dataclass(frozen=True, slots=True)
class MethodRow:
    """One policy's figures over the compared questions.

    regret: mean ROUGE-L below the per-query oracle. gain: paired difference to the best fixed configuration.
    gap_closed: share of the gap between best fixed and oracle; None where there is no gap.
    """

    method: str
    rouge_l: Interval
    tokens: float
    regret: float
    gain: Interval
    gap_closed: float | None


@dataclass(frozen=True, slots=True)
class SliceRow:
    """One policy's mean over the questions of one kind or language."""

    slice: str
    method: str
    rouge_l: float
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """The comparison.

    qids: the compared questions. scores, tokens: float64 [n] of each policy. excluded: questions left out for all
    policies because some policy's trial there failed or was never run. set_aside: policies that failed on most
    questions, with the number of questions.
    """

    qids: tuple[str, ...]
    rows: tuple[MethodRow, ...]
    slices: tuple[SliceRow, ...]
    scores: Mapping[str, np.ndarray]
    tokens: Mapping[str, np.ndarray]
    excluded: tuple[str, ...]
    set_aside: Mapping[str, int]

    def row(self, method: str) -> MethodRow | None:
        """The figures of one policy; None where it was set aside."""
        return next((row for row in self.rows if row.method == method), None)


def replay(
    data: TrainingInput,
    rows: np.ndarray,
    policies: Mapping[str, np.ndarray],
    *,
    seed: int,
    samples: int = 1000,
    reference: str = BEST_FIXED,
) -> Replay:
    """The comparison of `policies` (columns of the grid, int64 [k] each) on the questions `rows` [k].

    A failed trial is never a score: the question is excluded for every policy and counted.
    """
    scores = {name: _looked_up(data.rouge_l, rows, columns) for name, columns in policies.items()}
    failures = {name: int(np.isnan(values).sum()) for name, values in scores.items()}
    set_aside = {name: count for name, count in failures.items() if count > LARGEST_FAILED_SHARE * len(rows)}
    kept = [name for name in policies if name not in set_aside]
    usable = np.ones(len(rows), dtype=bool)
    for name in kept:
        usable &= np.isfinite(scores[name])
    if not kept:
        usable[:] = False
    compared = {name: scores[name][usable] for name in kept}
    tokens = {name: _looked_up(data.tokens, rows, policies[name])[usable] for name in kept}
    questions = [data.questions[row] for row in rows]
    table = tuple(
        _method_row(name, compared, tokens[name], reference=reference, seed=seed, samples=samples)
        for name in kept
        if usable.any()
    )
    return Replay(
        qids=tuple(question.qid for question, use in zip(questions, usable, strict=True) if use),
        rows=table,
        slices=_slice_rows(slices_of(data, rows[usable]), compared),
        scores=compared,
        tokens=tokens,
        excluded=tuple(question.qid for question, use in zip(questions, usable, strict=True) if not use),
        set_aside=set_aside,
    )


def pooled(
    replays: Sequence[Replay], data: TrainingInput, *, seed: int, samples: int = 1000, reference: str = BEST_FIXED
) -> Replay:
    """One comparison over the questions of several replays that share none, for the policies that all of them have."""
    kept = [name for name in replays[0].scores if all(name in one.scores for one in replays)]
    scores = {name: np.concatenate([one.scores[name] for one in replays]) for name in kept}
    tokens = {name: np.concatenate([one.tokens[name] for one in replays]) for name in kept}
    qids = tuple(qid for one in replays for qid in one.qids)
    place = {question.qid: row for row, question in enumerate(data.questions)}
    rows = np.array([place[qid] for qid in qids], dtype=np.int64)
    return Replay(
        qids=qids,
        rows=tuple(
            _method_row(name, scores, tokens[name], reference=reference, seed=seed, samples=samples)
            for name in kept
            if qids
        ),
        slices=_slice_rows(slices_of(data, rows), scores),
        scores=scores,
        tokens=tokens,
        excluded=tuple(qid for one in replays for qid in one.excluded),
        set_aside={name: count for one in replays for name, count in one.set_aside.items()},
    )


def slices_of(data: TrainingInput, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Bool [k] membership of these rows in each slice, named `kind=…` or `language=…`, from the questions' metadata."""
    members: dict[str, np.ndarray] = {}
    for key in ("kind", "language"):
        values = np.array([str(data.questions[row].metadata.get(key, "")) for row in rows], dtype=object)
        for value in sorted(set(values)):
            if value:
                members[f"{key}={value}"] = values == value
    return members


def _looked_up(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return np.where(columns >= 0, table[rows, np.maximum(columns, 0)], np.nan)


def _method_row(
    name: str,
    scores: Mapping[str, np.ndarray],
    tokens: np.ndarray,
    *,
    reference: str,
    seed: int,
    samples: int,
) -> MethodRow:
    own = scores[name]
    base, oracle = scores.get(reference, own), scores.get(ORACLE, own)
    gap = float((oracle - base).mean())
    return MethodRow(
        method=name,
        rouge_l=bootstrap(own.tolist(), seed=seed, samples=samples),
        tokens=float(tokens.mean()),
        regret=float((oracle - own).mean()),
        gain=bootstrap((own - base).tolist(), seed=seed, samples=samples),
        gap_closed=float((own - base).mean()) / gap if gap > GAP_FLOOR else None,
    )


def _slice_rows(members: Mapping[str, np.ndarray], scores: Mapping[str, np.ndarray]) -> tuple[SliceRow, ...]:
    return tuple(
        SliceRow(name, method, float(values[inside].mean()), int(inside.sum()))
        for name, inside in members.items()
        for method, values in scores.items()
        if inside.any()
    )
