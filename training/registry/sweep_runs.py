"""Writes one sweep as one MLflow run: its counts, its plan beside what it cost, tables and plots."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corag.settings import SweepSettings
from corag.values import Label
from training.registry.connection import Tracking
from training.registry.runs import NOTE_TAG, open_run
from training.sweep_report import sweep_plots, sweep_tables


def log_sweep_run(
    tracking: Tracking,
    record: Mapping[str, Any],
    labels: Sequence[Label],
    settings: SweepSettings,
    *,
    note: str,
    config_yaml: str,
) -> str:
    """The id of a new run with the record of a sweep and the labels of its training questions.

    Raises:
        RegistryError: the server refuses; the run is then marked FAILED.
    """
    from mlflow.entities import Metric, Param

    tags = {NOTE_TAG: note, "fingerprint": str(record["fingerprint"]), "corpus_version": str(record["corpus_version"])}
    with open_run(tracking, "sweep", tags) as run_id:
        now = int(time.time() * 1000)
        tracking.client.log_batch(
            run_id,
            metrics=[Metric(name, value, now, 0) for name, value in sorted(_figures(record).items())],
            params=[Param(name, str(value)[:500]) for name, value in sorted(settings.model_dump().items())],
        )
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "config.yaml").write_text(config_yaml, encoding="utf-8")
            for name, table in sweep_tables(labels).items():
                _file(root / "tables" / name).write_text(table, encoding="utf-8")
            for name, plot in sweep_plots(labels, settings.min_gap).items():
                _file(root / "plots" / name).write_bytes(plot)
            tracking.client.log_artifacts(run_id, folder)
    return run_id


def _figures(record: Mapping[str, Any]) -> dict[str, float]:
    labels = record["labels"]["train"]
    figures = {
        "questions_train": record["questions"]["train"],
        "questions_held_out": record["questions"]["held_out"],
        "trials": record["trials"],
        "labels_kept": labels.get("kept", 0),
        "labels_dropped": sum(labels.values()) - labels.get("kept", 0),
        **{f"pairs_{name}": value for name, value in record["pairs"].items()},
        **{f"llm_calls_{name}": value for name, value in record["calls"].items()},
    }
    if record["headroom_mean"] is not None:
        figures["headroom"] = record["headroom_mean"]
    return {name: float(value) for name, value in figures.items()}


def _file(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    return path
