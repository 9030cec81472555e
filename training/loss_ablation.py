"""What each term of the agent's loss is worth: agents trained without it, replayed on the recorded trials."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corag.metrics import Interval
from corag.settings import AgentSettings
from corag.values import Configuration
from training.inputs import TrainingInput
from training.policies import AGENT
from training.train import train_agent

TERMS = ("contrastive", "classification", "regression")


@dataclass(frozen=True, slots=True)
class LossRow:
    """The agent on the held-out questions, trained with all terms or without one; tokens are the mean context's."""

    setting: str
    rouge_l: Interval
    tokens: float


def ablate_losses(
    data: TrainingInput,
    settings: AgentSettings,
    *,
    configured: Configuration,
    seed: int,
    work: Path,
    progress: Callable[[int], None] = lambda done: None,
) -> list[LossRow]:
    """One row with all terms, then one without each. No model is called: the trials are recorded.

    A variant that has no finished trial on most held-out questions has no row.

    Raises:
        LabelError: too few labels to train on.
    """
    variants = {"all terms": settings}
    for term in TERMS:
        variants[f"without {term}"] = settings.model_copy(update={f"{term}_weight": 0.0})
    rows = []
    for name, changed in variants.items():
        replayed = train_agent(data, changed, configured=configured, seed=seed, work=work).held_out.row(AGENT)
        if replayed is not None:
            rows.append(LossRow(name, replayed.rouge_l, replayed.tokens))
        progress(1)
    return rows
