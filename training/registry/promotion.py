"""Moves the aliases: promotes a version that passes the gate, and rolls back. One command at a time."""

import json
from dataclasses import dataclass

from corag.errors import CoragError, ModelError, RegistryError
from corag.settings import PromotionSettings
from corag.values import Configuration
from training.agent import TrainedAgent
from training.evidence import gather
from training.gate import Decision, decide
from training.inputs import TrainingInput
from training.registry.connection import Tracking, registry_errors
from training.registry.versions import load_agent, newest_version, version_of

PREVIOUS = "previous"


@dataclass(frozen=True, slots=True)
class Promotion:
    """The outcome: which version was judged, the gate's decision, and whether the alias moved.

    forced: moved against the decision. champion: the version that holds the alias afterwards. before: the
    one that held it until now.
    """

    version: int
    decision: Decision
    promoted: bool
    forced: bool
    champion: int | None
    before: int | None

    def __str__(self) -> str:
        done = "promoted by force" if self.forced else "promoted" if self.promoted else "not promoted"
        holder = "none" if self.champion is None else f"version {self.champion}"
        return f"version {self.version} {done}: {self.decision.reason}; champion: {holder}"


def promote(
    tracking: Tracking,
    data: TrainingInput,
    settings: PromotionSettings,
    *,
    model_name: str,
    fixed: Configuration,
    seed: int,
    version: int | None = None,
    force: bool = False,
) -> Promotion:
    """The outcome of judging `version` (None: the newest) on the held-out part of `data`.

    Candidate, champion and best fixed configuration are scored on the same trials, now: figures stored with a version
    are never used. The whole judgement holds the lock, so of two promotions at once the second meets the
    first's champion. Decision, figures, reason and the data's fingerprint become tags of the version.

    Raises:
        RegistryError: there is no such version, its artifact is gone (`force` changes nothing about that), or the
            champion's is (`force` goes on).
        ModelError: the candidate is broken or was trained on another embedder's vectors.
    """
    with tracking.locked():
        chosen = newest_version(tracking, model_name) if version is None else version
        candidate = load_agent(tracking, model_name, chosen, fixed=fixed)
        _check_embedding(candidate, data)
        before = version_of(tracking, model_name, settings.alias)
        if before == chosen:
            decision = Decision(False, ("it is the champion already",), {})
            return Promotion(chosen, decision, False, False, before, before)
        champion, remark = _rival(tracking, model_name, before, data, fixed=fixed, force=force)
        decision = decide(gather(data, candidate, champion, seed=seed), settings, seed=seed)
        if remark:
            decision = Decision(decision.promote, (*decision.reasons, remark), decision.figures)
        moves = decision.promote or force
        outcome = Promotion(
            version=chosen,
            decision=decision,
            promoted=moves,
            forced=force and not decision.promote,
            champion=chosen if moves else before,
            before=before,
        )
        with registry_errors(f"promoting version {chosen} of {model_name!r} at {tracking.uri}"):
            _record(tracking, model_name, outcome, data.fingerprint)
            if moves:
                _move(tracking, model_name, settings.alias, chosen, before)
    return outcome


def rollback(tracking: Tracking, settings: PromotionSettings, *, model_name: str, fixed: Configuration) -> int:
    """The version that is champion after champion and previous changed places.

    Raises:
        RegistryError: there is no previous champion, or its artifact is gone.
    """
    with tracking.locked():
        previous = version_of(tracking, model_name, PREVIOUS)
        present = version_of(tracking, model_name, settings.alias)
        if previous is None:
            raise RegistryError(
                f"{tracking.uri}: {model_name!r} has no version with the alias {PREVIOUS!r}, so there is nothing to "
                "roll back to; promote another with `corag promote --version N`"
            )
        load_agent(tracking, model_name, previous, fixed=fixed)
        with registry_errors(f"rolling {model_name!r} back at {tracking.uri}"):
            _move(tracking, model_name, settings.alias, previous, present)
            tracking.client.set_model_version_tag(
                model_name, str(previous), "gate.rollback", f"restored in place of version {present}"
            )
    return previous


def _check_embedding(agent: TrainedAgent, data: TrainingInput) -> None:
    if (agent.embedder, agent.dimension) != (data.embedding.name, data.embedding.dimension):
        raise ModelError(
            f"version {agent.version} of {agent.name!r} reads vectors of {agent.embedder!r} ({agent.dimension}-d), the "
            f"sweep's are of {data.embedding.name!r} ({data.embedding.dimension}-d); train again on this sweep"
        )


def _rival(
    tracking: Tracking, model_name: str, version: int | None, data: TrainingInput, *, fixed: Configuration, force: bool
) -> tuple[TrainedAgent | None, str]:
    """The champion to beat, or None with a remark why it cannot be compared."""
    if version is None:
        return None, ""
    try:
        champion = load_agent(tracking, model_name, version, fixed=fixed)
    except CoragError as error:
        if not force:
            raise RegistryError(
                f"the champion cannot be scored: {error}; or replace it with `corag promote --force`"
            ) from None
        return None, f"the champion, version {version}, could not be loaded"
    try:
        _check_embedding(champion, data)
    except ModelError:
        # Answering refuses such a champion, so it defends nothing.
        return None, f"the champion, version {version}, reads another embedder's vectors and was not compared"
    return champion, ""


def _record(tracking: Tracking, model_name: str, outcome: Promotion, fingerprint: str) -> None:
    figures = {name: round(value, 6) for name, value in outcome.decision.figures.items()}
    tags = {
        "gate.promoted": str(outcome.promoted).lower(),
        "gate.forced": str(outcome.forced).lower(),
        "gate.reason": outcome.decision.reason,
        "gate.figures": json.dumps(figures, ensure_ascii=False),
        "gate.data_fingerprint": fingerprint,
        "gate.champion_before": "none" if outcome.before is None else str(outcome.before),
    }
    for name in ("candidate_rouge_l", "champion_rouge_l", "best_fixed_rouge_l"):
        if name in figures:
            tags[f"gate.{name}"] = str(figures[name])
    for key, value in tags.items():
        tracking.client.set_model_version_tag(model_name, str(outcome.version), key, value[:4000])


def _move(tracking: Tracking, model_name: str, alias: str, version: int, before: int | None) -> None:
    # Setting an alias moves it in one step: at no moment are there two champions, or none.
    if before is not None:
        tracking.client.set_registered_model_alias(model_name, PREVIOUS, str(before))
    tracking.client.set_registered_model_alias(model_name, alias, str(version))
