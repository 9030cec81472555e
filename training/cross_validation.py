"""Cross-validated replay: every question is judged once by an agent that has not seen it; and the learning curve."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from corag.errors import LabelError
from corag.settings import AgentSettings
from corag.values import Configuration
from corag.words import normalized
from training.inputs import Part, TrainingInput
from training.policies import AGENT
from training.replay import Replay, pooled
from training.train import train_agent


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The agent after training on a share of the questions.

    labels: questions learnt from, the mean over the folds. gap_closed: of the gap between best fixed and oracle.
    """

    share: float
    labels: float
    rouge_l: float
    gap_closed: float | None


def cross_validate(
    data: TrainingInput,
    settings: AgentSettings,
    *,
    configured: Configuration,
    seed: int,
    work: Path,
    folds: int = 5,
    share: float = 1.0,
    samples: int = 1000,
) -> Replay:
    """The replay over all questions, each judged in the fold that held it back; baselines are fitted like the agent.

    Folds are stratified by best reranker and keep duplicates together. `share` of each fold's training questions is
    used, drawn by the seed. The parts `train` and `held_out` of `data` do not matter here.

    Raises:
        LabelError: a fold has too few labels to train on.
    """
    judged = _folds(data, settings, configured, seed, work, folds, share, samples)
    return pooled([fold for fold, _ in judged], data, seed=seed, samples=samples)


def learning_curve(
    data: TrainingInput,
    settings: AgentSettings,
    *,
    configured: Configuration,
    seed: int,
    work: Path,
    shares: Sequence[float] = (0.25, 0.5, 0.75, 1.0),
    folds: int = 5,
    samples: int = 1000,
) -> list[CurvePoint]:
    """The cross-validated agent by share of the training questions; shares with too few labels are left out.

    Where the last points still rise, more labels would help; where they lie flat, they would not.
    """
    points = []
    for share in shares:
        try:
            judged = _folds(data, settings, configured, seed, work, folds, share, samples)
        except LabelError:
            continue
        row = pooled([fold for fold, _ in judged], data, seed=seed, samples=samples).row(AGENT)
        if row is not None:
            labels = float(np.mean([count for _, count in judged]))
            points.append(CurvePoint(share, labels, row.rouge_l.mean, row.gap_closed))
    return points


def rearranged(data: TrainingInput, train: Sequence[int], held_out: Sequence[int]) -> TrainingInput:
    """The same sweep with these rows as its two parts, and no others."""
    rows = np.array([*train, *held_out], dtype=np.int64)
    inside: list[Part] = ["train"] * len(train)
    outside: list[Part] = ["held_out"] * len(held_out)
    return replace(
        data,
        questions=tuple(data.questions[row] for row in rows),
        parts=(*inside, *outside),
        vectors=data.vectors[rows],
        rouge_l=data.rouge_l[rows],
        tokens=data.tokens[rows],
    )


def _folds(
    data: TrainingInput,
    settings: AgentSettings,
    configured: Configuration,
    seed: int,
    work: Path,
    folds: int,
    share: float,
    samples: int,
) -> list[tuple[Replay, int]]:
    """Each fold's replay, and the labelled questions that its agent learnt from."""
    from sklearn.model_selection import StratifiedGroupKFold

    names = [_best_reranker(data, row) for row in range(len(data.questions))]
    groups = [normalized(question.question) for question in data.questions]
    chooser = np.random.default_rng(seed)
    judged = []
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    for train, held_out in splitter.split(data.vectors, names, groups):
        kept = np.sort(chooser.permutation(train)[: max(1, round(share * len(train)))])
        part = rearranged(data, [int(row) for row in kept], [int(row) for row in held_out])
        result = train_agent(part, settings, configured=configured, seed=seed, work=work, bootstrap_samples=samples)
        judged.append((result.held_out, len(result.dataset.qids)))
    return judged


def _best_reranker(data: TrainingInput, row: int) -> str:
    label = data.labels.get(data.questions[row].qid)
    return label.configuration.reranker if label is not None and label.kept and label.configuration else ""
