"""What the search and the agent are worth in answers: methods compared on held-out questions, and why they differ.

    python -m benchmarks.quality [-c CONFIG] [--set KEY=VALUE] [--data DIR] [--questions N] [--train N]
                                 [--workspace DIR]

Of the sample the English questions are taken: in the other languages the embedded model has no headroom. The agent
learns from N training questions, which are swept into a workspace of the benchmark's own; all methods then answer the
same held-out questions. The workspace is kept, so that a second run makes no model call. `--data` takes a folder with
corpus.jsonl and questions.jsonl; with the embedded model add `--set sweep.references=generated`.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import emit
from benchmarks.real_parts import link_models
from corag.agents import Agent, FixedAgent
from corag.attribution import PARTS, Attribution, attribute, attribution_table
from corag.components import Components
from corag.config import load_config
from corag.errors import CoragError, HeadroomError, LabelError
from corag.evaluation import ask, evaluate
from corag.evaluation_methods import AGENT, FIXED, NAIVE, UPPER
from corag.evaluation_summary import MethodSummary, summarise, summary_table
from corag.questions import SAMPLE_QUESTIONS
from corag.settings import SAMPLE
from corag.values import Question

AIM = 0.30
"""By how much the agent is to beat `naive`, as the paper claims."""

Call = tuple[str | None, list[str]]


def main() -> None:
    """Print the comparison, the parts of the gains, and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--config", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--train", type=int, default=48)
    parser.add_argument("--workspace", type=Path)
    arguments = parser.parse_args()
    name = arguments.data.name if arguments.data else SAMPLE
    base = load_config(arguments.config, arguments.overrides)
    workspace = arguments.workspace or Path(base.workspace).absolute() / "bench" / "quality" / name
    try:
        summaries, told = compared(arguments, workspace, base.seed)
    except CoragError as error:
        sys.exit(f"{name}: {error}")
    print(f"\n{summary_table(summaries)}\n\n{attribution_table(told)}\n", flush=True)
    emit_figures({one.method: one for one in summaries}, told)


def compared(
    arguments: argparse.Namespace, workspace: Path, seed: int
) -> tuple[list[MethodSummary], list[Attribution]]:
    """The methods on the held-out questions, and their gains in parts; without an agent where none can be trained."""
    from flows.ingest import ingest_flow
    from flows.report_parts import evaluation_parts
    from flows.runtime import open_components, set_up_logging, set_up_prefect

    train, held_out = question_files(arguments, workspace, seed)
    corpus = str(arguments.data / "corpus.jsonl") if arguments.data else SAMPLE
    own = [f"corpus.paths=[{corpus}]", f"questions.train={train}", f"questions.held_out={held_out}"]
    limits = ["questions.train_limit=null", "questions.held_out_limit=null"]
    config_file = str(arguments.config) if arguments.config else None
    call: Call = (config_file, [*own, *limits, *arguments.overrides, f"workspace={workspace}"])
    set_up_logging(debug=False)
    parts = open_components(*call, "evaluate")
    link_models(parts.workspace.root, Path(load_config(arguments.config, []).workspace).absolute() / "models")
    set_up_prefect(parts.workspace)
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    print(ingest_flow(*call), flush=True)
    agent = trained(parts, call)
    questions = with_references(parts, held_out)
    evaluation = evaluation_parts(parts, agent or FixedAgent(parts.fixed))
    methods = [NAIVE, FIXED, *([AGENT] if agent else []), UPPER]
    rows = evaluate(questions, methods, evaluation)
    return summarise(rows, seed), attribute(ask(questions, evaluation), methods, evaluation)


def trained(parts: Components, call: Call) -> Agent | None:
    """The agent that the training questions make; None, with the reason on stdout, where they make none."""
    from flows.sweep import sweep_flow
    from flows.train import load_training_input
    from training.train import train_agent

    try:
        print(sweep_flow(*call), flush=True)
        with tempfile.TemporaryDirectory() as work:
            return train_agent(
                load_training_input.fn(parts),
                parts.config.agent,
                configured=parts.fixed,
                seed=parts.config.seed,
                work=Path(work),
            ).agent
    except (HeadroomError, LabelError) as error:
        print(f"no agent: {error}", flush=True)
        return None


def with_references(parts: Components, held_out: Path) -> list[Question]:
    """The held-out questions with the configured kind of references."""
    from flows.questions import load_questions
    from flows.sweep import with_references as with_configured
    from flows.sweep_planning import relevant_chunks

    questions, _ = load_questions(str(held_out), parts.workspace, "held_out")
    return with_configured.fn(parts, questions, relevant_chunks(parts, questions))


def question_files(arguments: argparse.Namespace, workspace: Path, seed: int) -> tuple[Path, Path]:
    """Training and held-out questions as files of the workspace; those of a data set are drawn by the seed."""
    workspace.mkdir(parents=True, exist_ok=True)
    source = arguments.data / "questions.jsonl" if arguments.data else SAMPLE_QUESTIONS
    rows = [json.loads(line) for line in source.read_text(encoding="utf-8").split("\n") if line.strip()]
    if arguments.data:
        usable = [row for row in rows if row.get("answers")]
        random.Random(seed).shuffle(usable)
        sides = (usable[arguments.questions :], usable[: arguments.questions])
    else:
        english = [row for row in rows if row["language"] == "en"]
        sides = (
            [row for row in english if row["split"] == "train"],
            [row for row in english if row["split"] != "train"],
        )
    return (
        written(workspace / "train.jsonl", sides[0][: arguments.train]),
        written(workspace / "held-out.jsonl", sides[1][: arguments.questions]),
    )


def written(path: Path, rows: Sequence[dict[str, object]]) -> Path:
    """The file, with a record a line."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def emit_figures(methods: dict[str, MethodSummary], told: Sequence[Attribution]) -> None:
    """The figures; one that could not be measured is left out."""
    naive, agent = methods[NAIVE], methods.get(AGENT)
    n, aimed = naive.n_scored, (1 + AIM) * naive.rouge_l.mean
    emit("rouge_l_naive", naive.rouge_l.mean, naive.rouge_l.mean, "higher", n)
    emit("rouge_l_fixed", methods[FIXED].rouge_l.mean, aimed, "higher", n)
    emit("rouge_l_upper", methods[UPPER].rouge_l.mean, aimed, "higher", n)
    emit("tokens_naive", naive.context_tokens, naive.context_tokens, "lower", n)
    if agent is None:
        return
    emit("rouge_l_agent", agent.rouge_l.mean, aimed, "higher", n)
    if naive.rouge_l.mean:
        emit("rouge_l_gain", agent.rouge_l.mean / naive.rouge_l.mean - 1, AIM, "higher", n)
    emit("tokens_agent", agent.context_tokens, naive.context_tokens, "lower", n)
    for one in told:
        if one.method == AGENT and one.part in PARTS:
            emit(f"gain_from_{one.part}", one.gain.mean, 0.0, "higher", one.gain.n)


if __name__ == "__main__":
    main()
