"""The parts of a gain add up to it, and each is told from its own change alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corag.attribution import Arranged, attribute, attribution_table, split
from corag.evaluation import ask, evaluate
from corag.evaluation_methods import FIXED, GREEDY, NAIVE, SHUFFLE, UPPER
from corag.evaluation_summary import summarise
from corag.values import Question
from tests.evaluation_cases import evaluation, questions

SCORES = st.floats(0, 1)
ARRANGED = st.builds(Arranged, SCORES, SCORES, SCORES)


@given(ARRANGED, ARRANGED, ARRANGED)
def test_the_parts_add_up_to_the_gain(naive, free, found):
    """Whatever the scores, set, order and stopping telescope to the method's score less that of naive."""
    assert split(naive, free, found).total == pytest.approx(found.chosen - naive.chosen, abs=1e-12)


def test_only_the_set_differs():
    """Where no order matters and the cost changes nothing, the whole gain comes from the set."""
    better = Arranged(0.5, 0.5, 0.5)
    told = split(Arranged(0.2, 0.2, 0.2), better, better)
    assert (told.set, told.order, told.stopping) == pytest.approx((0.3, 0.0, 0.0))


def test_only_the_order_differs():
    """The same set, in an order that beats its document order and a shuffle."""
    found = Arranged(0.5, 0.2, 0.2)
    told = split(Arranged(0.2, 0.2, 0.2), found, found)
    assert (told.set, told.order, told.stopping) == pytest.approx((0.0, 0.3, 0.0))


def test_only_the_stopping_differs():
    """Without λ the search finds what naive does; with it, it stops where the answer is better."""
    plain = Arranged(0.2, 0.2, 0.2)
    told = split(plain, plain, Arranged(0.5, 0.5, 0.5))
    assert (told.set, told.order, told.stopping) == pytest.approx((0.0, 0.0, 0.3))


def test_the_parts_of_methods_add_up_to_their_gain_in_the_comparison():
    """Real searches over made-up scores: the sums are the gains of the table, for every method with an own search."""
    parts = evaluation()
    asked = questions(8, answer="{} bells and maps of it")
    # One without a reference, which neither of the two counts.
    asked.append(Question("q-none", "what else?"))
    methods = [NAIVE, SHUFFLE, GREEDY, FIXED, UPPER]
    told = attribute(ask(asked, parts), methods, parts)
    gains = {one.method: one.gain for one in summarise(evaluate(asked, methods, parts), seed=0)}
    assert [one.method for one in told] == [name for name in (GREEDY, FIXED, UPPER) for _ in range(3)]
    for method in (GREEDY, FIXED, UPPER):
        own = [one.gain for one in told if one.method == method]
        assert sum(one.mean for one in own) == pytest.approx(gains[method].mean, abs=1e-12)
        assert all(one.low <= one.mean <= one.high and one.n == 8 for one in own)
    assert any(abs(one.gain.mean) > 0 for one in told)
    assert f"| {FIXED} |" in attribution_table(told)
