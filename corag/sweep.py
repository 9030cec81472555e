"""Tries every configuration on every question (paper §5.2): order, answer, ROUGE-L; then labels."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from corag.errors import CoragError
from corag.labels import label_question
from corag.settings import SearchSettings, SweepSettings
from corag.sweep_plan import affordable, refinement
from corag.trials import SweepParts, Wanted, failed_trials, orders_asked, try_all
from corag.values import Configuration, Label, Question, Trial

__all__ = ["Stages", "SweepOutcome", "SweepParts", "sweep"]

logger = logging.getLogger(__name__)

NO_REFERENCE = "no reference answer"


@dataclass(frozen=True, slots=True)
class Stages:
    """The first stage of a sweep in two: its grid, the questions that it is for, and how they are searched."""

    coarse: Sequence[Configuration]
    qids: frozenset[str]
    search: SearchSettings


@dataclass
class SweepOutcome:
    """Trials and labels, in the order of the questions; `asked` counts what every trial alone would have cost."""

    trials: list[Trial] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    pairs_alone: int = 0
    calls_alone: int = 0


def sweep(
    questions: Sequence[Question],
    configurations: Sequence[Configuration],
    parts: SweepParts,
    settings: SweepSettings,
    progress: Callable[[int], None] = lambda done: None,
    two_stage: Stages | None = None,
) -> SweepOutcome:
    """The trials of every question with every configuration, and each question's label.

    `two_stage` names the questions that try a coarse grid first and then only what lies around each reranker's best.
    Work is done `batch_questions` at a time; all that costs is remembered by the parts, so that a killed sweep goes
    on where its last batch of scores or generations was committed, and ends with the same trials.
    """
    outcome = SweepOutcome()
    for start in range(0, len(questions), settings.batch_questions):
        batch = questions[start : start + settings.batch_questions]
        by_question = _sweep_each(batch, configurations, parts, settings, two_stage)
        for question, trials in zip(batch, by_question, strict=True):
            outcome.trials += trials
            outcome.pairs_alone += sum(trial.scored for trial in trials)
            outcome.calls_alone += sum(trial.failed_stage in (None, "generate") for trial in trials)
            usable = bool(question.answers)
            label = label_question(question.qid, trials, settings)
            outcome.labels.append(label if usable else Label(question.qid, kept=False, reason=NO_REFERENCE))
        progress(len(batch))
    return outcome


def _sweep_each(
    questions: Sequence[Question],
    configurations: Sequence[Configuration],
    parts: SweepParts,
    settings: SweepSettings,
    two_stage: Stages | None,
) -> list[list[Trial]]:
    """The trials of each question; where something raises, each question is tried alone and only the culprit fails.

    What the user has to mend (a model, the store) ends the sweep.
    """
    try:
        return _sweep_batch(questions, configurations, parts, settings, two_stage)
    except CoragError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever one question's trials raise is reported with the question
        if len(questions) > 1:
            return [_sweep_each([one], configurations, parts, settings, two_stage)[0] for one in questions]
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        logger.warning("question %s failed: %s", questions[0].qid, reason)
        return [failed_trials(questions[0].qid, configurations, reason, "trial")]


def _sweep_batch(
    questions: Sequence[Question],
    configurations: Sequence[Configuration],
    parts: SweepParts,
    settings: SweepSettings,
    two_stage: Stages | None,
) -> list[list[Trial]]:
    cases = list(zip(questions, parts.retrieve(questions), strict=True))
    if two_stage is None:
        return try_all([Wanted(*case, configurations) for case in cases], parts)
    limit = settings.max_generations
    costs = {retrieval.qid: [one.cost for one in retrieval.candidates] for _, retrieval in cases}
    first = [
        Wanted(*case, affordable(two_stage.coarse, (), settings, costs[case[0].qid], two_stage.search), limit)
        if case[0].qid in two_stage.qids
        else Wanted(*case, configurations)
        for case in cases
    ]
    tried = try_all(first, parts)
    second = [
        Wanted(
            *case,
            refinement(trials, configurations, settings, costs[case[0].qid], two_stage.search)
            if case[0].qid in two_stage.qids and case[1].error is None
            else (),
            limit,
            orders_asked(trials),
        )
        for case, trials in zip(cases, tried, strict=True)
    ]
    # A label breaks ties by the order of the list: it is that of the whole grid, whichever stage tried what.
    place = {configuration: index for index, configuration in enumerate(configurations)}
    return [
        sorted([*before, *after], key=lambda trial: place[trial.configuration])
        for before, after in zip(tried, try_all(second, parts), strict=True)
    ]
