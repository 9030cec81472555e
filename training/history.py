"""A Lightning callback that keeps each epoch's figures. Importing it imports Lightning (seconds)."""

from collections.abc import Callable
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer


class History(Callback):
    """`rows`: one mapping of figures an epoch; they travel inside the checkpoint, so a resumed run has them all."""

    def __init__(self, on_epoch: Callable[[int], None]) -> None:
        self.rows: list[dict[str, float]] = []
        self._on_epoch = on_epoch

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep what was logged; called before the epoch's checkpoint is written."""
        self.rows.append({name: float(value) for name, value in sorted(trainer.callback_metrics.items())})
        self._on_epoch(trainer.current_epoch)

    def state_dict(self) -> dict[str, Any]:
        """The rows so far."""
        return {"rows": self.rows}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up the rows of a checkpoint."""
        self.rows = list(state_dict["rows"])
