"""The parts of a gain add up to it, and each is told from its own change alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corag.attribution import CHECK, PARTS, Runs, attribute, attribution_rows, attribution_table, split
from corag.evaluation import ask, evaluate
from corag.evaluation_methods import FIXED, GREEDY, NAIVE, SHUFFLE, UPPER
from corag.evaluation_summary import summarise
from corag.values import Question
from tests.evaluation_cases import evaluation, questions

SCORES = st.floats(0, 1)


@given(st.builds(Runs, SCORES, SCORES, SCORES, SCORES, SCORES))
def test_the_parts_add_up_to_the_gain(runs):
    """Whatever the scores, set, order and stopping telescope to the method's score less that of naive."""
    told = split(runs)
    assert sum(told[part] for part in PARTS) == pytest.approx(runs.found - runs.naive, abs=1e-12)


@pytest.mark.parametrize(
    ("runs", "parts"),
    [
        (Runs(0.2, 0.5, 0.5, 0.5, 0.5), (0.3, 0.0, 0.0, 0.0)),
        (Runs(0.2, 0.2, 0.1, 0.5, 0.5), (0.0, 0.3, 0.0, 0.4)),
        (Runs(0.2, 0.2, 0.2, 0.2, 0.5), (0.0, 0.0, 0.3, 0.0)),
    ],
    ids=["another set", "another order of the same set", "another end"],
)
def test_a_single_change_is_the_whole_gain(runs, parts):
    """What alone differs has all of it; the check compares with the shuffle only."""
    assert [split(runs)[name] for name in (*PARTS, CHECK)] == pytest.approx(parts)


def test_the_parts_of_methods_add_up_to_their_gain_in_the_comparison():
    """Real searches over made-up scores: the sums are the gains of the table, for every method with an own search."""
    parts = evaluation()
    asked = questions(8, answer="{} bells and maps of it")
    # One without a reference, which neither of the two counts.
    asked.append(Question("q-none", "what else?"))
    methods = [NAIVE, SHUFFLE, GREEDY, FIXED, UPPER]
    told = attribute(ask(asked, parts), methods, parts)
    gains = {one.method: one.gain for one in summarise(evaluate(asked, methods, parts), seed=0)}
    assert [one.method for one in told] == [name for name in (GREEDY, FIXED, UPPER) for _ in range(4)]
    for method in (GREEDY, FIXED, UPPER):
        own = [one.gain for one in told if one.method == method and one.part in PARTS]
        assert sum(one.mean for one in own) == pytest.approx(gains[method].mean, abs=1e-12)
        assert all(one.low <= one.mean <= one.high and one.n == 8 for one in own)
    assert any(abs(one.gain.mean) > 0 for one in told)
    assert [row["part"] for row in attribution_rows(told)] == [*PARTS] * 3
    assert f"| {FIXED} |" in attribution_table(told)
