"""Report: methods compared on the same questions."""

from dataclasses import asdict
from pathlib import Path

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from corag.agents import Agent
from corag.components import Components
from corag.errors import ConfigError, IncompleteError
from corag.evaluation import (
    AGENT,
    DEFAULT_METHODS,
    STRATEGIES,
    Evaluated,
    EvaluationParts,
    evaluate,
    summarise,
    summary_table,
)
from corag.progress import progress
from corag.retrieval import retrieve
from corag.selection import select
from corag.values import Question
from flows.answer import load_agent
from flows.questions import load_questions, rejected_note
from flows.runtime import open_components


@flow(name="report")
def evaluate_flow(
    config_file: str | None,
    overrides: list[str],
    questions: str,
    out: str,
    methods: list[str] | None = None,
    split: str | None = None,
    limit: int | None = None,
) -> str:
    """Compare `methods` on the questions; the table, which is also written to `out` with a row per answer.

    Raises:
        IncompleteError: some questions failed or could not be read; the tables hold the others.
    """
    chosen = methods or list(DEFAULT_METHODS)
    unknown = [name for name in chosen if name not in STRATEGIES]
    if unknown:
        raise ConfigError(f"--methods {','.join(unknown)}: not known; choose among {', '.join(STRATEGIES)}")
    parts = open_components(config_file, overrides, "evaluate")
    asked, rejected = load_questions(questions, parts.workspace, "evaluate", split, limit)
    agent = load_agent(parts)
    rows = run_methods(parts, asked, chosen, agent)
    table = summary_table(summarise(rows, parts.config.seed))
    if AGENT in chosen and agent.version is None:
        table += f"\n\n({AGENT} took the fixed configuration: no agent has been promoted)"
    write_tables(Path(out), rows, table)
    failed = [row for row in rows if row.error is not None]
    if failed or rejected:
        notes = [f"{row.qid} ({row.method}): {row.error}" for row in failed[:3]]
        notes.append(rejected_note(rejected, parts.workspace))
        raise IncompleteError(
            f"{len(failed)} answers failed and count as 0; tables in {out}; {'; '.join(note for note in notes if note)}"
        )
    return f"{table}\n\ntables: {out}"


@task(cache_policy=NO_CACHE, persist_result=False)
def run_methods(parts: Components, questions: list[Question], methods: list[str], agent: Agent) -> list[Evaluated]:
    """Every question answered by every method."""
    config = parts.config
    evaluation = EvaluationParts(
        retrieve=lambda batch: retrieve(parts.store, parts.embedder, batch, config.retrieval, agent.candidate_mean),
        search=lambda selections: select(selections, parts.scorers(), config.search, config.seed),
        generations=parts.generations,
        agent=agent,
        fixed=parts.fixed,
        prompt=config.prompt,
        metrics=config.metrics,
    )
    with progress("evaluate", len(questions) * len(methods)) as advance:
        return evaluate(questions, methods, evaluation, advance)


def write_tables(out: Path, rows: list[Evaluated], table: str) -> None:
    """`summary.md` and `results.parquet` (one row a question and method) in the folder `out`."""
    import pandas as pd

    out.mkdir(parents=True, exist_ok=True)
    (out / "summary.md").write_text(f"# Methods compared\n\n{table}\n", encoding="utf-8")
    pd.DataFrame([{**asdict(row), "chunk_ids": list(row.chunk_ids)} for row in rows]).to_parquet(
        out / "results.parquet", index=False
    )
