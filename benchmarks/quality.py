"""What the search and the agent are worth in answers: every method on held-out questions, and why they differ.

    python -m benchmarks.quality [-c CONFIG] [--set KEY=VALUE] [--data DIR] [--questions N] [--train N]
                                 [--ablations NAMES] [--workspace DIR]

N training questions are swept and an agent learns from them; it is promoted whatever the gate says, so that its worth
is measured; then all methods answer the same N held-out questions. Everything is kept in a workspace of the
benchmark's own: a second run makes no model call, and its folder `report` holds the report of `corag evaluate`.

Of the sample the English questions are taken: in the other languages the embedded model has no headroom. `--data`
takes a folder with corpus.jsonl and questions.jsonl; with the embedded model add `--set sweep.references=generated`.
"""

import argparse
import csv
import os
import sys
from pathlib import Path

from benchmarks.data_sets import corpus_paths, drawn, english_sample, written
from benchmarks.figures import emit
from benchmarks.real_parts import Call, open_bench
from corag.ablations import named
from corag.attribution import PARTS
from corag.components import Components
from corag.config import load_config
from corag.errors import CoragError, HeadroomError, IncompleteError, LabelError
from corag.evaluation_methods import AGENT, FIXED, METHODS, NAIVE
from corag.settings import SAMPLE

AIM_GAIN = 0.30
"""By how much the agent is to beat `naive` at no more tokens, as the paper claims …"""

AIM_TOKENS = 1 / 3
"""… or with which share of its tokens it is to equal it."""

Row = dict[str, str]


def main() -> None:
    """Print what each stage found, the comparison, and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--config", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument("--train", type=int, default=64)
    parser.add_argument("--ablations", help="`all`, or names separated by commas")
    parser.add_argument("--workspace", type=Path)
    arguments = parser.parse_args()
    name = arguments.data.name if arguments.data else SAMPLE
    base = load_config(arguments.config, arguments.overrides)
    workspace = (arguments.workspace or Path(base.workspace) / "bench" / "quality" / name).absolute()
    try:
        trained, report = compared(arguments, workspace, base.seed)
    except CoragError as error:
        sys.exit(f"{name}: {error}")
    emit_figures(table(report, "methods"), table(report, "attribution"), trained)


def compared(arguments: argparse.Namespace, workspace: Path, seed: int) -> tuple[bool, Path]:
    """Whether an agent could be trained, and the folder of the report on the held-out questions."""
    from flows.ingest import ingest_flow
    from flows.report import evaluate_flow

    # The benchmark's agents must not reach a registry that others use.
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    train, held_out = question_files(arguments, workspace, seed)
    own = {
        "workspace": workspace,
        "tracking.uri": f"sqlite:///{workspace}/mlflow.db",
        "tracking.artifacts": workspace / "mlruns",
        "corpus.paths": corpus_paths([arguments.data] if arguments.data else []),
        "questions.train": train,
        "questions.held_out": held_out,
        "questions.train_limit": "null",
        "questions.held_out_limit": "null",
    }
    call: Call = (
        str(arguments.config) if arguments.config else None,
        [*arguments.overrides, *(f"{key}={value}" for key, value in own.items())],
    )
    parts = open_bench(call, "evaluate")
    print(ingest_flow(*call), flush=True)
    trained = train_and_promote(parts, call)
    report = workspace / "report"
    try:
        told = evaluate_flow(
            *call, str(held_out), str(report), methods=list(METHODS), ablations=named(arguments.ablations)
        )
    except IncompleteError as error:
        told = f"{(report / 'summary.md').read_text(encoding='utf-8')}\n{error}"
    print(f"\n{told}\n", flush=True)
    return trained, report


def train_and_promote(parts: Components, call: Call) -> bool:
    """Whether the training questions make an agent; where they make none, the reason is printed."""
    from flows.promote import promote_flow
    from flows.sweep import sweep_flow
    from flows.train import train_flow
    from training.registry import connect, load_champion

    try:
        print(sweep_flow(*call), flush=True)
        print(train_flow(*call), flush=True)
        print(promote_flow(*call), flush=True)
    except (HeadroomError, LabelError) as error:
        print(f"no agent: {error}", flush=True)
        return False
    settings = parts.config
    tracking = connect(settings.tracking)
    champion = load_champion(tracking, settings.agent.model_name, settings.promotion.alias, fixed=parts.fixed)
    if champion is None:
        print(promote_flow(*call, force=True), flush=True)
    return True


def question_files(arguments: argparse.Namespace, workspace: Path, seed: int) -> tuple[Path, Path]:
    """Training and held-out questions as files of the workspace; those of a data set are drawn by the seed."""
    if arguments.data:
        rows = drawn(arguments.data, seed)
        train, held_out = rows[arguments.questions :], rows[: arguments.questions]
    else:
        rows = english_sample()
        train = [row for row in rows if row["split"] == "train"]
        held_out = [row for row in rows if row["split"] != "train"]
    return (
        written(workspace / "train.jsonl", train[: arguments.train]),
        written(workspace / "held-out.jsonl", held_out[: arguments.questions]),
    )


def table(report: Path, name: str) -> list[Row]:
    """The rows of a table of the report."""
    with (report / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def emit_figures(methods: list[Row], attribution: list[Row], trained: bool) -> None:
    """The figures of `naive` and of the best that corag can do here: the agent, or the fixed configuration without."""
    by_name = {row["method"]: row for row in methods}
    naive, best = by_name[NAIVE], AGENT if trained else FIXED
    n = int(naive["n_scored"])
    rouge, tokens = (float(naive[column]) for column in ("rouge_l", "context_tokens"))
    for row in methods:
        label = row["method"].replace("-", "_")
        emit(
            f"rouge_l_{label}", float(row["rouge_l"]), round((1 + AIM_GAIN) * rouge, 4), "higher", int(row["n_scored"])
        )
        emit(f"tokens_{label}", float(row["context_tokens"]), round(tokens, 1), "lower", int(row["n_total"]))
    if rouge:
        emit("gain_over_naive", float(by_name[best]["rouge_l"]) / rouge - 1, AIM_GAIN, "higher", n)
    if tokens:
        share = float(by_name[best]["context_tokens"]) / tokens
        emit("share_of_naive_tokens", share, round(AIM_TOKENS, 4), "lower", n)
    for row in attribution:
        if row["method"] == best and row["part"] in PARTS:
            emit(f"gain_from_{row['part']}", float(row["gain"]), 0.0, "higher", n)


if __name__ == "__main__":
    main()
