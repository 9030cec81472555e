"""The command line: one command a flow. Heavy imports happen inside the commands, so that `--help` is instant."""

from pathlib import Path
from typing import Annotated

import typer

from flows.outcome import outcome

app = typer.Typer(
    name="corag",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Retrieval-augmented generation under a token budget: ingest, sweep, train, promote, answer.",
)

ConfigFile = Annotated[
    Path | None, typer.Option("-c", "--config", help="Configuration file (default: configs/default.yaml).")
]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="Override a key: section.key=value. Repeatable.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks and what the libraries log.")]
Questions = Annotated[Path | None, typer.Option("--questions", help="Questions: .jsonl, .csv or .parquet.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Take only the first N questions.")]


@app.command()
def run(config: ConfigFile = None, overrides: Overrides = None, debug: Debug = False) -> None:
    """Do the whole main job: ingest, sweep, train, promote, answer, report."""
    with outcome("run", config, overrides, debug) as call:
        from flows.pipeline import run_flow

        typer.echo(run_flow(*call))


@app.command()
def ingest(
    paths: Annotated[list[str] | None, typer.Argument(help="Files or folders; default: corpus.paths.")] = None,
    config: ConfigFile = None,
    prune: Annotated[bool, typer.Option("--prune", help="Remove documents that are no longer there.")] = False,
    overrides: Overrides = None,
    debug: Debug = False,
) -> None:
    """Read, chunk, embed and index the corpus; only what changed costs anything."""
    with outcome("ingest", config, overrides, debug) as call:
        from flows.ingest import ingest_flow

        absolute = [path if "://" in path or path == "sample" else str(Path(path).absolute()) for path in paths or ()]
        typer.echo(ingest_flow(*call, paths=absolute, prune=prune))


@app.command()
def sweep(
    config: ConfigFile = None,
    questions: Questions = None,
    limit: Limit = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the planned work and do nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Label even without headroom.")] = False,
    overrides: Overrides = None,
    debug: Debug = False,
) -> None:
    """Try every configuration on the training questions and label each with its best one."""
    with outcome("sweep", config, overrides, debug) as call:
        from flows.sweep import plan_sweep, sweep_flow

        where = str(questions.absolute()) if questions else None
        if dry_run:
            typer.echo(plan_sweep(*call, questions=where, limit=limit))
        else:
            typer.echo(sweep_flow(*call, questions=where, limit=limit, force=force))


@app.command()
def train(config: ConfigFile = None, overrides: Overrides = None, debug: Debug = False) -> None:
    """Train the configuration agent on the labels, log it and register a version."""
    with outcome("train", config, overrides, debug) as call:
        from flows.train import train_flow

        typer.echo(train_flow(*call))


@app.command()
def promote(
    config: ConfigFile = None,
    version: Annotated[int | None, typer.Option("--version", min=1, help="Default: the newest version.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Promote whatever the gate says; it is recorded.")] = False,
    overrides: Overrides = None,
    debug: Debug = False,
) -> None:
    """Gate a version against the champion and, if it is better, move the alias."""
    with outcome("promote", config, overrides, debug) as call:
        from flows.promote import promote_flow

        typer.echo(promote_flow(*call, version=version, force=force))


@app.command()
def rollback(config: ConfigFile = None, overrides: Overrides = None, debug: Debug = False) -> None:
    """Give the alias back to the previous champion."""
    with outcome("rollback", config, overrides, debug) as call:
        from flows.promote import rollback_flow

        typer.echo(rollback_flow(*call))


@app.command()
def answer(
    questions: Annotated[Path, typer.Option("--questions", help="Questions: .jsonl, .csv or .parquet.")],
    out: Annotated[Path, typer.Option("--out", help="Answers: .jsonl or .parquet.")],
    config: ConfigFile = None,
    budget: Annotated[int | None, typer.Option("--budget", min=1, help="Most context tokens a question.")] = None,
    limit: Limit = None,
    overrides: Overrides = None,
    debug: Debug = False,
) -> None:
    """Answer a batch of questions; an interrupted run resumes where it stopped."""
    extra = [f"search.budget={budget}"] if budget else []
    with outcome("answer", config, [*(overrides or ()), *extra], debug) as call:
        from flows.answer import answer_flow

        source = "sample" if str(questions) == "sample" else str(questions.absolute())
        typer.echo(answer_flow(*call, questions=source, out=str(out.absolute()), limit=limit))


@app.command()
def evaluate(
    questions: Annotated[Path, typer.Option("--questions", help="Questions with reference answers.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the tables.")],
    config: ConfigFile = None,
    methods: Annotated[str | None, typer.Option("--methods", help="Comma-separated; default: all of them.")] = None,
    ablations: Annotated[
        str | None, typer.Option("--ablations", help="Comma-separated, or `all`: vary one setting at a time.")
    ] = None,
    limit: Limit = None,
    overrides: Overrides = None,
    debug: Debug = False,
) -> None:
    """Compare methods on the same questions, corpus, generator and budget."""
    with outcome("evaluate", config, overrides, debug) as call:
        from corag.ablations import named
        from corag.evaluation_methods import METHODS
        from flows.report import evaluate_flow

        typer.echo(
            evaluate_flow(
                *call,
                questions="sample" if str(questions) == "sample" else str(questions.absolute()),
                out=str(out.absolute()),
                methods=[name.strip() for name in methods.split(",")] if methods else list(METHODS),
                ablations=named(ablations),
                limit=limit,
            )
        )


@app.command()
def convert(
    layout: Annotated[str, typer.Argument(help="wikipassageqa, msmarco, squad, hotpotqa, musique or beir.")],
    source: Annotated[Path, typer.Argument(help="The data set's file or folder.")],
    out: Annotated[Path, typer.Argument(help="Folder for corpus.jsonl and questions.jsonl.")],
    config: ConfigFile = None,
    overrides: Overrides = None,
    debug: Debug = False,
) -> None:
    """Turn a public data set in its own layout into a corpus and questions."""
    with outcome("convert", config, overrides, debug):
        from flows.convert import convert_layout

        typer.echo(convert_layout(layout, source.absolute(), out.absolute()))


@app.command()
def explain(
    question: Annotated[str, typer.Argument(help="The question.")],
    config: ConfigFile = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write a page (.html) or text instead.")] = None,
    overrides: Overrides = None,
    debug: Debug = False,
) -> None:
    """Show one question: the candidates, the policy tree, why this order, the prompt and the answer."""
    with outcome("explain", config, overrides, debug) as call:
        from flows.explain import explain_question

        typer.echo(explain_question(*call, question=question, out=out))


@app.command()
def serve(config: ConfigFile = None, overrides: Overrides = None, debug: Debug = False) -> None:
    """Register the nightly and weekly schedules with Prefect and serve them until stopped."""
    with outcome("serve", config, overrides, debug) as call:
        from flows.schedule import serve_schedules

        serve_schedules(*call)


@app.command()
def doctor(config: ConfigFile = None, overrides: Overrides = None, debug: Debug = False) -> None:
    """Check models, store, tracking and generator; say what is missing and how to mend it."""
    with outcome("doctor", config, overrides, debug) as call:
        from flows.doctor import examine

        examine(*call, tell=typer.echo)


if __name__ == "__main__":
    app()
