"""The Lightning module: wires network, losses and measurements. Importing it imports Lightning (seconds)."""

from typing import Any, NamedTuple

import numpy as np
import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch.utils.data import DataLoader

from training.dataset import Dataset, draw_pairs
from training.losses import (
    class_weights,
    classification_loss,
    contrastive_loss,
    expected_rouge_loss,
    regression_loss,
)
from training.measures import measure
from training.network import AgentNetwork, Prediction

MONITORED = "val_loss"
"""Logged every epoch, whatever the validation side holds: early stopping and the best checkpoint follow it."""


class Batch(NamedTuple):
    """p pairs: rows of one side and whether both have the same best reranker. All tensors [p]."""

    left: Tensor
    right: Tensor
    same: Tensor


class AgentModule(LightningModule):
    """Trains an AgentNetwork on one training and one validation side, both held in memory.

    `options` holds plain values only (a checkpoint must load with weights_only=True): dimension, hidden, rerankers,
    configurations, objective, margin, the three weights, class_weights, learning_rate, batch_size, seed.
    """

    def __init__(self, options: dict[str, Any], train: Dataset, validation: Dataset) -> None:
        super().__init__()
        self.save_hyperparameters({"options": options})
        self.options = options
        self._train, self._validation = train, validation
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options["seed"])
            self.network = AgentNetwork(
                options["dimension"], tuple(options["hidden"]), options["rerankers"], options["configurations"]
            )
        labelled = torch.from_numpy(train.classes[train.classes >= 0])
        self._weights = class_weights(labelled, options["rerankers"]) if options["class_weights"] else None

    def train_dataloader(self) -> DataLoader:
        """The batches of the present epoch: pairs drawn anew, by (seed, epoch) alone, so that a resumed run agrees."""
        generator = np.random.default_rng([self.options["seed"], self.current_epoch])
        if self.options["objective"] == "expected-rouge":
            left = generator.permutation(len(self._train.qids))
            right, same = left, np.ones(len(left), dtype=bool)
        else:
            left, right, same = draw_pairs(self._train.classes, generator)
        size = self.options["batch_size"]
        batches = [
            Batch(*(torch.from_numpy(part[start : start + size]) for part in (left, right, same)))
            for start in range(0, len(left), size)
        ]
        return DataLoader(batches, batch_size=None)  # type: ignore[arg-type]

    def val_dataloader(self) -> DataLoader:
        """One step: the whole validation side at once."""
        return DataLoader([0], batch_size=None)  # type: ignore[arg-type]

    def training_step(self, batch: Batch, _index: int) -> Tensor:
        """The loss of one batch of pairs."""
        losses = self._losses(self._train, batch, self._weights)
        for name, value in losses.items():
            self.log(f"train_{name}", value, on_step=False, on_epoch=True, batch_size=len(batch.same))
        return losses["loss"]

    def validation_step(self, _batch: int, _index: int) -> None:
        """Logs the losses and the measures of the validation side; pairs are drawn once, by the seed."""
        generator = np.random.default_rng(self.options["seed"])
        pairs = draw_pairs(self._validation.classes, generator)
        if len(pairs[0]):
            batch = Batch(*(torch.from_numpy(part) for part in pairs))
        else:
            # One validation question makes no pair: it is its own partner, at distance 0.
            rows = torch.arange(len(self._validation.qids))
            batch = Batch(rows, rows, torch.ones(len(rows), dtype=torch.bool))
        losses = self._losses(self._validation, batch, None)
        prediction: Prediction = self.network(torch.from_numpy(self._validation.features))
        measures = measure(prediction, self._train, self._validation)
        shown = {f"val_{name}": float(value) for name, value in losses.items()} | measures
        for name, value in shown.items():
            self.log(name, value, batch_size=1)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, as in the paper."""
        return torch.optim.Adam(self.network.parameters(), lr=self.options["learning_rate"])

    def _losses(self, side: Dataset, batch: Batch, weights: Tensor | None) -> dict[str, Tensor]:
        options = self.options
        left = self.network(torch.from_numpy(side.features)[batch.left])
        if options["objective"] == "expected-rouge":
            return {"loss": expected_rouge_loss(left.leads, torch.from_numpy(side.rouge_l)[batch.left])}
        right = self.network(torch.from_numpy(side.features)[batch.right])
        classes, targets = torch.from_numpy(side.classes), torch.from_numpy(side.targets)
        both = torch.cat([batch.left, batch.right])
        parts = {
            "contrastive": contrastive_loss(left.features, right.features, batch.same, options["margin"]),
            "classification": classification_loss(torch.cat([left.logits, right.logits]), classes[both], weights),
            "regression": regression_loss(torch.cat([left.parameters, right.parameters]), targets[both]),
        }
        total = sum((options[f"{name}_weight"] * loss for name, loss in parts.items()), torch.zeros(()))
        return {"loss": total, **parts}
