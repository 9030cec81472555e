"""The best-config label: who wins, when a question is dropped, and why."""

import pytest

from corag.labels import (
    ALL_ZERO,
    GAP_TOO_SMALL,
    GENERATION_FAILED,
    KEPT,
    NOTHING_FINISHED,
    ONE_RERANKER,
    count_reasons,
    label_question,
)
from corag.settings import SweepSettings
from corag.values import Configuration, Trial

SETTINGS = SweepSettings(iterations=(5, 10), cost_coefficients=(0.0, 0.1), exploration_coefficients=(2.4,))


def trial(reranker, rouge_l, iterations=5, cost=0.0, tokens=100, error=None, stage=None):
    """A trial of question q with that reranker and score."""
    return Trial(
        qid="q",
        configuration=Configuration(reranker, iterations, cost, 2.4),
        chunk_ids=("d#0",),
        context_tokens=tokens,
        benefit=0.5,
        answer="text",
        rouge_l=rouge_l,
        error=error,
        failed_stage=stage,
    )


def test_the_best_trial_of_the_best_reranker_is_the_label():
    """A reranker scores its best trial; the label carries the winner, the runner-up and their gap."""
    label = label_question("q", [trial("a", 0.2), trial("a", 0.8, iterations=10), trial("b", 0.6)], SETTINGS)
    assert (label.kept, label.reason) == (True, KEPT)
    assert label.configuration == Configuration("a", 10, 0.0, 2.4)
    assert (label.runner_up, label.runner_up_rouge_l) == ("b", 0.6)
    assert label.gap == pytest.approx(0.25)


@pytest.mark.parametrize(("second", "kept"), [(0.9, False), (0.89, True)])
def test_the_gap_must_exceed_the_minimum(second, kept):
    """Exactly ten per cent is not more than ten per cent."""
    label = label_question("q", [trial("a", 1.0), trial("b", second)], SETTINGS)
    assert label.kept is kept
    assert label.reason == (KEPT if kept else GAP_TOO_SMALL)


def test_an_absolute_gap_is_measured_in_rouge():
    """0.20 against 0.15 is 25 % of the best but 0.05 of ROUGE-L."""
    trials = [trial("a", 0.20), trial("b", 0.15)]
    assert label_question("q", trials, SETTINGS).kept
    assert not label_question("q", trials, SETTINGS.model_copy(update={"gap": "absolute"})).kept


@pytest.mark.parametrize(
    ("first", "other", "winner"),
    [
        ({"tokens": 90, "iterations": 10}, {"tokens": 100, "iterations": 5}, Configuration("a", 10, 0.0, 2.4)),
        ({"iterations": 10}, {"iterations": 5, "cost": 0.1}, Configuration("a", 5, 0.1, 2.4)),
        ({"cost": 0.1}, {"cost": 0.0}, Configuration("a", 5, 0.1, 2.4)),
    ],
    ids=["fewer tokens", "fewer iterations", "list order"],
)
def test_equal_scores_break_by_tokens_then_iterations_then_list_order(first, other, winner):
    """The cheaper of two equally good configurations is the label."""
    label = label_question("q", [trial("a", 0.5, **first), trial("a", 0.5, **other), trial("b", 0.1)], SETTINGS)
    assert label.configuration == winner


def test_a_failed_reranker_leaves_the_label_to_those_that_ran():
    """An error is not a score of 0: the failed cell takes no part."""
    failed = trial("c", None, error="out of memory", stage="search")
    label = label_question("q", [trial("a", 0.5), trial("b", 0.2), failed], SETTINGS)
    assert label.kept
    assert label.runner_up == "b"


def test_a_failed_generation_drops_the_question():
    """The trial that failed might have been the best one."""
    failed = trial("c", None, error="server gone", stage="generate")
    label = label_question("q", [trial("a", 0.5), trial("b", 0.2), failed], SETTINGS)
    assert not label.kept
    assert label.reason == f"{GENERATION_FAILED}: server gone"


@pytest.mark.parametrize(
    ("trials", "reason"),
    [
        ([], NOTHING_FINISHED),
        ([trial("a", 0.5)], ONE_RERANKER),
        ([trial("a", 0.0), trial("b", 0.0)], ALL_ZERO),
        ([trial("a", 0.5), trial("b", 0.5)], GAP_TOO_SMALL),
    ],
)
def test_a_dropped_question_says_why(trials, reason):
    """No label without two finished rerankers, a positive score and a gap."""
    label = label_question("q", trials, SETTINGS)
    assert not label.kept
    assert label.reason == reason


def test_confidence_falls_when_the_neighbours_of_the_winner_scatter():
    """The same gap is worth less where one grid step changes the score a lot."""
    steady = [trial("a", 0.8), trial("a", 0.8, iterations=10), trial("b", 0.4)]
    shaky = [trial("a", 0.8), trial("a", 0.1, iterations=10), trial("b", 0.4)]
    confident, doubtful = (label_question("q", trials, SETTINGS).confidence for trials in (steady, shaky))
    assert confident == pytest.approx(0.4 / 0.01)
    assert doubtful == pytest.approx(0.4 / 0.35)


def test_reasons_are_counted_without_their_details():
    """Two different failures are one reason in the report."""
    labels = [label_question("q", [trial("a", None, error=text, stage="generate")], SETTINGS) for text in ("x", "y")]
    assert count_reasons(labels) == {GENERATION_FAILED: 2}
