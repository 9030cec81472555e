"""Replay on recorded trials: every policy on the same questions, failures excluded and counted, never scored."""

import numpy as np
import pytest

from corag.values import Configuration, Question
from tests.sweeps import EMBEDDING, FIXED, GRID, RERANKERS, hand_made_agent, sweep_of, toy_input
from training.agent import TrainedAgent
from training.bundle import load_bundle
from training.policies import (
    AGENT,
    BEST_FIXED,
    ORACLE,
    baseline_policies,
    best_fixed,
    fixed_columns,
    oracle_columns,
)
from training.replay import replay
from training.train import replay_agent, reranker_accuracy


def small(scores, *, train: int):
    """A sweep of as many questions as `scores` has rows; scores: one a reranker (None: all its trials failed)."""
    questions = [Question(f"q{row}", f"Question {row}?", metadata={"kind": "fact"}) for row in range(len(scores))]
    table = {
        (f"q{row}", point): scores[row][RERANKERS.index(point.reranker)] for row in range(len(scores)) for point in GRID
    }
    return sweep_of(questions, np.eye(len(scores), EMBEDDING.dimension, dtype=np.float32), table, train=train)


def test_figures_of_a_hand_made_replay():
    """Two held-out questions: oracle 0.85, best fixed (amber, by the train part) 0.6, the agent 0.75 in between."""
    data = small([(0.9, 0.1, 0.2), (0.9, 0.3, 0.1), (0.8, 0.4, 0.6), (0.4, 0.9, 0.7)], train=2)
    rows = data.rows("held_out")
    assert best_fixed(data).reranker == "amber"
    cedar, birch = (GRID.index(Configuration(name, 5, 0.0, 0.0)) for name in ("cedar", "birch"))
    policies = {
        AGENT: np.array([cedar, birch]),
        BEST_FIXED: fixed_columns(best_fixed(data), data, rows),
        ORACLE: oracle_columns(data, rows),
    }
    outcome = replay(data, rows, policies, seed=0)
    agent = outcome.row(AGENT)
    assert pytest.approx(agent.rouge_l.mean) == 0.75
    assert pytest.approx(agent.regret) == 0.10
    assert pytest.approx(agent.gain.mean) == 0.15
    assert pytest.approx(agent.gap_closed) == 0.6
    assert agent.tokens == 60.0
    assert pytest.approx(outcome.row(ORACLE).regret) == 0.0
    assert [
        (one.slice, one.method, pytest.approx(one.rouge_l), one.n) for one in outcome.slices if one.method == AGENT
    ] == [("kind=fact", AGENT, 0.75, 2)]


def test_a_failed_trial_is_no_score_for_anybody():
    """The question on which one policy's trial failed leaves the table for all, and is counted."""
    data = small([(0.9, 0.1, 0.2), (0.9, 0.3, 0.1), (0.8, None, 0.6), (0.4, 0.9, 0.7), (0.5, 0.6, 0.1)], train=2)
    rows = data.rows("held_out")
    birch, amber = (fixed_columns(Configuration(name, 5, 0, 0), data, rows) for name in ("birch", "amber"))
    outcome = replay(data, rows, {"birch": birch, BEST_FIXED: amber}, seed=0)
    assert (outcome.qids, outcome.excluded) == (("q3", "q4"), ("q2",))
    assert pytest.approx(outcome.row("birch").rouge_l.mean) == 0.75
    assert pytest.approx(outcome.row(BEST_FIXED).rouge_l.mean) == 0.45
    assert outcome.set_aside == {}


def test_a_policy_that_fails_on_most_questions_is_set_aside():
    """It is named with its failures and does not empty the table for the others."""
    data = small([(0.9, 0.1, 0.2), (0.8, None, 0.6), (0.4, None, 0.7), (0.5, 0.6, 0.1)], train=1)
    rows = data.rows("held_out")
    birch, amber = (fixed_columns(Configuration(name, 5, 0, 0), data, rows) for name in ("birch", "amber"))
    outcome = replay(data, rows, {"birch": birch, BEST_FIXED: amber}, seed=0)
    assert outcome.set_aside == {"birch": 2}
    assert outcome.row("birch") is None
    assert outcome.row(BEST_FIXED).rouge_l.n == 3


def test_the_best_fixed_configuration_breaks_ties_by_tokens_and_skips_what_mostly_failed():
    """Equal means: the fewest tokens; a configuration that failed on most train questions is no candidate."""
    data = small([(0.5, 0.5, 0.9), (0.5, 0.5, None), (0.5, 0.5, None)], train=3)
    assert Configuration("amber", 5, 0.0, 0.0) == best_fixed(data)


def test_every_baseline_is_there_and_none_beats_the_oracle():
    """All the methods of the table, bounded by the per-query oracle, random by the seed alone."""
    data = toy_input()
    rows = data.rows("held_out")
    policies = baseline_policies(data, rows, configured=FIXED, seed=0)
    singles = {f"{name} fixed" for name in RERANKERS}
    assert singles | {
        "best fixed",
        "configured fixed",
        "paper fixed",
        "random",
        "knn",
        "logistic regression",
        "mlp",
        "oracle",
    } == set(policies)
    outcome = replay(data, rows, policies, seed=0, samples=100)
    assert all(row.regret >= 0 for row in outcome.rows)
    assert outcome.row("knn").gap_closed > 0.9
    again = baseline_policies(data, rows, configured=FIXED, seed=0)
    assert all((policies[name] == again[name]).all() for name in policies)
    assert (policies["random"] != baseline_policies(data, rows, configured=FIXED, seed=1)["random"]).any()


def test_an_agent_is_replayed_by_snapping_its_choice(tmp_path):
    """The agent that follows the rule closes the gap; one that turns it round falls below best fixed."""
    data = toy_input()
    rows = data.rows("held_out")
    good, bad = tmp_path / "good", tmp_path / "bad"
    hand_made_agent(good, (0, 1, 2), data)
    hand_made_agent(bad, (1, 2, 0), data)
    follows, turns = (TrainedAgent(load_bundle(path), FIXED) for path in (good, bad))
    assert pytest.approx(replay_agent(follows, data, rows, configured=FIXED, seed=0).row(AGENT).gap_closed) == 1.0
    assert replay_agent(turns, data, rows, configured=FIXED, seed=0).row(AGENT).gap_closed < 0
    accuracy, majority = reranker_accuracy(follows, data)
    assert 1.0 == accuracy > majority
    assert reranker_accuracy(turns, data)[0] == 0.0


def test_accuracy_is_unknown_without_labels():
    """No kept label in the held-out part: None, not 0."""
    assert reranker_accuracy(None, toy_input(train=4, held_out=0)) == (None, None)  # the agent is not asked


def test_a_sweep_without_held_out_questions_has_an_empty_table():
    """Nothing to judge by is no crash."""
    data = toy_input(train=10, held_out=0)
    rows = data.rows("held_out")
    outcome = replay(data, rows, baseline_policies(data, rows, configured=FIXED, seed=0), seed=0)
    assert (outcome.rows, outcome.qids) == ((), ())
