"""What the configuration agent is worth: cross-validated replay on recorded trials, and its time a question.

    python -m benchmarks.agent [-c CONFIG] [--set KEY=VALUE] [--data DIR ...] [--questions N] [--curve]
                               [--objectives NAME ...] [--workspace DIR]

The questions of the sample that have headroom (English) are swept once into a workspace of the benchmark's own, which
is kept, so that a second run makes no model call. Each question is then judged by an agent that was trained
without it. `--data` takes folders with corpus.jsonl and questions.jsonl, and pools at most N questions of each, drawn
by the seed; with the embedded model add `--set sweep.references=generated`. `--curve` adds the learning curve,
`--objectives` compares training objectives.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data_sets import corpus_paths, english_sample, pooled, written
from benchmarks.figures import emit
from benchmarks.real_parts import Call, open_bench
from corag.config import load_config
from corag.errors import CoragError
from corag.settings import SAMPLE, AgentSettings
from corag.values import Configuration
from training.cross_validation import cross_validate, learning_curve, rearranged
from training.inputs import TrainingInput
from training.policies import AGENT, BEST_FIXED, ORACLE
from training.replay import Replay
from training.train import train_agent

TIMED_QUESTIONS = 256


@dataclass(frozen=True)
class Case:
    """A sweep, and what training needs beside it."""

    data: TrainingInput
    fixed: Configuration
    settings: AgentSettings
    seed: int


def main() -> None:
    """Print the tables and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--config", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--data", type=Path, nargs="+", default=[])
    parser.add_argument("--questions", type=int)
    parser.add_argument("--workspace", type=Path)
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--objectives", nargs="*", choices=("paper", "expected-rouge"), default=[])
    arguments = parser.parse_args()
    name = "+".join(folder.name for folder in arguments.data) or SAMPLE
    base = load_config(arguments.config, arguments.overrides)
    workspace = (arguments.workspace or Path(base.workspace) / "bench" / "agent" / name).absolute()
    try:
        case = swept(arguments, workspace, base.seed)
    except CoragError as error:
        sys.exit(f"{name}: {error}")
    with tempfile.TemporaryDirectory() as folder:
        judged = judge(case, Path(folder))
        print_replay(judged)
        print_objectives(case, arguments.objectives, Path(folder))
        if arguments.curve:
            print_curve(case, Path(folder))
        milliseconds = time_choice(case, Path(folder))
    emit_figures(judged, milliseconds)


def swept(arguments: argparse.Namespace, workspace: Path, seed: int) -> Case:
    """The sweep of the benchmark's questions, done if it is not there yet, with what training needs beside it."""
    from flows.ingest import ingest_flow
    from flows.sweep import sweep_flow
    from flows.train import load_training_input

    # Both parts of the sample are taken: cross-validation holds every question back once.
    rows = pooled(arguments.data, arguments.questions, seed) if arguments.data else english_sample()
    own = {
        "workspace": workspace,
        "corpus.paths": corpus_paths(arguments.data),
        "questions.train": written(workspace / "questions.jsonl", rows),
        "questions.train_limit": "null",
        # A sweep wants a held-out part; the folds judge every question.
        "questions.held_out": written(workspace / "held-out.jsonl", rows[:1]),
    }
    call: Call = (
        str(arguments.config) if arguments.config else None,
        [*arguments.overrides, *(f"{key}={value}" for key, value in own.items())],
    )
    parts = open_bench(call, "sweep")
    print(ingest_flow(*call), flush=True)
    print(sweep_flow(*call), flush=True)
    return Case(load_training_input.fn(parts), parts.fixed, parts.config.agent, parts.config.seed)


def judge(case: Case, work: Path, objective: str | None = None) -> Replay:
    """The cross-validated replay, with the configured training objective or another one."""
    settings = case.settings
    if objective is not None:
        settings = settings.model_copy(update={"objective": objective})
    return cross_validate(case.data, settings, configured=case.fixed, seed=case.seed, work=work)


