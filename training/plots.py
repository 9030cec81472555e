"""The pictures of a training run, as PNG bytes: confusion, regret, feature map before and after, learning curve."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from corag.drawing import draw
from training.cross_validation import CurvePoint
from training.policies import AGENT, BEST_FIXED, ORACLE
from training.train import TrainingResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_all(result: TrainingResult, curve: Sequence[CurvePoint] = ()) -> dict[str, bytes]:
    """File name → PNG of every plot that the result has data for; `curve` is the one over shares of the questions."""
    plots = {
        "learning_curve.png": draw([lambda axes: _learning_curve(axes, result)]),
        "feature_map.png": draw(
            [lambda axes: _feature_map(axes, result, "before"), lambda axes: _feature_map(axes, result, "after")]
        ),
        "confusion_matrix.png": draw([lambda axes: _confusion(axes, result)]),
    }
    if ORACLE in result.held_out.scores:
        plots["regret.png"] = draw([lambda axes: _regret(axes, result)])
    if curve:
        plots["labels_curve.png"] = draw([lambda axes: _labels_curve(axes, curve, result)])
    return plots


def _labels_curve(axes: "Axes", curve: Sequence[CurvePoint], result: TrainingResult) -> None:
    """Where the last points still rise, more labels would help."""
    axes.plot([one.labels for one in curve], [one.rouge_l for one in curve], marker="o", label="agent, cross-validated")
    best = result.held_out.row(BEST_FIXED)
    if best is not None:
        axes.axhline(best.rouge_l.mean, color="grey", linestyle=":", label="best fixed, held-out part")
    axes.set(xlabel="labelled questions learnt from", ylabel="ROUGE-L", title="By number of labels")
    axes.legend()


def _learning_curve(axes: "Axes", result: TrainingResult) -> None:
    for name in ("train_loss", "val_loss"):
        values = [row.get(name, np.nan) for row in result.best.history]
        axes.plot(range(1, len(values) + 1), values, label=name.replace("_", " "))
    axes.axvline(result.best.best_epoch + 1, color="grey", linestyle=":", label="kept")
    axes.set(xlabel="epoch", ylabel="loss", title="Learning curve")
    axes.legend()


def _feature_map(axes: "Axes", result: TrainingResult, when: str) -> None:
    """The first two principal components of the feature map, one colour a best reranker."""
    import torch

    network = result.best.initial if when == "before" else result.best.network
    with torch.inference_mode():
        features = network(torch.from_numpy(result.dataset.features)).features.numpy()
    centred = features - features.mean(axis=0)
    _, _, axes_of_spread = np.linalg.svd(centred, full_matrices=False)
    points = centred @ axes_of_spread[:2].T
    for index, name in enumerate(result.dataset.class_names):
        mine = points[result.dataset.classes == index]
        if len(mine):
            axes.scatter(mine[:, 0], mine[:, -1], s=14, label=name)
    axes.set(xlabel="component 1", ylabel="component 2", title=f"Feature map {when} training (PCA)")
    axes.legend(fontsize=8)


def _confusion(axes: "Axes", result: TrainingResult) -> None:
    """Best reranker against the predicted one over the validation side (the training side where there is none)."""
    rows = result.split.validation or result.split.train
    side = result.dataset.take(rows)
    names = result.dataset.class_names
    counts = np.zeros((len(names), len(names)), dtype=int)
    for truth, choice in zip(side.classes, result.agent.predict(side.features), strict=True):
        if truth >= 0:
            counts[truth, names.index(choice.reranker)] += 1
    axes.imshow(counts, cmap="Blues")
    for row, column in np.ndindex(counts.shape):
        dark = counts[row, column] > counts.max() / 2
        axes.text(column, row, str(counts[row, column]), ha="center", va="center", color="white" if dark else "black")
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), names)
    part = "validation" if result.split.validation else "training"
    axes.set(xlabel="predicted reranker", ylabel="best reranker", title=f"Confusion, {part} questions")


def _regret(axes: "Axes", result: TrainingResult) -> None:
    oracle = result.held_out.scores[ORACLE]
    for name in (AGENT, BEST_FIXED):
        if name in result.held_out.scores:
            axes.hist(oracle - result.held_out.scores[name], bins=20, range=(0, 1), alpha=0.6, label=name)
    axes.set(xlabel="ROUGE-L below the oracle", ylabel="held-out questions", title="Regret")
    axes.legend()
