"""Commands as processes of their own: a home without any Prefect state, and two at once."""

import json
import os
import sqlite3
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow


def start(project, home, *arguments):
    """A command as a user would start it, with nothing set up in `home`."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "CORAG_", "MLFLOW_"))
    }
    command, *rest = (str(argument) for argument in arguments)
    return subprocess.Popen(
        [sys.executable, "-m", "flows.cli", command, "-c", str(project.config), *rest],
        env=environment | {"HOME": str(home)},
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_commands_at_once_work_in_an_empty_home(project, tmp_path):
    """SCH-07: no server, no profile: both end well, quietly, and leave their state in the workspace only."""
    home = tmp_path / "home"
    home.mkdir()
    running = [start(project, home, "ingest") for _ in range(2)]
    for process in running:
        out, err = process.communicate(timeout=400)
        assert process.returncode == 0, err
        assert "6 documents" in out
        assert "Traceback" not in err
        assert "Warning" not in err
    assert (project.root / "ws" / "prefect").is_dir()
    assert not (home / ".prefect").exists()


def test_a_killed_answer_run_is_resumed_without_loss_or_double(project, tmp_path):
    """SIGKILL in the middle: run again, every question stands once, and finished ones are not answered again."""
    questions = project.root / "many.jsonl"
    towns = ["arlen", "brock", "corvo", "dunmar", "eskel", "farrow"]
    rows = [
        {"qid": f"{town}-{number}", "question": f"What is said of {town} ({number})?"}
        for town in towns
        for number in range(3)
    ]
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    home = tmp_path / "home"
    home.mkdir()
    ingest = start(project, home, "ingest")
    assert ingest.wait(timeout=300) == 0
    arguments = (
        "answer",
        "--questions",
        questions,
        "--out",
        project.root / "out.jsonl",
        "--set",
        "answer.batch_questions=2",
    )
    first = start(project, home, *arguments)
    runs = project.root / "ws" / "runs"
    finished = 0
    deadline = time.monotonic() + 300
    while finished < 4 and time.monotonic() < deadline and first.poll() is None:
        time.sleep(0.2)
        for path in runs.glob("*.sqlite") if runs.exists() else ():
            try:
                with sqlite3.connect(path) as connection:
                    finished = connection.execute("SELECT count(*) FROM rows").fetchone()[0]
            except sqlite3.OperationalError:
                continue
    first.kill()
    first.wait()
    assert not (project.root / "out.jsonl").exists() or first.returncode == 0
    second = start(project, home, *arguments)
    _out, err = second.communicate(timeout=400)
    assert second.returncode == 0, err
    assert [row["qid"] for row in project.rows("out.jsonl")] == [row["qid"] for row in rows]
