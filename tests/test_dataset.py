"""From labels to a data set: splits by group, scaled targets, balanced pairs, and clear refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corag.errors import InputError, LabelError
from corag.settings import AgentSettings
from corag.values import Configuration, Question
from corag.words import normalized
from tests.sweeps import EMBEDDING, FIXED, GRID, RERANKERS, sweep_of, toy_input
from training.dataset import build_dataset, draw_pairs
from training.grid import from_unit, parameters, snap, swept_ranges, to_unit
from training.inputs import training_input
from training.split import split_by_group

RANGES = swept_ranges(GRID)


def test_no_normalised_question_stands_on_both_sides():
    """SWP-06: thirty questions, each under three spellings and ids, are split by group, and the same way again."""
    texts, classes = [], []
    for number in range(30):
        for spelling in (f"What is item {number}?", f"  what IS   item {number}", f"What, is item {number}!!"):
            texts.append(spelling)
            classes.append(RERANKERS[number % 3])
    split = split_by_group(texts, classes, 0.2, seed=3)
    train = {normalized(texts[row]) for row in split.train}
    validation = {normalized(texts[row]) for row in split.validation}
    assert not train & validation
    assert len(split.validation) == 18
    assert split.validation_counts == {"amber": 6, "birch": 6, "cedar": 6}
    assert split == split_by_group(texts, classes, 0.2, seed=3)
    assert split != split_by_group(texts, classes, 0.2, seed=4)


@given(
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from(RERANKERS)), max_size=25),
    st.floats(0.01, 0.99),
    st.integers(0, 50),
)
def test_a_split_keeps_every_question_once_and_something_to_train_on(rows, fraction, seed):
    """Whatever the sizes: each row is on one side, groups are whole, and training is never empty."""
    texts, classes = [f"question {number}" for number, _ in rows], [name for _, name in rows]
    split = split_by_group(texts, classes, fraction, seed)
    assert sorted(split.train + split.validation) == list(range(len(rows)))
    assert not {texts[row] for row in split.train} & {texts[row] for row in split.validation}
    assert bool(split.train) == bool(rows)


def test_tiny_classes_have_a_documented_fallback():
    """TRN-05: classes of 3, 1 and 1: one of the three validates, the single ones train, and the counts are shown."""
    split = split_by_group(list("abcde"), ["x", "x", "x", "y", "z"], 0.2, seed=0)
    assert split.validation_counts == {"x": 1}
    assert split.train_counts == {"x": 2, "y": 1, "z": 1}
    assert str(split) == "train 4 (x 2, y 1, z 1); validation 1 (x 1)"
    single = split_by_group(["a", "A "], ["x", "x"], 0.5, seed=0)
    assert single.validation == ()
    assert "validation repeats the training questions" in str(single)


def test_targets_are_scaled_over_the_swept_range():
    """The label of a question becomes its reranker's index and parameters in [0, 1]."""
    data = toy_input(train=20, held_out=0)
    dataset = build_dataset(data, AgentSettings())
    assert len(dataset.qids) == 20
    label = data.labels[dataset.qids[0]].configuration
    assert RERANKERS.index(label.reranker) == dataset.classes[0]
    np.testing.assert_allclose([0.25, 1 / 3, 0.0], dataset.targets[0], rtol=1e-6)


@given(st.tuples(*[st.floats(-3, 4)] * 3))
def test_any_prediction_lands_in_the_swept_range(scaled):
    """Predictions are clipped; those within [0, 1] come back unchanged."""
    values = from_unit(np.array([scaled]), RANGES)
    assert (values >= RANGES.low).all()
    assert (values <= RANGES.high).all()
    if all(0 <= value <= 1 for value in scaled):
        np.testing.assert_allclose(to_unit(values, RANGES)[0], scaled, atol=1e-9)


def test_a_parameter_with_one_swept_value_scales_to_zero():
    """A grid of one value an axis has no width to divide by."""
    ranges = swept_ranges([FIXED])
    assert to_unit(parameters([FIXED]), ranges).tolist() == [[0.0, 0.0, 0.0]]
    assert from_unit(np.array([[0.7, -2.0, 9.0]]), ranges).tolist() == [[10.0, 0.1, 2.4]]


