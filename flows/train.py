"""Train: labels → agent → MLflow run → registered version."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from corag.answer_prepare import question_vectors
from corag.components import Components
from corag.progress import progress
from corag.retrieval import retrieve
from corag.sweep_files import read_sweep
from corag.writer_lock import writer_lock
from flows.runtime import open_components
from training.cross_validation import CurvePoint, learning_curve
from training.inputs import Embedding, TrainingInput, training_input
from training.registry import connect, log_training_run, register
from training.replay import Replay
from training.train import TrainingResult, train_agent

LOCK_SECONDS = 600.0
"""How long a training waits for another one in the same workspace."""


@flow(name="train")
def train_flow(config_file: str | None, overrides: list[str]) -> str:
    """Train the agent on the last sweep and register it; its held-out figures."""
    parts = open_components(config_file, overrides, "train")
    data = load_training_input(parts)
    # The work folder belongs to one training at a time.
    with writer_lock(parts.workspace.locks / "train.lock", LOCK_SECONDS, "training"):
        result = fit_agent(parts, data)
        curve = draw_curve(parts, data) if parts.config.agent.learning_curve else []
        return register_agent(parts, result, curve)


@task(cache_policy=NO_CACHE, persist_result=False)
def load_training_input(parts: Components) -> TrainingInput:
    """The last sweep with the vectors of its questions, and of their candidates where `agent.candidate_mean` asks."""
    swept = read_sweep(parts.workspace.sweep)
    embedder, mean = parts.embedder, parts.config.agent.candidate_mean
    if mean:
        found = retrieve(parts.store, embedder, swept.questions, parts.config.retrieval, candidate_mean=True)
        vectors = question_vectors(found, 2 * embedder.dimension)
    else:
        vectors = embedder.embed([question.question for question in swept.questions])
    return training_input(
        swept.trials,
        swept.labels,
        swept.questions,
        vectors,
        swept.parts,
        rerankers=[reranker.name for reranker in parts.config.rerankers],
        embedding=Embedding(embedder.name, embedder.revision, vectors.shape[1]),
        corpus_version=str(swept.record.get("corpus_version", "")),
    )


@task(cache_policy=NO_CACHE, persist_result=False)
def fit_agent(parts: Components, data: TrainingInput) -> TrainingResult:
    """The trained agent and its replay on the held-out questions."""
    settings = parts.config.agent
    with progress("train", settings.epochs * settings.seeds) as advance:
        return train_agent(
            data,
            settings,
            configured=parts.fixed,
            seed=parts.config.seed,
            work=parts.workspace.folder("training"),
            on_epoch=lambda epoch: advance(1),
            bootstrap_samples=parts.config.promotion.bootstrap_samples,
        )


@task(cache_policy=NO_CACHE, persist_result=False)
def draw_curve(parts: Components, data: TrainingInput) -> list[CurvePoint]:
    """Agents that learn from shares of the questions, cross-validated."""
    with tempfile.TemporaryDirectory() as work:
        return learning_curve(data, parts.config.agent, configured=parts.fixed, seed=parts.config.seed, work=Path(work))


@task(cache_policy=NO_CACHE, persist_result=False)
def register_agent(parts: Components, result: TrainingResult, curve: Sequence[CurvePoint] = ()) -> str:
    """Log the run, register its bundle as a version, and say what came of it."""
    import yaml

    tracking = connect(parts.config.tracking)
    config_yaml = yaml.safe_dump(parts.config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    run_id = log_training_run(tracking, result, parts.config.agent, config_yaml=config_yaml, name="train", curve=curve)
    registered = register(tracking, parts.config.agent.model_name, run_id, result.card)
    how = "registered as" if registered.created else "identical in content to"
    return (
        f"train: {len(result.dataset.qids)} labelled questions, {len(result.best.history)} epochs "
        f"({result.best.state} run), {how} {parts.config.agent.model_name} version {registered.version} "
        f"({tracking.uri})\n{replay_table(result.held_out)}"
    )


def replay_table(outcome: Replay) -> str:
    """The held-out replay as a Markdown table."""
    lines = ["| held-out replay | ROUGE-L | context tokens | regret | gap closed |", "|---|---|---|---|---|"]
    for row in outcome.rows:
        closed = "" if row.gap_closed is None else f"{row.gap_closed:.0%}"
        lines.append(f"| {row.method} | {row.rouge_l} | {row.tokens:.0f} | {row.regret:.3f} | {closed} |")
    if outcome.excluded:
        lines.append(f"({len(outcome.excluded)} held-out questions left out: a trial failed or was never run)")
    return "\n".join(lines)
