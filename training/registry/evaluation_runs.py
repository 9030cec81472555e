"""Writes one evaluation as one MLflow run: the headline figures, the settings, and the whole folder of the report."""

import math
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from training.registry.connection import Tracking
from training.registry.runs import NOTE_TAG, metric_name, open_run


def log_evaluation_run(
    tracking: Tracking,
    figures: Mapping[str, float],
    params: Mapping[str, object],
    folder: Path,
    *,
    note: str,
    config_yaml: str,
) -> str:
    """The id of a new run with the figures, and `folder` as its artifacts. A figure that is not finite is left out.

    Raises:
        RegistryError: the server refuses; the run is then marked FAILED.
    """
    from mlflow.entities import Metric, Param

    with open_run(tracking, "evaluate", {NOTE_TAG: note}) as run_id:
        now = int(time.time() * 1000)
        tracking.client.log_batch(
            run_id,
            metrics=[
                Metric(metric_name(name), value, now, 0)
                for name, value in sorted(figures.items())
                if math.isfinite(value)
            ],
            params=[Param(name, str(value)[:500]) for name, value in sorted(params.items())],
        )
        tracking.client.log_artifacts(run_id, str(folder))
        with tempfile.TemporaryDirectory() as own:
            path = Path(own) / "config.yaml"
            path.write_text(config_yaml, encoding="utf-8")
            tracking.client.log_artifact(run_id, str(path))
    return run_id