def test_snapping_takes_the_nearest_recorded_trial_of_the_same_reranker():
    """Holes of a two-stage sweep are skipped, and an unknown reranker has no trial."""
    everything = np.ones(len(GRID), dtype=bool)
    wanted = Configuration("birch", 9, 0.12, 2.0)
    nearest = GRID[snap(wanted, GRID, everything, RANGES)]
    assert Configuration("birch", 10, 0.1, 2.4) == nearest
    holes = everything.copy()
    holes[GRID.index(nearest)] = False
    assert Configuration("birch", 5, 0.1, 2.4) == GRID[snap(wanted, GRID, holes, RANGES)]
    assert snap(Configuration("elm", 9, 0.1, 2.0), GRID, everything, RANGES) == -1


@given(st.lists(st.integers(-1, 3), max_size=40), st.integers(0, 1000))
def test_pairs_are_balanced_wherever_both_kinds_exist(classes, seed):
    """Half same, half different; a pair never joins a question with itself; unlabelled rows stay out."""
    array = np.array(classes, dtype=np.int64)
    left, right, same = draw_pairs(array, np.random.default_rng(seed))
    assert ((array[left] == array[right]) == same).all()
    assert (left != right).all()
    assert (array[left] >= 0).all()
    labelled = array[array >= 0]
    if len(set(labelled)) > 1 and len(set(labelled)) < len(labelled):
        assert same.sum() == (~same).sum()


def test_pairs_differ_by_epoch_and_agree_by_seed():
    """The generator alone decides."""
    classes = np.array([0, 1, 2] * 8)
    first = draw_pairs(classes, np.random.default_rng([0, 1]))
    assert all((a == b).all() for a, b in zip(first, draw_pairs(classes, np.random.default_rng([0, 1])), strict=True))
    assert (first[1] != draw_pairs(classes, np.random.default_rng([0, 2]))[1]).any()


@pytest.mark.parametrize(
    ("train", "lead", "shares", "said"),
    [
        (12, 0.0, (0.4, 0.3, 0.3), "no label to train on.*kept 0 of 12.*gap between rerankers too small.*min_gap"),
        (4, 0.4, (0.4, 0.3, 0.3), "4 labels are fewer than agent.min_labels \\(8\\).*kept 4 of 4"),
        (12, 0.4, (0.0, 1.0, 0.0), "every label names the reranker 'birch'.*search.fixed.reranker"),
    ],
)
def test_labels_that_cannot_train_are_refused_with_what_to_change(train, lead, shares, said):
    """No label, too few, or of one class: one line with what was kept, why the rest was dropped, and the remedy."""
    with pytest.raises(LabelError, match=said) as caught:
        build_dataset(toy_input(train=train, held_out=0, lead=lead, shares=shares), AgentSettings())
    assert "\n" not in str(caught.value)


def test_an_empty_sweep_is_refused():
    """No question at all ends in the same message, not in a crash."""
    import pandas as pd

    columns = [
        "qid",
        "reranker",
        "iterations",
        "cost_coefficient",
        "exploration_coefficient",
        "context_tokens",
        "rouge_l",
    ]
    data = training_input(
        pd.DataFrame(columns=columns),
        [],
        [],
        np.zeros((0, EMBEDDING.dimension)),
        {},
        rerankers=RERANKERS,
        embedding=EMBEDDING,
    )
    with pytest.raises(LabelError, match="no label to train on"):
        build_dataset(data, AgentSettings())


def test_training_questions_that_are_held_out_too_are_left_out():
    """A question that stands in both files under another spelling is judged on, not trained on."""
    questions = [Question(f"q{row}", f"Question {row}?") for row in range(20)]
    questions.append(Question("twin", "  QUESTION 3"))
    vectors = np.eye(21, EMBEDDING.dimension, dtype=np.float32)
    scores = {
        (question.qid, point): 0.9 if point.reranker == RERANKERS[row % 3] else 0.3
        for row, question in enumerate(questions)
        for point in GRID
    }
    dataset = build_dataset(sweep_of(questions, vectors, scores, train=20), AgentSettings())
    assert dataset.left_out == ("q3",)
    assert "q3" not in dataset.qids


def test_vectors_that_do_not_belong_to_the_questions_are_refused():
    """A width or a number that differs is a clear error."""
    import pandas as pd

    with pytest.raises(InputError, match=r"vectors are \[2, 3\]"):
        training_input(
            pd.DataFrame(),
            [],
            [Question("a", "A?")],
            np.zeros((2, 3)),
            {"a": "train"},
            rerankers=RERANKERS,
            embedding=EMBEDDING,
        )
