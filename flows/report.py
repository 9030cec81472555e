"""Report: methods compared on the same questions."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from corag.attribution import (
    ATTRIBUTION_COLUMNS,
    Attribution,
    attributable,
    attribute,
    attribution_rows,
    attribution_table,
)
from corag.components import Components
from corag.errors import ConfigError, IncompleteError
from corag.evaluation import EvaluationParts, ask, evaluate_asked
from corag.evaluation_methods import DEFAULT_METHODS, METHODS, NAIVE, ORACLE, RAPTOR, Asked
from corag.evaluation_rows import Evaluated
from corag.evaluation_summary import latency_table, summarise, summary_table
from corag.evaluation_tables import (
    CASE_COLUMNS,
    METHOD_COLUMNS,
    RETRIEVAL_COLUMNS,
    case_rows,
    method_row,
    retrieval_rows,
    retrieval_table,
)
from corag.evaluation_timing import time_methods
from corag.progress import progress
from corag.report_page import draw_report
from flows.ablations import run_varied
from flows.answer import load_agent
from flows.questions import load_questions, rejected_note
from flows.report_files import Table, write_report
from flows.report_parts import evaluation_parts, forgetful_parts, raptor_contexts
from flows.report_run import log_report, notes_on, references_note, with_configured_references
from flows.runtime import open_components
from flows.sweep_record import sweep_applies


@flow(name="report")
def evaluate_flow(
    config_file: str | None,
    overrides: list[str],
    questions: str,
    out: str,
    methods: list[str] | None = None,
    ablations: list[str] | None = None,
    split: str | None = None,
    limit: int | None = None,
    thorough: bool = True,
) -> str:
    """Compare `methods` on the questions; the summary, which is also written to `out` with the tables and every row.

    `ablations` names settings that are varied one at a time (see `corag.ablations`), on the questions with a reference.
    `thorough` also times each stage and splits each gain over `naive`, which takes more calls of the models.

    Raises:
        IncompleteError: some questions failed or could not be read; the tables hold the others.
    """
    chosen = list(methods or DEFAULT_METHODS)
    unknown = [name for name in chosen if name not in METHODS]
    if unknown:
        raise ConfigError(f"--methods {','.join(unknown)}: not known; choose among {', '.join(METHODS)}")
    parts = open_components(config_file, overrides, "evaluate")
    questioned, rejected = load_questions(questions, parts.workspace, "evaluate", split, limit)
    agent = load_agent(parts)
    questioned = with_configured_references(parts, questioned)
    evaluation = evaluation_parts(parts, agent, questioned if ORACLE in chosen and sweep_applies(parts) else ())
    asked = ask(questioned, evaluation)
    if RAPTOR in chosen:
        evaluation = replace(evaluation, raptor=raptor_contexts(parts, asked.retrievals))
    rows = run_methods(parts, asked, chosen, evaluation, parts.config.evaluation.timed_questions if thorough else 0)
    told = run_attribution(asked, chosen, evaluation) if thorough and NAIVE in chosen else []
    summary, tables = compiled(parts, asked, rows, told, evaluation)
    notes = [references_note(parts, questioned), *notes_on(chosen, asked, agent.version, len(evaluation.oracle))]
    summary = "\n\n".join([summary, *notes])
    if ablations:
        tables["ablations"], told_more = run_varied(parts, questioned, agent, ablations)
        summary += told_more
    write_report(Path(out), summary, rows, tables)
    page = draw_report(Path(out))
    log_report(parts, Path(out), tables["methods"][1], summary, questioned)
    failed = [row for row in rows if row.error is not None]
    if failed or rejected:
        notes = [f"{row.qid} ({row.method}): {row.error}" for row in failed[:3]]
        notes.append(rejected_note(rejected, parts.workspace))
        raise IncompleteError(
            f"{len(failed)} answers failed and count as 0; tables in {out}; {'; '.join(note for note in notes if note)}"
        )
    return f"{summary}\n\nreport: {page}"


@task(cache_policy=NO_CACHE, persist_result=False)
def run_methods(
    parts: Components, asked: Asked, methods: Sequence[str], evaluation: EvaluationParts, timed: int
) -> list[Evaluated]:
    """Every question answered by every method; the first `timed` ones are asked again without memory, for the time."""
    first = list(asked.questions[:timed])
    latencies = {}
    if first:
        with progress("time", len(first) * len(methods)) as advance:
            latencies = time_methods(first, methods, lambda: forgetful_parts(parts, evaluation), advance)
    with progress("evaluate", len(asked.questions) * len(methods)) as advance:
        return evaluate_asked(asked, methods, evaluation, advance, latencies)


@task(cache_policy=NO_CACHE, persist_result=False)
def run_attribution(asked: Asked, methods: Sequence[str], evaluation: EvaluationParts) -> list[Attribution]:
    """Each method's gain over `naive` in parts."""
    with progress("attribute", len(asked.questions) * len(attributable(methods))) as advance:
        return attribute(asked, methods, evaluation, advance)


def compiled(
    parts: Components,
    asked: Asked,
    rows: Sequence[Evaluated],
    told: Sequence[Attribution],
    evaluation: EvaluationParts,
) -> tuple[str, dict[str, Table]]:
    """The summary as Markdown, and the tables by name."""
    summaries = summarise(rows, parts.config.seed)
    retrieval = retrieval_rows(asked, parts.config.retrieval.top_k, evaluation.copies)
    references = {question.qid: question.answers for question in asked.questions}
    texts = {chunk.chunk_id: chunk.text for chunk in parts.chunks}
    summary = [summary_table(summaries), "\\* the interval of the gain over naive leaves 0 out."]
    summary += [attribution_table(told), latency_table(summaries, parts.config.evaluation.timed_questions)]
    summary.append(retrieval_table(retrieval))
    tables: dict[str, Table] = {
        "methods": (METHOD_COLUMNS, [method_row(one) for one in summaries]),
        "attribution": (ATTRIBUTION_COLUMNS, attribution_rows(told)),
        "retrieval": (RETRIEVAL_COLUMNS, retrieval),
        "cases": (CASE_COLUMNS, case_rows(rows, references, texts)),
    }
    return "\n\n".join(part for part in summary if part), tables
