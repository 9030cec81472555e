"""Every rule of the gate, both ways, on scores made by hand."""

import numpy as np
import pytest

from corag.settings import PromotionSettings
from training.gate import Evidence, Scores, decide

N = 40


def scores(rouge_l: float | np.ndarray, tokens: float = 100.0, n: int = N) -> Scores:
    """The same, or the given, ROUGE-L and tokens on every question."""
    return Scores(np.full(n, rouge_l) if np.isscalar(rouge_l) else rouge_l, np.full(n, tokens))


def evidence(candidate: Scores, **changes) -> Evidence:
    """A candidate that beats the majority class, beside a best fixed configuration of 0.5."""
    return Evidence(**({"candidate": candidate, "best_fixed": scores(0.5), "accuracy": 0.7, "majority": 0.5} | changes))


def verdict(given: Evidence, **settings) -> tuple[bool, str]:
    """The decision and its reasons."""
    decision = decide(given, PromotionSettings(**settings), seed=0)
    return decision.promote, decision.reason


def test_a_better_candidate_is_promoted_with_its_figures():
    """Above both rivals: promoted, with the gains in the reason and the figures."""
    decision = decide(evidence(scores(0.6), champion=scores(0.55)), PromotionSettings())
    assert decision.promote
    assert "+0.100 over the best fixed configuration, +0.050 over the champion on 40 questions" in decision.reason
    assert pytest.approx(decision.figures["candidate_rouge_l"]) == 0.6
    assert pytest.approx(decision.figures["gain_over_champion"]) == 0.05


def test_the_best_fixed_configuration_must_be_beaten_even_without_a_champion():
    """A first version below best fixed is no champion; an equal passes with min_gain 0 and not with more."""
    assert (verdict(evidence(scores(0.49)))[0], verdict(evidence(scores(0.5)))[0]) == (False, True)
    promoted, reason = verdict(evidence(scores(0.51)), min_gain=0.02)
    assert not promoted
    assert reason == "gain over the best fixed configuration +0.0100 is below min_gain +0.0200"
    assert verdict(evidence(scores(0.53)), min_gain=0.02)[0]


def test_the_champion_must_not_be_undercut():
    """A candidate below the champion is refused though it beats best fixed; an equal passes."""
    promoted, reason = verdict(evidence(scores(0.6), champion=scores(0.61)))
    assert not promoted
    assert "gain over the champion -0.0100 is below min_gain" in reason
    assert verdict(evidence(scores(0.6), champion=scores(0.6)))[0]


def test_the_lower_bound_must_lie_above_minus_tolerance():
    """A mean gain that rests on a few questions is refused by a small tolerance and passes a large one."""
    swings = np.where(np.arange(N) % 2 == 0, 1.0, 0.05)
    promoted, reason = verdict(evidence(scores(swings)), tolerance=0.05)
    assert not promoted
    assert "may be as low as" in reason
    assert verdict(evidence(scores(swings)), tolerance=0.3)[0]


def test_mean_tokens_may_rise_by_a_share_only():
    """Against the champion where there is one, else against best fixed."""
    assert verdict(evidence(scores(0.6, tokens=125)))[0]
    promoted, reason = verdict(evidence(scores(0.6, tokens=126)))
    assert not promoted
    assert reason == "mean tokens rise from the best fixed configuration's 100.0 to 126.0, more than 25%"
    assert verdict(evidence(scores(0.6, tokens=140), champion=scores(0.55, tokens=120)))[0]
    assert not verdict(evidence(scores(0.6, tokens=1), best_fixed=scores(0.5, tokens=0)))[0]


def test_no_large_slice_may_fall():
    """Ten questions that lose 0.2 refuse it; nine such do not, nor a loss within the limit."""
    candidate = np.full(N, 0.9)
    candidate[:10] = 0.3
    inside = np.arange(N) < 10
    promoted, reason = verdict(evidence(scores(candidate), slices={"language=fr": inside}), tolerance=1)
    assert not promoted
    assert reason == "slice language=fr falls by 0.2000 below the best fixed configuration, more than 0.1500"
    assert verdict(evidence(scores(candidate), slices={"language=fr": np.arange(N) < 9}), tolerance=1)[0]
    assert verdict(evidence(scores(candidate), slices={"language=fr": inside}), tolerance=1, max_slice_drop=0.25)[0]


def test_no_better_than_the_majority_class_is_refused():
    """TRN-02: naming the most frequent reranker is no skill, whatever the ROUGE-L."""
    promoted, reason = verdict(evidence(scores(0.6), accuracy=0.9, majority=0.9))
    assert not promoted
    assert "no more often (0.900) than the majority class (0.900)" in reason
    assert verdict(evidence(scores(0.6), accuracy=0.91, majority=0.9))[0]
    assert "accuracy is unknown" in verdict(evidence(scores(0.6), accuracy=None, majority=None))[1]
    assert not verdict(evidence(scores(0.6), accuracy=float("nan"), majority=0.5))[0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("who", ["candidate", "champion", "best_fixed"])
def test_a_figure_that_is_not_finite_never_promotes(value, who):
    """One NaN or infinity among the ROUGE-L or the tokens, of any of the three, refuses."""
    good = {"candidate": scores(0.9), "champion": scores(0.5), "best_fixed": scores(0.5)}
    broken = np.full(N, 0.9)
    broken[3] = value
    for bad in (Scores(broken, np.full(N, 1.0)), Scores(np.full(N, 0.9), broken)):
        promoted, reason = verdict(evidence(**(good | {who: bad})))
        assert not promoted
        assert "missing or not finite" in reason


def test_missing_questions_never_promote():
    """No question at all, and figures of other questions than the candidate's (a stale set), are refused."""
    nothing = scores(0.9, n=0)
    assert verdict(evidence(nothing, best_fixed=scores(0.5, n=0))) == (
        False,
        "no held-out question has a finished trial to judge by",
    )
    promoted, reason = verdict(evidence(scores(0.9), champion=scores(0.5, n=N - 1)))
    assert not promoted
    assert "of other questions than the candidate's" in reason


def test_every_broken_rule_is_named():
    """A candidate with several faults learns of all of them at once."""
    reason = verdict(evidence(scores(0.3, tokens=200), champion=scores(0.6), accuracy=0.2))[1]
    assert len(reason.split("; ")) == 6
