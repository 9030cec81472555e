"""Fits one network: early stopping, best finite checkpoint, and a work folder from which a killed run goes on."""

import hashlib
import json
import logging
import math
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from corag.errors import ModelError
from corag.settings import AgentSettings
from training.dataset import Dataset

if TYPE_CHECKING:
    from training.module import AgentModule
    from training.network import AgentNetwork

logger = logging.getLogger(__name__)

LAST, BEST = "last.ckpt", "best.ckpt"


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A trained network and how it got there.

    history: one mapping of figures an epoch. state: whether the run began anew or went on from a checkpoint.
    """

    network: "AgentNetwork"
    initial: "AgentNetwork"
    history: tuple[dict[str, float], ...]
    best_epoch: int
    epochs: int
    state: Literal["fresh", "resumed"]
    seed: int


def fit(
    train: Dataset,
    validation: Dataset,
    settings: AgentSettings,
    *,
    seed: int,
    work: Path,
    on_epoch: Callable[[int], None] = lambda epoch: None,
) -> Fit:
    """The network of the epoch with the least finite validation loss.

    Checkpoints lie in a folder of `work` named after the data and the settings, one an epoch: a run killed at any
    moment goes on from the last one and ends with the same weights. The folder is removed at the end.
    `on_epoch` is called after each epoch. An empty `validation` validates on `train`.

    Raises:
        ModelError: no epoch had a finite validation loss.
    """
    options = _options(train, settings, seed)
    folder = work / _fingerprint(train, validation, options, settings)
    resume = _last_checkpoint(folder)
    from training.module import AgentModule  # first: importing Lightning sets its loggers' levels

    with _quiet():
        judge = validation if validation.qids else train
        module = AgentModule(options, train, judge)
        initial = AgentModule(options, train, judge).network
        history, best = _run(module, folder, settings, resume, on_epoch)
    weights = load_checkpoint(best)
    prefix = "network."
    module.network.load_state_dict(
        {name.removeprefix(prefix): value for name, value in weights["state_dict"].items() if name.startswith(prefix)}
    )
    shutil.rmtree(folder, ignore_errors=True)
    return Fit(
        network=module.network.eval(),
        initial=initial.eval(),
        history=tuple(history),
        best_epoch=int(weights["epoch"]),
        epochs=len(history),
        state="resumed" if resume else "fresh",
        seed=seed,
    )


def load_checkpoint(path: Path) -> dict[str, Any]:
    """The checkpoint at `path`, read without unpickling anything but tensors and plain values.

    Raises:
        ModelError: the file is missing, torn or holds other objects.
    """
    import pickle  # for the name of its error only

    import torch

    try:
        loaded: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, ValueError, KeyError, pickle.UnpicklingError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(f"{path}: not a usable checkpoint ({reason}); delete it and train again") from None
    return loaded


def _run(
    module: "AgentModule", folder: Path, settings: AgentSettings, resume: Path | None, on_epoch: Callable[[int], None]
) -> tuple[list[dict[str, float]], Path]:
    """The history and the path of the best checkpoint."""
    import torch
    from lightning.pytorch import Trainer
    from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

    from training.history import History
    from training.module import MONITORED

    history = History(on_epoch)
    checkpoints = ModelCheckpoint(
        folder,
        filename=Path(BEST).stem,
        monitor=MONITORED,
        mode="min",
        save_last=True,
        save_on_train_epoch_end=True,
        enable_version_counter=False,
    )
    stopping = EarlyStopping(
        MONITORED, patience=settings.patience, mode="min", check_finite=False, check_on_train_epoch_end=True
    )
    trainer = Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=settings.epochs,
        logger=False,
        callbacks=[history, stopping, checkpoints],
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        log_every_n_steps=1,
        reload_dataloaders_every_n_epochs=1,
        default_root_dir=folder,
    )
    with torch.random.fork_rng(devices=[]):  # data loaders draw from the global generator, even unshuffled ones
        trainer.fit(module, ckpt_path=resume, weights_only=True)
    score = checkpoints.best_model_score
    if score is None or not math.isfinite(float(score)):
        shutil.rmtree(folder, ignore_errors=True)
        raise ModelError(
            f"training the agent: no epoch had a finite {MONITORED} in {len(history.rows)} epochs; "
            "lower agent.learning_rate, and look for broken vectors among the questions"
        )
    return history.rows, Path(checkpoints.best_model_path)


def _options(train: Dataset, settings: AgentSettings, seed: int) -> dict[str, Any]:
    """What the module is built from, as plain values that a checkpoint can hold."""
    return {
        "dimension": int(train.features.shape[1]),
        "hidden": list(settings.hidden),
        "rerankers": len(train.class_names),
        "configurations": train.rouge_l.shape[1] if settings.objective == "expected-rouge" else 0,
        "objective": settings.objective,
        "margin": settings.margin,
        "contrastive_weight": settings.contrastive_weight,
        "classification_weight": settings.classification_weight,
        "regression_weight": settings.regression_weight,
        "class_weights": settings.class_weights,
        "learning_rate": settings.learning_rate,
        "batch_size": settings.batch_size,
        "seed": seed,
    }


def _fingerprint(train: Dataset, validation: Dataset, options: dict[str, Any], settings: AgentSettings) -> str:
    digest = hashlib.sha256(json.dumps([options, settings.epochs, settings.patience], sort_keys=True).encode())
    for side in (train, validation):
        digest.update(repr((side.qids, side.class_names)).encode())
        for array in (side.features, side.classes, side.targets, side.rouge_l):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:20]


def _last_checkpoint(folder: Path) -> Path | None:
    """The checkpoint to go on from; one that a kill left torn is dropped, and training begins anew."""
    last = folder / LAST
    if not last.exists():
        return None
    try:
        load_checkpoint(last)
    except ModelError:
        logger.warning("training: the last checkpoint is torn; training begins anew")
        shutil.rmtree(folder)
        return None
    return last


@contextmanager
def _quiet() -> Iterator[None]:
    """Lightning's advice on workers, accelerators and logging intervals is meant for its users, not for ours."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
