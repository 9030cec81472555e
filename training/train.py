"""Trains an agent from a sweep: data set, split, one fit a seed, the bundle on disk, and its replay."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from corag.settings import AgentSettings
from corag.values import Configuration
from training.agent import TrainedAgent, far_distance
from training.bundle import AgentCard, GridPoint, load_bundle, save_bundle
from training.dataset import Dataset, build_dataset
from training.fit import Fit, fit
from training.inputs import TrainingInput
from training.policies import AGENT, agent_columns, baseline_policies
from training.replay import Replay, replay
from training.split import Split


@dataclass(frozen=True, slots=True, eq=False)
class TrainingResult:
    """What one training made.

    fits: one a seed; best: the fit of least validation loss, which the bundle in `folder` holds. held_out: the
    replay on the held-out part. accuracy, majority: see `reranker_accuracy`.
    """

    card: AgentCard
    folder: Path
    agent: TrainedAgent
    dataset: Dataset
    split: Split
    fits: tuple[Fit, ...]
    best: Fit
    held_out: Replay
    accuracy: float | None
    majority: float | None


def train_agent(
    data: TrainingInput,
    settings: AgentSettings,
    *,
    configured: Configuration,
    seed: int,
    work: Path,
    on_epoch: Callable[[int], None] = lambda epoch: None,
    bootstrap_samples: int = 1000,
) -> TrainingResult:
    """The trained agent, its bundle in `work/bundle`, and its figures. Same data, settings and seed: same weights.

    `configured` is the fixed configuration for questions far from the training data. `settings.seeds` fits are made,
    from `seed` on, on the same split.

    Raises:
        LabelError: too few labels, or labels of one reranker only.
        ModelError: no epoch had a finite loss.
    """
    dataset = build_dataset(data, settings)
    split = dataset.split(settings.validation_fraction, seed)
    train, validation = dataset.take(split.train), dataset.take(split.validation)
    fits = tuple(
        fit(train, validation, settings, seed=seed + offset, work=work / "fits", on_epoch=on_epoch)
        for offset in range(settings.seeds)
    )
    best = min(fits, key=lambda one: one.history[one.best_epoch]["val_loss"])
    card = save_bundle(
        work / "bundle",
        best.network,
        dataset.features,
        rerankers=data.rerankers,
        ranges=dataset.ranges,
        grid=tuple(
            GridPoint(
                reranker=point.reranker,
                iterations=point.iterations,
                cost_coefficient=point.cost_coefficient,
                exploration_coefficient=point.exploration_coefficient,
            )
            for point in data.grid
        ),
        embedder=data.embedding.name,
        embedder_revision=data.embedding.revision,
        dimension=data.embedding.dimension,
        hidden=settings.hidden,
        objective=settings.objective,
        candidate_mean=settings.candidate_mean,
        far_distance=far_distance(dataset.features, settings.far_quantile),
        data_fingerprint=data.fingerprint,
    )
    agent = TrainedAgent(load_bundle(work / "bundle"), configured, settings.model_name)
    rows = data.rows("held_out")
    accuracy, majority = reranker_accuracy(agent, data)
    return TrainingResult(
        card=card,
        folder=work / "bundle",
        agent=agent,
        dataset=dataset,
        split=split,
        fits=fits,
        best=best,
        held_out=replay_agent(agent, data, rows, configured=configured, seed=seed, samples=bootstrap_samples),
        accuracy=accuracy,
        majority=majority,
    )


def replay_agent(
    agent: TrainedAgent,
    data: TrainingInput,
    rows: np.ndarray,
    *,
    configured: Configuration,
    seed: int,
    samples: int = 1000,
) -> Replay:
    """The agent beside every baseline on the questions `rows`."""
    policies = {AGENT: agent_columns(agent, data, rows)}
    policies |= baseline_policies(data, rows, configured=configured, seed=seed)
    return replay(data, rows, policies, seed=seed, samples=samples)


def reranker_accuracy(agent: TrainedAgent, data: TrainingInput) -> tuple[float | None, float | None]:
    """How often the agent names the label's reranker on held-out questions, and how often the majority class is it.

    The majority class is the most frequent of the train part's kept labels. Both are None without a
    kept label on either side.
    """
    truth = {row: name for row in range(len(data.questions)) if (name := _best_reranker(data, row))}
    train = [truth[int(row)] for row in data.rows("train") if int(row) in truth]
    held_out = [int(row) for row in data.rows("held_out") if int(row) in truth]
    if not train or not held_out:
        return None, None
    majority = max(data.rerankers, key=train.count)
    chosen = [choice.configuration.reranker for choice in agent.choose(data.vectors[held_out])]
    right = [name == truth[row] for name, row in zip(chosen, held_out, strict=True)]
    return float(np.mean(right)), float(np.mean([truth[row] == majority for row in held_out]))


def _best_reranker(data: TrainingInput, row: int) -> str:
    label = data.labels.get(data.questions[row].qid)
    return label.configuration.reranker if label is not None and label.kept and label.configuration else ""
