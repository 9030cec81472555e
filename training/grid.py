"""Scaling: parameters to [0, 1] and back, clipped; vectors to length 1; a choice to its nearest recorded trial."""

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from corag.values import Configuration

PARAMETERS = 3
"""Iterations, cost coefficient λ and exploration coefficient c, in this order everywhere."""


class Ranges(BaseModel):
    """The lowest and highest swept value of each parameter."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    iterations: tuple[int, int]
    cost_coefficient: tuple[float, float]
    exploration_coefficient: tuple[float, float]

    @property
    def low(self) -> np.ndarray:
        """float64 [3] the lower bounds."""
        return np.array([self.iterations[0], self.cost_coefficient[0], self.exploration_coefficient[0]], float)

    @property
    def high(self) -> np.ndarray:
        """float64 [3] the upper bounds."""
        return np.array([self.iterations[1], self.cost_coefficient[1], self.exploration_coefficient[1]], float)


def swept_ranges(grid: Sequence[Configuration]) -> Ranges:
    """The ranges that a grid of at least one configuration spans."""
    values = parameters(grid)
    low, high = values.min(axis=0), values.max(axis=0)
    return Ranges(
        iterations=(int(low[0]), int(high[0])),
        cost_coefficient=(float(low[1]), float(high[1])),
        exploration_coefficient=(float(low[2]), float(high[2])),
    )


def parameters(configurations: Sequence[Configuration]) -> np.ndarray:
    """float64 [n, 3] the parameters of each configuration."""
    rows = [(c.iterations, c.cost_coefficient, c.exploration_coefficient) for c in configurations]
    return np.array(rows, dtype=np.float64).reshape(len(rows), PARAMETERS)


def to_unit(values: np.ndarray, ranges: Ranges) -> np.ndarray:
    """float64 [n, 3] parameters scaled to [0, 1] over the swept range; a parameter with one value becomes 0."""
    width = ranges.high - ranges.low
    return np.where(width > 0, (values - ranges.low) / np.where(width > 0, width, 1.0), 0.0)


def from_unit(scaled: np.ndarray, ranges: Ranges) -> np.ndarray:
    """float64 [n, 3] parameters of scaled predictions, clipped to the swept range."""
    finite = np.nan_to_num(np.asarray(scaled, dtype=np.float64), nan=0.0, posinf=1.0, neginf=0.0)
    return np.clip(ranges.low + finite * (ranges.high - ranges.low), ranges.low, ranges.high)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """float32 [n, d] the vectors scaled to length 1; what is not finite becomes 0, and a zero vector stays one."""
    safe = np.nan_to_num(np.asarray(vectors, dtype=np.float32), posinf=0.0, neginf=0.0)
    norms = np.linalg.norm(safe, axis=1, keepdims=True)
    return safe / np.where(norms > 0, norms, np.float32(1.0))


def snap(configuration: Configuration, grid: Sequence[Configuration], recorded: np.ndarray, ranges: Ranges) -> int:
    """The column of the nearest recorded configuration of the same reranker; −1 where there is none.

    Distance is Euclidean over the scaled parameters; ties break by grid order. `recorded` bool [g] says which
    trials this question has: a two-stage sweep leaves holes.
    """
    same = np.array([other.reranker == configuration.reranker for other in grid], dtype=bool) & recorded
    if not same.any():
        return -1
    wanted = to_unit(parameters([configuration]), ranges)
    distances = ((to_unit(parameters(grid), ranges) - wanted) ** 2).sum(axis=1)
    return int(np.argmin(np.where(same, distances, np.inf)))
