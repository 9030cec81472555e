"""What the configuration agent is worth: cross-validated replay on recorded trials, and its time a question.

    python -m benchmarks.agent [-c CONFIG] [--set KEY=VALUE] [--data DIR] [--questions N] [--curve] [--workspace DIR]

The questions of the sample that have headroom (English) are swept once into a workspace of the benchmark's own, which
is kept, so that a second run makes no model call. Each question is then judged by an agent that was trained
without it. `--data` takes a folder with corpus.jsonl and questions.jsonl; with the embedded model add
`--set sweep.references=generated`. `--curve` adds the learning curve, `--objectives` compares training objectives.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import emit
from corag.config import load_config
from corag.errors import CoragError
from corag.questions import read_questions
from corag.settings import SAMPLE, AgentSettings
from corag.values import Configuration
from training.agent import TrainedAgent
from training.bundle import load_bundle
from training.cross_validation import cross_validate, learning_curve
from training.inputs import TrainingInput
from training.policies import AGENT, BEST_FIXED, ORACLE
from training.replay import Replay
from training.train import train_agent

TIMED_QUESTIONS = 256


def main() -> None:
    """Print the tables and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--config", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--questions", type=int)
    parser.add_argument("--workspace", type=Path)
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--objectives", nargs="*", choices=("paper", "expected-rouge"), default=[])
    arguments = parser.parse_args()
    name = arguments.data.name if arguments.data else SAMPLE
    base = load_config(arguments.config, arguments.overrides)
    workspace = arguments.workspace or Path(base.workspace).absolute() / "bench" / "agent" / name
    try:
        data, fixed, settings, seed = swept(arguments, workspace)
    except CoragError as error:
        sys.exit(f"{name}: {error}")
    with tempfile.TemporaryDirectory() as folder:
        judged = cross_validate(data, settings, configured=fixed, seed=seed, work=Path(folder))
        print_replay(judged)
        for objective in arguments.objectives:
            other = settings.model_copy(update={"objective": objective})
            row = cross_validate(data, other, configured=fixed, seed=seed, work=Path(folder)).row(AGENT)
            closed = "" if row is None or row.gap_closed is None else f"{row.gap_closed:.0%}"
            print(f"objective {objective}: {row.rouge_l if row else ''}, gap closed {closed}", flush=True)
        if arguments.curve:
            print_curve(data, settings, fixed, seed, Path(folder))
        milliseconds = time_choice(data, settings, fixed, seed, Path(folder))
    emit_figures(judged, milliseconds)


def swept(
    arguments: argparse.Namespace, workspace: Path
) -> tuple[TrainingInput, Configuration, AgentSettings, int]:
    """The sweep of the benchmark's questions, done if it is not there yet, with what training needs beside it."""
    from flows.ingest import ingest_flow
    from flows.runtime import open_components, set_up_logging, set_up_prefect
    from flows.sweep import sweep_flow
    from flows.train import load_training_input

    workspace.mkdir(parents=True, exist_ok=True)
    corpus = str(arguments.data / "corpus.jsonl") if arguments.data else SAMPLE
    source = str(arguments.data / "questions.jsonl") if arguments.data else str(english_sample(workspace))
    limit = "null" if arguments.questions is None else arguments.questions
    call = (
        str(arguments.config) if arguments.config else None,
        [
            f"corpus.paths=[{corpus}]",
            f"questions.train={source}",
            f"questions.train_limit={limit}",
            f"questions.held_out={empty_file(workspace)}",
            *arguments.overrides,
            f"workspace={workspace}",
        ],
    )
    set_up_logging(debug=False)
    parts = open_components(*call, "sweep")
    link_models(parts.workspace.root, Path(load_config(arguments.config, []).workspace).absolute() / "models")
    set_up_prefect(parts.workspace)
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    print(ingest_flow(*call))
    print(sweep_flow(*call))
    return load_training_input.fn(parts), parts.fixed, parts.config.agent, parts.config.seed
