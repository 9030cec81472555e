"""What is measured of the validation side beside the losses: accuracy, per class, against the majority; collapse."""

import numpy as np

from training.dataset import Dataset
from training.network import Prediction


def measure(prediction: Prediction, train: Dataset, validation: Dataset) -> dict[str, float]:
    """Named figures of one epoch, each finite, the same names every time.

    accuracy, and accuracy_NAME a class present in validation; majority_baseline: the accuracy of always naming the
    training side's most frequent class; pair_cosine: mean cosine between the feature maps of distinct questions (1 =
    collapsed); feature_variance: mean variance of a feature over the questions (0 = collapsed); predicted_classes.
    """
    labelled = validation.classes >= 0
    truth = validation.classes[labelled]
    predicted = predicted_classes(prediction, train.column_classes)[labelled]
    figures = {
        "val_accuracy": _share(predicted == truth),
        "val_majority_baseline": _share(truth == majority_class(train)),
        "val_predicted_classes": float(len(np.unique(predicted))),
    }
    for index, name in enumerate(train.class_names):
        if (truth == index).any():
            figures[f"val_accuracy_{name}"] = _share(predicted[truth == index] == index)
    return figures | spread(prediction.features.detach().numpy())


def predicted_classes(prediction: Prediction, column_classes: np.ndarray) -> np.ndarray:
    """int64 [n] the reranker named by the class head, or that of the greatest expected lead where leads exist."""
    if prediction.leads.shape[1]:
        return column_classes[prediction.leads.detach().numpy().argmax(axis=1)]
    classes: np.ndarray = prediction.logits.detach().numpy().argmax(axis=1)
    return classes


def majority_class(train: Dataset) -> int:
    """The most frequent class of the training side, the first of equals."""
    labelled = train.classes[train.classes >= 0]
    return int(np.bincount(labelled, minlength=len(train.class_names)).argmax())


def spread(features: np.ndarray) -> dict[str, float]:
    """Mean pair cosine and mean variance of feature maps [n, h]; a zero vector has cosine 0 with every other."""
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    units = features / np.where(norms > 0, norms, 1.0)
    count = len(features)
    total = float(units.sum(axis=0) @ units.sum(axis=0)) - float((units * units).sum())
    cosine = total / (count * (count - 1)) if count > 1 else 0.0
    return {"val_pair_cosine": cosine, "val_feature_variance": float(features.var(axis=0).mean())}


def _share(hits: np.ndarray) -> float:
    return float(hits.mean()) if hits.size else 0.0
