"""The network and its losses, against values computed by hand."""

import math

import numpy as np
import pytest
import torch

from training.losses import (
    class_weights,
    classification_loss,
    contrastive_loss,
    expected_rouge_loss,
    regression_loss,
)
from training.measures import spread
from training.network import AgentNetwork


def test_contrastive_loss_of_two_rows_by_hand():
    """Same pair at distance 5: 25. Different pair at distance 0.6 with margin 1: 0.4² = 0.16. Mean 12.58."""
    left, right = torch.tensor([[0.0, 0.0], [1.0, 0.0]]), torch.tensor([[3.0, 4.0], [1.0, 0.6]])
    loss = contrastive_loss(left, right, torch.tensor([True, False]), margin=1.0)
    assert loss.item() == pytest.approx((25 + 0.16) / 2)


def test_a_different_pair_beyond_the_margin_costs_nothing():
    """It is pushed apart to the margin and no further."""
    left, right = torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 2.0]])
    assert contrastive_loss(left, right, torch.tensor([False]), margin=1.0).item() == 0.0


def test_contrastive_loss_has_finite_gradients_at_distance_zero_and_without_pairs():
    """Two equal feature maps with different rerankers, and an empty batch, leave finite gradients."""
    left = torch.zeros((1, 2), requires_grad=True)
    contrastive_loss(left, torch.zeros((1, 2)), torch.tensor([False]), 1.0).backward()
    assert torch.isfinite(left.grad).all()
    empty = torch.zeros((0, 2), requires_grad=True)
    assert contrastive_loss(empty, empty, torch.zeros(0, dtype=torch.bool), 1.0).item() == 0.0


def test_classification_and_regression_losses_of_two_rows_by_hand():
    """Cross-entropy of a sure and an even guess; squared errors of 0.5 and 0."""
    logits = torch.tensor([[math.log(9.0), 0.0], [0.0, 0.0]])
    expected = (-math.log(0.9) - math.log(0.5)) / 2
    assert classification_loss(logits, torch.tensor([0, 1])).item() == pytest.approx(expected)
    weighted = (-math.log(0.9) * 1 - math.log(0.5) * 3) / 4
    weights = torch.tensor([1.0, 3.0])
    assert classification_loss(logits, torch.tensor([0, 1]), weights).item() == pytest.approx(weighted)
    predicted = torch.tensor([[0.5, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert regression_loss(predicted, torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])).item() == pytest.approx(
        0.25 / 6
    )


def test_expected_rouge_loss_ignores_failed_trials_and_the_question_s_level():
    """Scores 0.2 and 0.6 are leads of ±0.2 over their mean; the failed third trial does not count."""
    scores = torch.tensor([[0.2, 0.6, math.nan]])
    assert expected_rouge_loss(torch.tensor([[-0.2, 0.2, 9.0]]), scores).item() == pytest.approx(0.0, abs=1e-12)
    assert expected_rouge_loss(torch.tensor([[0.0, 0.2, 0.0]]), scores).item() == pytest.approx(0.04 / 2)


def test_class_weights_even_out_a_skew_and_leave_absent_classes_out():
    """Nine of one class and one of another: each class weighs five in total; a third, absent, weighs nothing."""
    weights = class_weights(torch.tensor([0] * 9 + [1]), 3)
    assert pytest.approx(weights.tolist()) == [10 / 18, 5.0, 0.0]


def test_both_branches_share_weights_and_the_heads_have_their_shapes():
    """Equal questions have equal feature maps; there is one logit a reranker and three parameters."""
    network = AgentNetwork(6, (8, 5, 4), rerankers=3)
    prediction = network(torch.ones((2, 6)))
    assert prediction.features.shape == (2, 4)
    assert prediction.logits.shape == (2, 3)
    assert prediction.parameters.shape == (2, 3)
    assert prediction.leads.shape == (2, 0)
    # Not bit by bit: a matrix product may sum the rows of one batch in different orders.
    torch.testing.assert_close(prediction.features[0], prediction.features[1])
    assert (prediction.features >= 0).all()
    assert AgentNetwork(6, (8, 5, 4), 3, configurations=7)(torch.ones((2, 6))).leads.shape == (2, 7)


def test_spread_tells_a_collapsed_feature_map():
    """Equal rows: cosine 1 and variance 0. Orthogonal rows: cosine 0. One row: defined, not NaN."""
    assert pytest.approx(spread(np.ones((4, 3)))) == {"val_pair_cosine": 1.0, "val_feature_variance": 0.0}
    assert pytest.approx(spread(np.eye(3))["val_pair_cosine"]) == 0.0
    assert spread(np.ones((1, 3)))["val_pair_cosine"] == 0.0
