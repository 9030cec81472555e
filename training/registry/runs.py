"""Writes one training as one MLflow run that a stranger understands: parameters, curves, tables, plots, the model."""

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from corag.settings import AgentSettings
from training.bundle import AgentCard
from training.cross_validation import CurvePoint
from training.fit import Fit
from training.plots import draw_all
from training.registry.connection import Tracking, registry_errors
from training.tables import tables_of
from training.train import TrainingResult

BUNDLE = "bundle"
"""Artifact folder of a run that holds the registered model."""

METRICS_PER_CALL = 1000
"""MLflow's limit on one batch of metrics."""

PARENT_TAG, NOTE_TAG, NAME_TAG = "mlflow.parentRunId", "mlflow.note.content", "mlflow.runName"


def log_training_run(
    tracking: Tracking,
    result: TrainingResult,
    settings: AgentSettings,
    *,
    config_yaml: str,
    name: str,
    curve: Sequence[CurvePoint] = (),
) -> str:
    """The id of a new run that holds the whole training. Each call makes its own run, a retry included.

    `config_yaml` is the full configuration; it is kept as an artifact, for a parameter's value is cut at 6,000
    characters. With several seeds each fit is a nested run. `curve` is the
    learning curve over shares of the questions, where it was measured.

    Raises:
        RegistryError: the server refuses; the run is then marked FAILED.
    """
    with open_run(tracking, name, {NOTE_TAG: _note(result), "fingerprint": result.card.fingerprint}) as run_id:
        _log_params(tracking, run_id, settings, result)
        _log_curves(tracking, run_id, result.best)
        _log_figures(tracking, run_id, _final_figures(result))
        with tempfile.TemporaryDirectory() as folder:
            _write_artifacts(Path(folder), result, config_yaml, run_id, curve)
            tracking.client.log_artifacts(run_id, folder)
        if len(result.fits) > 1:
            for fit in result.fits:
                with open_run(tracking, f"{name} seed {fit.seed}", {PARENT_TAG: run_id}) as child:
                    _log_curves(tracking, child, fit)
                    _log_figures(tracking, child, fit.history[fit.best_epoch])
    return run_id


@contextmanager
def open_run(tracking: Tracking, name: str, tags: Mapping[str, str]) -> Iterator[str]:
    """The id of a new run, which ends FINISHED, or FAILED where the body raises."""
    with registry_errors(f"run {name!r} at {tracking.uri}"):
        run_id: str = tracking.client.create_run(tracking.experiment_id, run_name=name, tags=dict(tags)).info.run_id
        status = "FAILED"
        try:
            yield run_id
            status = "FINISHED"
        finally:
            tracking.client.set_terminated(run_id, status)


def _note(result: TrainingResult) -> str:
    agent = result.held_out.row("agent")
    judged = f"Held-out ROUGE-L {agent.rouge_l}" if agent else "Not judged on held-out questions"
    return (
        f"Configuration agent trained on {len(result.dataset.qids)} labelled questions ({result.split}). "
        f"{judged}. Tables under `tables/`, plots under `plots/`, the model under `{BUNDLE}/`."
    )


def _log_params(tracking: Tracking, run_id: str, settings: AgentSettings, result: TrainingResult) -> None:
    from mlflow.entities import Param

    values = {name: str(value) for name, value in settings.model_dump().items()}
    values |= {
        "seed": str(result.best.seed),
        "state": result.best.state,
        "split_seed": str(result.split.seed),
        "train_questions": str(len(result.split.train)),
        "validation_questions": str(len(result.split.validation)),
        "left_out_questions": str(len(result.dataset.left_out)),
        "held_out_questions": str(len(result.held_out.qids)),
        "data_fingerprint": result.card.data_fingerprint,
        "embedder": f"{result.card.embedder} {result.card.embedder_revision}".strip(),
        "tracking_uri": tracking.uri,
    }
    tracking.client.log_batch(run_id, params=[Param(name, value[:500]) for name, value in sorted(values.items())])


