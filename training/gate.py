"""The gate before the alias `champion` moves: a pure decision on scores replayed from the same trials."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from corag.metrics import Interval, bootstrap
from corag.settings import PromotionSettings


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """ROUGE-L and context tokens, float64 [n] each, of one policy on the gate's questions; NaN where a trial failed."""

    rouge_l: np.ndarray
    tokens: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What is known of a candidate on one set of gate questions.

    champion: None where there is none to beat. slices: bool [n] membership by name. accuracy: how often the candidate
    names the best reranker of a labelled gate question; majority: how often the train part's most frequent one is
    right; both None where no gate question has a label.
    """

    candidate: Scores
    best_fixed: Scores
    champion: Scores | None = None
    slices: Mapping[str, np.ndarray] = field(default_factory=dict)
    accuracy: float | None = None
    majority: float | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to promote, the reasons against it (or the one for it), and the figures that were looked at."""

    promote: bool
    reasons: tuple[str, ...]
    figures: Mapping[str, float]

    @property
    def reason(self) -> str:
        """The reasons in one line."""
        return "; ".join(self.reasons)


def decide(evidence: Evidence, settings: PromotionSettings, *, seed: int = 0) -> Decision:
    """Promotes only a candidate that passes every rule; each broken rule is one reason.

    1. Its scores, and those it is compared with, exist and are finite.
    2. It names the best reranker more often than the majority class does.
    3. Against the champion, and against the best fixed configuration: mean gain ≥ `min_gain`, and the paired
       bootstrap's lower bound above −`tolerance`. With the default `min_gain` 0 an equal is good enough.
    4. Its mean tokens exceed the champion's (without one: best fixed's) by at most the share `max_cost_rise`.
    5. In no slice of at least `min_slice` questions does it fall below the same by more than `max_slice_drop`.
    """
    unusable = _unusable(evidence)
    if unusable:
        return Decision(False, (unusable,), {})
    figures: dict[str, float] = {
        "questions": float(len(evidence.candidate.rouge_l)),
        "candidate_rouge_l": float(evidence.candidate.rouge_l.mean()),
        "candidate_tokens": float(evidence.candidate.tokens.mean()),
    }
    reasons = _accuracy_rule(evidence, figures)
    rivals = {"best fixed configuration": evidence.best_fixed}
    if evidence.champion is not None:
        rivals["champion"] = evidence.champion
    for name, rival in rivals.items():
        reasons += _gain_rule(name, evidence.candidate, rival, settings, seed, figures)
    name = "champion" if evidence.champion is not None else "best fixed configuration"
    reasons += _cost_rule(name, evidence.candidate, rivals[name], settings)
    reasons += _slice_rule(name, evidence, rivals[name], settings, figures)
    if reasons:
        return Decision(False, tuple(reasons), figures)
    gains = ", ".join(f"{figures[f'gain_over_{_key(rival)}']:+.3f} over the {rival}" for rival in rivals)
    return Decision(True, (f"ROUGE-L {gains} on {len(evidence.candidate.rouge_l)} questions",), figures)


def _unusable(evidence: Evidence) -> str:
    """Why nothing can be decided; empty where it can."""
    parts = {"candidate": evidence.candidate, "best fixed configuration": evidence.best_fixed}
    if evidence.champion is not None:
        parts["champion"] = evidence.champion
    count = len(evidence.candidate.rouge_l)
    if not count:
        return "no held-out question has a finished trial to judge by"
    for name, scores in parts.items():
        if len(scores.rouge_l) != count or len(scores.tokens) != count:
            return f"the {name}'s figures are of other questions than the candidate's"
        if not (np.isfinite(scores.rouge_l).all() and np.isfinite(scores.tokens).all()):
            return f"the {name}'s figures are missing or not finite"
    return ""


def _accuracy_rule(evidence: Evidence, figures: dict[str, float]) -> list[str]:
    accuracy, majority = evidence.accuracy, evidence.majority
    if accuracy is None or majority is None or not (math.isfinite(accuracy) and math.isfinite(majority)):
        return ["its accuracy is unknown: no held-out question has a kept label"]
    figures |= {"accuracy": accuracy, "majority_baseline": majority}
    if accuracy <= majority:
        return [f"it names the best reranker no more often ({accuracy:.3f}) than the majority class ({majority:.3f})"]
    return []


def _gain_rule(
    name: str, candidate: Scores, rival: Scores, settings: PromotionSettings, seed: int, figures: dict[str, float]
) -> list[str]:
    gain: Interval = bootstrap(
        (candidate.rouge_l - rival.rouge_l).tolist(), seed=seed, samples=settings.bootstrap_samples
    )
    figures |= {
        f"{_key(name)}_rouge_l": float(rival.rouge_l.mean()),
        f"{_key(name)}_tokens": float(rival.tokens.mean()),
        f"gain_over_{_key(name)}": gain.mean,
        f"gain_over_{_key(name)}_low": gain.low,
    }
    reasons = []
    if gain.mean < settings.min_gain:
        reasons.append(f"gain over the {name} {gain.mean:+.4f} is below min_gain {settings.min_gain:+.4f}")
    if gain.low <= -settings.tolerance:
        reasons.append(
            f"gain over the {name} may be as low as {gain.low:+.4f}, not above −tolerance (−{settings.tolerance:.4f})"
        )
    return reasons


def _cost_rule(name: str, candidate: Scores, rival: Scores, settings: PromotionSettings) -> list[str]:
    own, base = float(candidate.tokens.mean()), float(rival.tokens.mean())
    if own > base * (1 + settings.max_cost_rise):
        return [f"mean tokens rise from the {name}'s {base:.1f} to {own:.1f}, more than {settings.max_cost_rise:.0%}"]
    return []


def _slice_rule(
    name: str, evidence: Evidence, rival: Scores, settings: PromotionSettings, figures: dict[str, float]
) -> list[str]:
    reasons = []
    for title, inside in sorted(evidence.slices.items()):
        if int(inside.sum()) < settings.min_slice:
            continue
        change = float((evidence.candidate.rouge_l[inside] - rival.rouge_l[inside]).mean())
        figures[f"slice {title}"] = change
        if change < -settings.max_slice_drop:
            reasons.append(
                f"slice {title} falls by {-change:.4f} below the {name}, more than {settings.max_slice_drop:.4f}"
            )
    return reasons


def _key(name: str) -> str:
    return "champion" if name == "champion" else "best_fixed"
