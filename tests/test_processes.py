"""Commands as processes of their own: a home without any Prefect state, and two at once."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def start(project, home, *arguments, **settings):
    """A command as a user would start it, with nothing set up in `home` but the environment's `settings`."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "CORAG_", "MLFLOW_"))
    }
    command, *rest = (str(argument) for argument in arguments)
    return subprocess.Popen(
        [sys.executable, "-m", "flows.cli", command, "-c", str(project.config), *rest],
        env=environment | {"HOME": str(home)} | settings,
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


def remembered(project, table):
    """How many results of a kind the project's memo has committed."""
    path = project.root / "ws" / "cache" / "memo.sqlite"
    if not path.exists():
        return 0
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)) as connection:
            return connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def test_a_sweep_killed_at_several_moments_ends_with_the_same_labels(project, finished, prefect_server):
    """SWP-03: killed while scoring, while generating and after that; the last run gives what an uninterrupted one does.

    What was committed is kept: no run goes back behind the one before.
    """
    from prefect.settings import PREFECT_API_URL

    server = {"PREFECT_API_URL": str(PREFECT_API_URL.value())}
    assert project.run("ingest").exit_code == 0
    kept = 0
    for table, count, delay in (
        ("scores", 1, 0.0),
        ("generations", 1, 0.0),
        ("generations", 7, 0.0),
        ("scores", 1, 9.0),
    ):
        process = start(project, project.root / "home", "sweep", **server)
        while process.poll() is None and remembered(project, table) < count:
            time.sleep(0.01)
        time.sleep(delay)
        process.kill()
        process.communicate()
        now = remembered(project, "scores") + remembered(project, "generations")
        assert now >= kept
        kept = now
    last = start(project, project.root / "home", "sweep", **server)
    out, err = last.communicate(timeout=300)
    assert last.returncode == 0, err
    assert "trials of 6 training" in out
    assert project.rows("ws/sweep/labels.jsonl") == finished.rows("ws/sweep/labels.jsonl")


def test_a_terminated_command_leaves_no_server_behind(project, tmp_path):
    """SIGTERM ends a command as Ctrl-C does: exit code 130, one line, and Prefect's embedded server ends with it."""
    process = start(project, tmp_path / "home", "ingest")
    deadline = time.monotonic() + 200
    while not servers_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    children = servers_of(process.pid)
    assert children
    process.terminate()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "run the same command again to resume" in err.splitlines()[-1]
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def servers_of(pid):
    """The process ids of the servers that a process has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if f"PPid:\t{pid}\n" in status.read_text() and b"uvicorn" in (status.parent / "cmdline").read_bytes():
                found.append(int(status.parent.name))
    return found