def _log_curves(tracking: Tracking, run_id: str, fit: Fit) -> None:
    from mlflow.entities import Metric

    now = int(time.time() * 1000)
    metrics = [
        Metric(metric_name(name), value, now, epoch)
        for epoch, row in enumerate(fit.history)
        for name, value in sorted(row.items())
    ]
    for start in range(0, len(metrics), METRICS_PER_CALL):
        tracking.client.log_batch(run_id, metrics=metrics[start : start + METRICS_PER_CALL])


def _log_figures(tracking: Tracking, run_id: str, figures: Mapping[str, float]) -> None:
    from mlflow.entities import Metric

    now = int(time.time() * 1000)
    metrics = [Metric(metric_name(f"final_{name}"), value, now, 0) for name, value in sorted(figures.items())]
    tracking.client.log_batch(run_id, metrics=metrics)


def _final_figures(result: TrainingResult) -> dict[str, float]:
    figures = {"best_epoch": float(result.best.best_epoch + 1), "epochs": float(result.best.epochs)}
    figures |= result.best.history[result.best.best_epoch]
    for row in result.held_out.rows:
        figures[f"held_out_rouge_l {row.method}"] = row.rouge_l.mean
        figures[f"held_out_tokens {row.method}"] = row.tokens
    agent = result.held_out.row("agent")
    if agent is not None:
        figures |= {"held_out_regret": agent.regret, "held_out_gain_over_best_fixed": agent.gain.mean}
        if agent.gap_closed is not None:
            figures["held_out_gap_closed"] = agent.gap_closed
    if result.accuracy is not None and result.majority is not None:
        figures |= {"held_out_accuracy": result.accuracy, "held_out_majority_baseline": result.majority}
    figures["held_out_excluded"] = float(len(result.held_out.excluded))
    return figures


def metric_name(name: str) -> str:
    """A name that MLflow takes for a metric."""
    return "".join(letter if letter.isalnum() or letter in "_-. /" else "_" for letter in name)


def _write_artifacts(
    folder: Path, result: TrainingResult, config_yaml: str, run_id: str, curve: Sequence[CurvePoint]
) -> None:
    (folder / "config.yaml").write_text(config_yaml, encoding="utf-8")
    split = {
        "seed": result.split.seed,
        "train": {"questions": len(result.split.train), "classes": result.split.train_counts},
        "validation": {"questions": len(result.split.validation), "classes": result.split.validation_counts},
        "left_out": list(result.dataset.left_out),
        "note": result.split.note,
    }
    (folder / "split.json").write_text(json.dumps(split, indent=2, ensure_ascii=False), encoding="utf-8")
    for part, files in (("tables", tables_of(result, curve)), ("plots", draw_all(result, curve))):
        (folder / part).mkdir()
        for name, content in files.items():
            data = content.encode("utf-8") if isinstance(content, str) else content
            (folder / part / name).write_bytes(data)
    bundle = folder / BUNDLE
    bundle.mkdir()
    for path in sorted(result.folder.iterdir()):
        (bundle / path.name).write_bytes(path.read_bytes())
    _write_signature(bundle, result.card, run_id)


def _write_signature(bundle: Path, card: AgentCard, run_id: str) -> None:
    """`MLmodel` with the signature, and an input example, so that the registry shows what the model reads."""
    import numpy as np
    from mlflow.models import Model, ModelSignature
    from mlflow.types import ColSpec, Schema, TensorSpec

    outputs = (
        ("string", "reranker"),
        ("long", "iterations"),
        ("double", "cost_coefficient"),
        ("double", "exploration_coefficient"),
    )
    signature = ModelSignature(
        inputs=Schema([TensorSpec(np.dtype("float32"), (-1, card.dimension), "vectors")]),
        outputs=Schema([ColSpec(kind, name) for kind, name in outputs]),
    )
    Model(artifact_path=BUNDLE, run_id=run_id, signature=signature).save(str(bundle / "MLmodel"))
    example = {"inputs": {"vectors": [[1.0] + [0.0] * (card.dimension - 1)]}}
    (bundle / "input_example.json").write_text(json.dumps(example), encoding="utf-8")
