"""Writes one night of answering as one MLflow run: its figures, and the page that is read in the morning."""

import time
from collections.abc import Mapping
from pathlib import Path

from training.registry.connection import Tracking
from training.registry.runs import NOTE_TAG, open_run


def log_night_run(
    tracking: Tracking, date: str, figures: Mapping[str, float], *, note: str, page: Path, run: str
) -> str:
    """The id of a new run for the night of `date`; `run` is the identity of the answering run that it tells of.

    Raises:
        RegistryError: the server refuses; the run is then marked FAILED.
    """
    from mlflow.entities import Metric

    with open_run(tracking, f"night {date}", {NOTE_TAG: note, "date": date, "answer_run": run}) as run_id:
        now = int(time.time() * 1000)
        tracking.client.log_batch(
            run_id, metrics=[Metric(name, value, now, 0) for name, value in sorted(figures.items())]
        )
        tracking.client.log_artifact(run_id, str(page))
    return run_id
