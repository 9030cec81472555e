"""The configurations of the best recorded trials, and what the method `oracle` makes of them."""

from dataclasses import replace

import pytest

from corag.evaluation import evaluate
from corag.evaluation_methods import FIXED, NAIVE, ORACLE
from corag.evaluation_summary import summarise
from corag.oracle import best_configurations
from corag.sweep_files import write_sweep
from corag.values import Configuration, Trial
from tests import evaluation_cases
from tests.evaluation_cases import evaluation, questions

SHORT = Configuration("one", 2, 0.3, 0.0)
LONG = Configuration("two", 10, 0.0, 2.4)


def trial(qid, configuration, rouge_l, tokens=20, error=None):
    """A recorded trial."""
    return Trial(qid, configuration, ("c",), tokens, 0.5, None if error else "a", rouge_l, 1, error)


def sweep_of(folder, trials, swept):
    """A finished sweep with these trials."""
    write_sweep(folder, trials, [], swept, {one.qid: "held_out" for one in swept}, {})
    return folder


def test_the_best_trial_wins_and_ties_break_by_tokens_then_iterations(tmp_path):
    """A failed trial never wins; of equal scores the cheaper context does, then the shorter search."""
    trials = [
        trial("q0", LONG, 0.2),
        trial("q0", SHORT, 0.7),
        trial("q1", LONG, 0.5, tokens=10),
        trial("q1", SHORT, 0.5, tokens=20),
        trial("q2", LONG, 0.5),
        trial("q2", SHORT, 0.5),
        trial("q3", LONG, None, error="no"),
        trial("q3", SHORT, 0.0),
    ]
    found = best_configurations(sweep_of(tmp_path, trials, questions(4)), questions(4), ["one", "two"])
    assert found == {"q0": SHORT, "q1": LONG, "q2": SHORT, "q3": SHORT}


def test_only_questions_and_rerankers_that_are_still_there_count(tmp_path):
    """Another text under a qid, a question that was never swept, and a reranker that is gone are left out."""
    trials = [trial("q0", LONG, 0.9), trial("q1", LONG, 0.9), trial("q1", SHORT, 0.1), trial("q2", LONG, 0.9)]
    folder = sweep_of(tmp_path, trials, questions(3))
    asked = questions(4)
    asked[0] = replace(asked[0], question="something else")
    assert best_configurations(folder, asked, ["one", "two"]) == {"q1": LONG, "q2": LONG}
    assert best_configurations(folder, asked, ["one"]) == {"q1": SHORT}


def test_no_sweep_is_no_configuration(tmp_path):
    """Where nothing was swept, the method has no row."""
    assert best_configurations(tmp_path, questions(2), ["one"]) == {}


@pytest.mark.parametrize("known", [0, 3])
def test_oracle_has_rows_for_the_questions_with_trials_alone(known):
    """The others are left out of its row, and its gain is paired with `naive` on its own questions."""
    own = {f"q{number}": evaluation_cases.FIXED for number in range(known)}
    parts = evaluation(oracle=own)
    rows = evaluate(questions(5), [NAIVE, FIXED, ORACLE], parts)
    assert [row.qid for row in rows if row.method == ORACLE] == sorted(own)
    fixed = {row.qid: row.answer for row in rows if row.method == FIXED}
    assert all(row.answer == fixed[row.qid] for row in rows if row.method == ORACLE)
    told = {one.method: one for one in summarise(rows, 0)}
    assert (told[ORACLE].n_total if known else 0) == known
    assert (told[ORACLE].gain.n if known else 0) == known
