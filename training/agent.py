"""The trained configuration agent at work: batched, clipped, and modest about questions far from its training."""

import math
from dataclasses import dataclass

import numpy as np

from corag.agents import Choice
from corag.errors import ModelError
from corag.values import Configuration
from training.bundle import Bundle
from training.grid import from_unit, unit_rows

FAR_BATCH = 1024
"""Questions compared with the training vectors at a time: bounds the memory of the distance matrix."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedAgent:
    """Chooses by the network of a bundle; a question far from the training questions gets the fixed configuration."""

    bundle: Bundle
    fixed: Configuration
    name: str = "corag-agent"
    version: str | None = None

    @property
    def embedder(self) -> str:
        """Name of the embedder that it was trained with."""
        return self.bundle.card.embedder

    @property
    def embedder_revision(self) -> str:
        """Revision of that embedder."""
        return self.bundle.card.embedder_revision

    @property
    def dimension(self) -> int:
        """Width of the vectors that it reads."""
        return self.bundle.card.dimension

    @property
    def candidate_mean(self) -> bool:
        """Whether it reads the mean of the candidates' vectors behind each question's own."""
        return self.bundle.card.candidate_mean

    @property
    def rerankers(self) -> tuple[str, ...]:
        """Every reranker that it may choose."""
        return self.bundle.card.rerankers

    def choose(self, vectors: np.ndarray) -> list[Choice]:
        """One choice a row of `vectors` float32 [n, d].

        Raises:
            ModelError: the vectors have another width than those it was trained on.
        """
        given = np.ascontiguousarray(vectors, dtype=np.float32)
        if given.ndim != 2 or given.shape[1] != self.dimension:
            raise ModelError(f"agent {self.name}: reads vectors [n, {self.dimension}], was given {list(given.shape)}")
        if not len(given):
            return []
        finite = np.asarray(np.isfinite(given).all(axis=1))
        configurations = self.predict(np.where(finite[:, None], given, 0.0))
        distances = _nearest(unit_rows(given), self.bundle.neighbours)
        choices = []
        for row, configuration in enumerate(configurations):
            if not finite[row]:
                choices.append(Choice(self.fixed, "fixed", "the question's vector is not finite"))
            elif distances[row] > self.bundle.card.far_distance:
                reason = f"far from the training questions ({distances[row]:.3f} > {self.bundle.card.far_distance:.3f})"
                choices.append(Choice(self.fixed, "fixed", reason))
            else:
                choices.append(Choice(configuration, "agent", "predicted from the question"))
        return choices

    def predict(self, vectors: np.ndarray) -> list[Configuration]:
        """What the network says of vectors float32 [n, d], clipped to the swept ranges, near or far."""
        import torch

        card = self.bundle.card
        with torch.inference_mode():
            prediction = self.bundle.network(torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32)))
        if card.objective == "expected-rouge":
            best = prediction.leads.numpy().argmax(axis=1)
            return [Configuration(**card.grid[column].model_dump()) for column in best]
        classes = prediction.logits.numpy().argmax(axis=1)
        values = from_unit(prediction.parameters.numpy(), card.ranges)
        return [
            Configuration(card.rerankers[index], round(float(i)), round(float(cost), 4), round(float(explore), 4))
            for index, (i, cost, explore) in zip(classes, values, strict=True)
        ]


def nearest_distances(vectors: np.ndarray, neighbours: np.ndarray, *, leave_one_out: bool = False) -> np.ndarray:
    """float64 [n] the cosine distance of each vector to the nearest of `neighbours` [m, d].

    With `leave_one_out` row i of `vectors` is row i of `neighbours` and does not count as its own neighbour;
    without another neighbour the distance is infinite.
    """
    units, others = unit_rows(vectors), unit_rows(neighbours)
    return _nearest(units, others, leave_one_out=leave_one_out)


def _nearest(units: np.ndarray, others: np.ndarray, *, leave_one_out: bool = False) -> np.ndarray:
    """The distances for rows of length 1."""
    nearest = np.empty(len(units))
    for start in range(0, len(units), FAR_BATCH):
        similarity = units[start : start + FAR_BATCH] @ others.T
        if leave_one_out:
            rows = np.arange(len(similarity))
            similarity[rows, start + rows] = -np.inf
        nearest[start : start + len(similarity)] = 1.0 - similarity.max(axis=1)
    return nearest


def far_distance(vectors: np.ndarray, quantile: float) -> float:
    """The `quantile` of the training questions' distances to their nearest other; 2 (never far) for a single one."""
    if len(vectors) < 2:
        return 2.0
    threshold = float(np.quantile(nearest_distances(vectors, vectors, leave_one_out=True), quantile))
    return threshold if math.isfinite(threshold) else 2.0
