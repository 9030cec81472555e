"""Who chooses a question's configuration: the interface of a configuration agent (paper §5), and the fixed one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from corag.errors import ModelError
from corag.settings import FixedConfiguration
from corag.values import Configuration

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Choice:
    """The configuration of one question, who chose it, and in a few words why."""

    configuration: Configuration
    source: Literal["agent", "fixed"]
    reason: str


class Agent(Protocol):
    """Chooses a configuration per question from the question's vector.

    `version` is the registered version, None where there is none. `embedder`, `embedder_revision` and `dimension`
    say whose vectors it understands; an empty `embedder` means any.
    """

    @property
    def name(self) -> str:
        """The registered name, or `fixed`."""
        ...

    @property
    def version(self) -> str | None:
        """The registered version."""
        ...

    @property
    def embedder(self) -> str:
        """Name of the embedder that it was trained with; empty for any."""
        ...

    @property
    def embedder_revision(self) -> str:
        """Revision of that embedder; empty for any."""
        ...

    @property
    def dimension(self) -> int:
        """Width of the vectors that it reads; 0 for any."""
        ...

    @property
    def candidate_mean(self) -> bool:
        """Whether it reads the mean of the candidates' vectors behind each question's own."""
        ...

    def choose(self, vectors: "np.ndarray") -> list[Choice]:
        """One choice a row of `vectors` float32 [n, d], in their order."""
        ...


@dataclass(frozen=True, slots=True)
class FixedAgent:
    """Gives every question the same configuration (the paper's "without agent")."""

    configuration: Configuration
    reason: str = "the fixed configuration"
    name: str = "fixed"
    version: str | None = None
    embedder: str = ""
    embedder_revision: str = ""
    dimension: int = 0
    candidate_mean: bool = False

    def choose(self, vectors: "np.ndarray") -> list[Choice]:
        """The fixed configuration, once a row of `vectors` [n, d]."""
        return [Choice(self.configuration, "fixed", self.reason) for _ in range(len(vectors))]


def fixed_configuration(settings: FixedConfiguration, rerankers: Sequence[str]) -> Configuration:
    """The configured fixed configuration; an empty reranker means the first of `rerankers`."""
    return Configuration(
        reranker=settings.reranker or rerankers[0],
        iterations=settings.iterations,
        cost_coefficient=settings.cost_coefficient,
        exploration_coefficient=settings.exploration_coefficient,
    )


def check_fits(agent: Agent, *, embedder: str, revision: str, dimension: int, rerankers: Sequence[str] = ()) -> None:
    """Refuses an agent that was trained on another embedder's vectors, or that may choose an absent reranker.

    Raises:
        ModelError: name, revision or dimension of the embedder differ, or a reranker of the agent is not configured.
    """
    who = f"agent {agent.name} version {agent.version}"
    mend = "run `corag train` and `corag promote` again, or configure the embedder it was trained with"
    if agent.embedder and agent.embedder != embedder:
        raise ModelError(f"{who} was trained on vectors of {agent.embedder!r}, not of {embedder!r}; {mend}")
    width = dimension * (2 if agent.candidate_mean else 1)
    if agent.dimension and agent.dimension != width:
        raise ModelError(f"{who} reads vectors of {agent.dimension} dimensions, {embedder!r} gives {width}; {mend}")
    if agent.embedder_revision and revision and agent.embedder_revision != revision:
        raise ModelError(
            f"{who} was trained on revision {agent.embedder_revision!r} of {embedder!r}, not on {revision!r}; {mend}"
        )
    known = getattr(agent, "rerankers", ())
    missing = [name for name in known if rerankers and name not in rerankers]
    if missing:
        raise ModelError(
            f"{who} may choose the rerankers {missing}, which the configuration lacks ({list(rerankers)}); "
            "configure them, or sweep and train again"
        )
