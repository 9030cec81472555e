"""What several test modules share: the converted model, one Prefect server, a small corpus, and the command line."""

import contextlib
import copy
import io
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import absl.logging
import hypothesis
import pytest
import yaml

# The logging that rouge-score brings closes its stream when Prefect sets up its own; under pytest that would be the
# captured standard error of the whole session.
absl.logging.get_absl_handler().python_handler.setStream(sys.__stderr__)

# A busy machine must not fail a property.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

REPO = Path(__file__).parent.parent

# Converted once for all test runs, as it takes half a minute.
MODELS = REPO / "workspace" / "models"
MODELS.mkdir(parents=True, exist_ok=True)

TOWNS = {
    "arlen": ("The mill of Arlen was built in 1702 by Sefa Dorn.", "The mill grinds rye for eleven bakers."),
    "brock": ("The bridge of Brock is 312 metres long.", "It was paid for with the salt tax of Brock."),
    "corvo": ("The library of Corvo holds nine thousand maps.", "Its oldest map shows the river Mord."),
    "dunmar": ("The market of Dunmar opens at five in the morning.", "Cheese is sold there under a blue awning."),
    "eskel": ("The bell of Eskel weighs 840 kilograms.", "It was cast by the founder Tilda Rusk."),
    "farrow": ("The school of Farrow teaches sailing and algebra.", "Its boats are painted yellow."),
}
QUESTIONS = {
    "arlen": "Who built the mill of Arlen?",
    "brock": "How long is the bridge of Brock?",
    "corvo": "How many maps does the library of Corvo hold?",
    "dunmar": "When does the market of Dunmar open?",
    "eskel": "How much does the bell of Eskel weigh?",
    "farrow": "What does the school of Farrow teach?",
}


@pytest.fixture(scope="session")
def smollm2_folder():
    """The packaged language model as safetensors."""
    from corag.generators.convert import converted_smollm2

    return converted_smollm2(MODELS)


@pytest.fixture(scope="session")
def prefect_server():
    """One Prefect server for the whole test run."""
    import os

    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
        yield


def question_rows(part):
    """Question records about the towns; the held-out part asks the same of three of them in other words."""
    rows = []
    for town, question in QUESTIONS.items():
        if part == "held_out" and town not in ("arlen", "brock", "eskel"):
            continue
        text = question if part == "train" else f"Please tell me: {question[0].lower()}{question[1:]}"
        rows.append(
            {
                "qid": f"{part}-{town}",
                "question": text,
                "answers": [TOWNS[town][0]],
                "relevant_ids": [f"{town}.md"],
                "kind": "one_fact",
            }
        )
    return rows


def write_rows(path, rows):
    """Write records as JSON lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self):
        """Both streams, for the message of a failed test."""
        return self.stdout + self.stderr


class Project:
    """A user's folder: documents, questions, a configuration, and the command line run in this process."""

    def __init__(self, root, model):
        self.root = root
        self.config = root / "corag.yaml"
        docs = root / "docs"
        docs.mkdir()
        for town, sentences in TOWNS.items():
            filler = f"The town of {town.title()} lies on a hill. Its people like music and long walks."
            (docs / f"{town}.md").write_text(f"# {town.title()}\n\n{sentences[0]} {sentences[1]}\n\n{filler}\n")
        write_rows(root / "train.jsonl", question_rows("train"))
        write_rows(root / "held-out.jsonl", question_rows("held_out"))
        settings = {
            "workspace": "ws",
            "corpus": {"paths": ["docs"]},
            "questions": {"train": "train.jsonl", "held_out": "held-out.jsonl"},
            "chunking": {"chunk_tokens": 24},
            "retrieval": {"top_k": 4},
            "search": {"budget": 60},
            "generator": {"model": str(model), "max_answer_tokens": 8},
            "sweep": {
                "iterations": [2, 5],
                "cost_coefficients": [0.0, 0.3],
                "exploration_coefficients": [2.4],
                "headroom_sample": 2,
                "min_headroom": -1.0,
            },
            "agent": {"epochs": 3, "min_labels": 2},
            "tracking": {"uri": "sqlite:///mlruns/mlflow.db", "artifacts": "mlruns/artifacts"},
        }
        self.config.write_text(yaml.safe_dump(settings), encoding="utf-8")

    def run(self, *arguments):
        """Run one command with this project's configuration; its exit code, stdout and stderr."""
        from flows.cli import app

        command, *rest = (str(argument) for argument in arguments)
        # Not typer's runner: it closes its streams, and what a library logs to them later would fail.
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                app([command, "-c", str(self.config), *rest])
                code = 0
            except SystemExit as ended:
                code = ended.code
        return Ended(int(code or 0), out.getvalue(), err.getvalue())

    def copied(self, folder):
        """The same project in a folder of its own, for a test that changes what was swept or answered."""
        twin = copy.copy(self)
        twin.root = shutil.copytree(self.root, folder)
        twin.config = twin.root / self.config.name
        return twin

    def rows(self, name):
        """The records of a JSON lines file of the project."""
        return [json.loads(line) for line in (self.root / name).read_text(encoding="utf-8").split("\n") if line]


@pytest.fixture
def project(tmp_path, smollm2_folder, monkeypatch):
    """A fresh project of the test's own."""
    monkeypatch.delenv("CORAG_WORKSPACE", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return Project(tmp_path, smollm2_folder)


@pytest.fixture(scope="session")
def finished(tmp_path_factory, smollm2_folder, prefect_server):
    """A project on which `corag run` was done once, with what it printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CORAG_WORKSPACE", raising=False)
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        done = Project(tmp_path_factory.mktemp("finished"), smollm2_folder)
        done.result = done.run("run")
    return done
