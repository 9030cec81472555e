"""Commands as processes of their own: a home without any Prefect state, and two at once."""

import os
import subprocess
import sys

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
