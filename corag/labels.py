"""The arithmetic of a best-config label (paper §5.2): from the trials of one question to its label."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import pstdev

from corag.settings import SweepSettings
from corag.values import Label, Trial

KEPT = "kept"
GAP_TOO_SMALL = "gap between rerankers too small"
ALL_ZERO = "no configuration scored above 0"
ONE_RERANKER = "fewer than two rerankers finished"
GENERATION_FAILED = "generation failed"
NOTHING_FINISHED = "no trial finished"

SPREAD_FLOOR = 0.01
"""Least spread, in ROUGE-L, that a label's confidence is measured against: less is below the metric's resolution."""


def label_question(qid: str, trials: Sequence[Trial], settings: SweepSettings) -> Label:
    """The label of one question, or the reason why it has none.

    A reranker scores its best trial's ROUGE-L. The question is kept only if the best reranker leads the second by
    more than `min_gap`. Equal scores break by fewer context tokens, then fewer iterations, then the order in
    which the trials are listed. A failed generation drops the question; a failed reranker only its own trials.
    """
    failed = [trial for trial in trials if trial.error is not None]
    for trial in failed:
        if trial.failed_stage == "generate":
            return Label(qid, kept=False, reason=f"{GENERATION_FAILED}: {trial.error}")
    best = best_by_reranker(trials)
    if not best:
        detail = f": {failed[0].error}" if failed else ""
        return Label(qid, kept=False, reason=f"{NOTHING_FINISHED}{detail}")
    ranked = sorted(best.values(), key=rank)
    winner = ranked[0]
    if len(ranked) < 2:
        return Label(qid, kept=False, reason=ONE_RERANKER, configuration=winner.configuration)
    second = ranked[1]
    assert winner.rouge_l is not None
    assert second.rouge_l is not None
    difference = winner.rouge_l - second.rouge_l
    if winner.rouge_l <= 0:
        return Label(qid, kept=False, reason=ALL_ZERO)
    gap = difference / winner.rouge_l if settings.gap == "relative" else difference
    kept = gap > settings.min_gap
    return Label(
        qid,
        kept=kept,
        reason=KEPT if kept else GAP_TOO_SMALL,
        configuration=winner.configuration,
        rouge_l=winner.rouge_l,
        runner_up=second.configuration.reranker,
        runner_up_rouge_l=second.rouge_l,
        gap=gap,
        context_tokens=winner.context_tokens,
        confidence=difference / max(_neighbour_spread(winner, trials, settings), SPREAD_FLOOR),
    )


def count_reasons(labels: Sequence[Label]) -> dict[str, int]:
    """How many labels have each reason, most frequent first; details after a colon are folded together."""
    counts: dict[str, int] = defaultdict(int)
    for label in labels:
        counts[label.reason.partition(":")[0]] += 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def rank(trial: Trial) -> tuple[float, int, int]:
    """What finished trials sort by, best first: ROUGE-L, then fewer context tokens, then fewer iterations."""
    assert trial.rouge_l is not None
    return (-trial.rouge_l, trial.context_tokens, trial.configuration.iterations)


def best_by_reranker(trials: Sequence[Trial]) -> Mapping[str, Trial]:
    """Each reranker's best finished trial; one without any is absent."""
    best: dict[str, Trial] = {}
    for trial in trials:
        if trial.rouge_l is None:
            continue
        held = best.get(trial.configuration.reranker)
        if held is None or rank(trial) < rank(held):
            best[trial.configuration.reranker] = trial
    return best


def _neighbour_spread(winner: Trial, trials: Sequence[Trial], settings: SweepSettings) -> float:
    """Standard deviation of ROUGE-L over the winner and its neighbours, at most one grid step away on each axis.

    A winner whose neighbours score quite differently owes its place to chance.
    """
    axes: tuple[list[float], ...] = (
        sorted(settings.iterations),
        sorted(settings.cost_coefficients),
        sorted(settings.exploration_coefficients),
    )

    def place(trial: Trial) -> tuple[int, ...] | None:
        configuration = trial.configuration
        values = (
            configuration.iterations,
            configuration.cost_coefficient,
            configuration.exploration_coefficient,
        )
        try:
            return tuple(axis.index(value) for axis, value in zip(axes, values, strict=True))
        except ValueError:
            return None

    home = place(winner)
    if home is None:
        return 0.0
    scores = []
    for trial in trials:
        there = place(trial)
        near = there is not None and all(abs(a - b) <= 1 for a, b in zip(home, there, strict=True))
        if near and trial.rouge_l is not None and trial.configuration.reranker == winner.configuration.reranker:
            scores.append(trial.rouge_l)
    return pstdev(scores) if len(scores) > 1 else 0.0
