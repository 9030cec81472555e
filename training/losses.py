"""The three losses of the paper (§5.3) and the one of the alternative objective, as functions of tensors."""

import torch
from torch import Tensor
from torch.nn import functional

SQUARE_ROOT_FLOOR = 1e-12
"""Added below the root of a squared distance: its gradient at 0 is infinite."""


def contrastive_loss(left: Tensor, right: Tensor, same: Tensor, margin: float) -> Tensor:
    """The mean over pairs of d² (same best reranker) or max(0, margin − d)² (different); 0 without pairs.

    `left` and `right` are feature maps [p, h], d their Euclidean distance, `same` bool [p].
    """
    if left.shape[0] == 0:
        return left.sum() * 0.0
    squared = (left - right).square().sum(dim=1)
    pushed = functional.relu(margin - torch.sqrt(squared + SQUARE_ROOT_FLOOR)).square()
    return torch.where(same, squared, pushed).mean()


def classification_loss(logits: Tensor, classes: Tensor, weights: Tensor | None = None) -> Tensor:
    """Cross-entropy of logits [n, k] against class indices [n], each class optionally weighted by `weights` [k]."""
    return functional.cross_entropy(logits, classes, weight=weights)


def regression_loss(predicted: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error of predictions [n, 3] against targets scaled to [0, 1]."""
    return functional.mse_loss(predicted, targets)


def expected_rouge_loss(predicted: Tensor, rouge_l: Tensor) -> Tensor:
    """Mean squared error of predicted [n, g] against each configuration's lead over its question's mean ROUGE-L.

    Trials that failed or were not run are NaN in `rouge_l` and do not count. How hard a question is moves all its
    scores alike and says nothing about the choice, so it is taken out.
    """
    finite = torch.isfinite(rouge_l)
    mean = torch.nanmean(rouge_l, dim=1, keepdim=True)
    lead = torch.where(finite, rouge_l - mean, 0.0)
    return ((predicted - lead).square() * finite).sum() / finite.sum().clamp(min=1)


def class_weights(classes: Tensor, count: int) -> Tensor:
    """float32 [count] n / (present classes · n of the class): rare classes weigh more; absent ones weigh 0."""
    occurrences = torch.bincount(classes, minlength=count).float()
    present = (occurrences > 0).sum().clamp(min=1)
    weights = len(classes) / (present * occurrences.clamp(min=1))
    return torch.where(occurrences > 0, weights, 0.0)
