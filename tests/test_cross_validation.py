"""Cross-validated replay and the learning curve, on a made-up sweep whose rule can be learnt."""

import numpy as np
import pytest

from corag.errors import LabelError
from corag.settings import AgentSettings
from tests.sweeps import FIXED, toy_input
from training.cross_validation import CurvePoint, cross_validate, learning_curve, rearranged
from training.plots import draw_all
from training.policies import AGENT, BEST_FIXED, ORACLE
from training.tables import tables_of
from training.train import train_agent

SETTINGS = AgentSettings(epochs=30)
DATA = toy_input(train=50, held_out=0)


def judge(data, tmp_path, **options):
    """The cross-validated replay of a shortly trained agent."""
    return cross_validate(data, SETTINGS, configured=FIXED, seed=3, work=tmp_path, folds=3, samples=100, **options)


def test_every_question_is_judged_once_by_an_agent_that_never_saw_it(tmp_path):
    """All questions are compared; the rule is learnt, so that most of the gap is closed; twice gives the same."""
    found = judge(DATA, tmp_path)
    assert sorted(found.qids) == sorted(question.qid for question in DATA.questions)
    agent, best, oracle = (found.row(name) for name in (AGENT, BEST_FIXED, ORACLE))
    assert best.rouge_l.mean < agent.rouge_l.mean <= oracle.rouge_l.mean
    assert agent.gap_closed > 0.5
    assert judge(DATA, tmp_path).rows == found.rows
    assert {row.n for row in found.slices if row.slice.startswith("language=fr")} == {10}


def test_the_learning_curve_leaves_out_shares_with_too_few_labels(tmp_path):
    """Labels grow with the share; a share of next to nothing is no point, and no error."""
    points = learning_curve(
        DATA, SETTINGS, configured=FIXED, seed=3, work=tmp_path, shares=(0.02, 0.5, 1.0), folds=3, samples=100
    )
    assert [point.share for point in points] == [0.5, 1.0]
    assert points[0].labels < points[1].labels
    with pytest.raises(LabelError):
        judge(DATA, tmp_path, share=0.02)


def test_rearranging_keeps_each_questions_own_row():
    """Vectors and trials move with their question."""
    moved = rearranged(DATA, [4, 1], [7])
    assert [question.qid for question in moved.questions] == ["q004", "q001", "q007"]
    assert moved.parts == ("train", "train", "held_out")
    assert np.array_equal(moved.vectors, DATA.vectors[[4, 1, 7]])
    assert np.array_equal(moved.rouge_l, DATA.rouge_l[[4, 1, 7]])


def test_the_curve_is_a_table_and_a_plot_of_the_training(tmp_path):
    """Both are there where it was measured, and neither where it was not."""
    result = train_agent(toy_input(train=30, held_out=6), SETTINGS, configured=FIXED, seed=0, work=tmp_path)
    curve = [CurvePoint(0.5, 12.0, 0.41, None), CurvePoint(1.0, 24.0, 0.45, 0.3)]
    assert tables_of(result, curve)["labels_curve.csv"].split() == [
        "share,labels,rouge_l,gap_closed",
        "0.50,12.0,0.4100,",
        "1.00,24.0,0.4500,0.3",
    ]
    assert draw_all(result, curve)["labels_curve.png"].startswith(b"\x89PNG")
    assert "labels_curve.csv" not in tables_of(result)
    assert "labels_curve.png" not in draw_all(result)
