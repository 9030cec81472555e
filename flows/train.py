"""Train: labels → agent → MLflow run → registered version."""

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from corag.components import Components
from corag.progress import progress
from corag.sweep_files import read_sweep
from flows.runtime import open_components
from training.inputs import Embedding, TrainingInput, training_input
from training.registry import connect, log_training_run, register
from training.replay import Replay
from training.train import TrainingResult, train_agent


@flow(name="train")
def train_flow(config_file: str | None, overrides: list[str]) -> str:
    """Train the agent on the last sweep and register it; its held-out figures."""
    parts = open_components(config_file, overrides, "train")
    data = load_training_input(parts)
    result = fit_agent(parts, data)
    return register_agent(parts, result)


@task(cache_policy=NO_CACHE, persist_result=False)
def load_training_input(parts: Components) -> TrainingInput:
    """The last sweep with the vectors of its questions."""
    swept = read_sweep(parts.workspace.sweep)
    embedder = parts.embedder
    vectors = embedder.embed([question.question for question in swept.questions])
    return training_input(
        swept.trials,
        swept.labels,
        swept.questions,
        vectors,
        swept.parts,
        rerankers=[reranker.name for reranker in parts.config.rerankers],
        embedding=Embedding(embedder.name, embedder.revision, embedder.dimension),
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
def register_agent(parts: Components, result: TrainingResult) -> str:
    """Log the run, register its bundle as a version, and say what came of it."""
    import yaml

    tracking = connect(parts.config.tracking)
    config_yaml = yaml.safe_dump(parts.config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    run_id = log_training_run(tracking, result, parts.config.agent, config_yaml=config_yaml, name="train")
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