def print_replay(judged: Replay) -> None:
    """The comparison of all policies, then the slices of the agent beside the best fixed configuration."""
    print(f"\ncross-validated over {len(judged.qids)} questions, mean [95 % bootstrap interval]\n")
    print(
        "| policy | ROUGE-L | context tokens | regret | gain over best fixed | gap closed |\n|---|---|---|---|---|---|"
    )
    for row in judged.rows:
        closed = "" if row.gap_closed is None else f"{row.gap_closed:.0%}"
        print(f"| {row.method} | {row.rouge_l} | {row.tokens:.0f} | {row.regret:.3f} | {row.gain} | {closed} |")
    print("\n| slice | questions | agent | best fixed | oracle |\n|---|---|---|---|---|")
    cells = {(row.slice, row.method): row for row in judged.slices}
    for name in dict.fromkeys(row.slice for row in judged.slices):
        means = " | ".join(f"{cells[name, method].rouge_l:.3f}" for method in (AGENT, BEST_FIXED, ORACLE))
        print(f"| {name} | {cells[name, AGENT].n} | {means} |")
    sys.stdout.flush()


def print_objectives(case: Case, objectives: Sequence[str], work: Path) -> None:
    """One line for each training objective."""
    if objectives:
        print("\n| objective | ROUGE-L | context tokens | gain over best fixed | gap closed |\n|---|---|---|---|---|")
    for objective in objectives:
        row = judge(case, work, objective=objective).row(AGENT)
        if row is not None:
            closed = "" if row.gap_closed is None else f"{row.gap_closed:.0%}"
            print(f"| {objective} | {row.rouge_l} | {row.tokens:.0f} | {row.gain} | {closed} |", flush=True)


def print_curve(case: Case, work: Path) -> None:
    """The agent by the number of questions that it learns from."""
    print("\n| share of the questions | labels learnt from | ROUGE-L | gap closed |\n|---|---|---|---|")
    for point in learning_curve(case.data, case.settings, configured=case.fixed, seed=case.seed, work=work):
        closed = "" if point.gap_closed is None else f"{point.gap_closed:.0%}"
        print(f"| {point.share:.0%} | {point.labels:.0f} | {point.rouge_l:.3f} | {closed} |", flush=True)


def time_choice(case: Case, work: Path) -> float:
    """Milliseconds a question for the choices of an agent trained on all questions, the embedding left out."""
    everything = rearranged(case.data, range(len(case.data.questions)), [])
    agent = train_agent(everything, case.settings, configured=case.fixed, seed=case.seed, work=work).agent
    vectors = np.resize(case.data.vectors, (TIMED_QUESTIONS, case.data.vectors.shape[1]))
    agent.choose(vectors)
    start = time.perf_counter()
    agent.choose(vectors)
    return 1000 * (time.perf_counter() - start) / TIMED_QUESTIONS


def emit_figures(judged: Replay, milliseconds: float) -> None:
    """The figures; one that could not be measured is left out."""
    rows = {name: judged.row(name) for name in (AGENT, BEST_FIXED, ORACLE)}
    agent, best, oracle = rows[AGENT], rows[BEST_FIXED], rows[ORACLE]
    n = len(judged.qids)
    if agent is not None and best is not None and oracle is not None:
        aim = best.rouge_l.mean + 0.5 * (oracle.rouge_l.mean - best.rouge_l.mean)
        emit("agent_rouge_l", agent.rouge_l.mean, aim, "higher", n)
        emit("best_fixed_rouge_l", best.rouge_l.mean, best.rouge_l.mean, "higher", n)
        emit("oracle_rouge_l", oracle.rouge_l.mean, oracle.rouge_l.mean, "higher", n)
        if agent.gap_closed is not None:
            emit("agent_gap_closed", agent.gap_closed, 0.5, "higher", n)
    emit("agent_ms_per_question", milliseconds, 2, "lower", TIMED_QUESTIONS)


if __name__ == "__main__":
    main()
