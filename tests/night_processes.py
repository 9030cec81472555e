"""Commands as processes that share one Prefect server, and a project whose questions are answered by a server."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import yaml

from tests.conftest import QUESTIONS, REPO, Project, write_rows

COUNT = 300
WAITED_SECONDS = 240


def healthy(url):
    """Whether the server answers."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return response.status == 200
    except OSError:
        return False


def wait_for(condition, process=None, seconds=WAITED_SECONDS):
    """Wait until `condition()`; an end of `process` before is an error, and so is waiting too long."""
    end = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, "the process ended too early"
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


class Nightly(Project):
    """A project whose questions are answered by a server."""

    def __init__(self, root, model, environment):
        super().__init__(root, model)
        self.environment = environment
        self.questions = root / "questions.jsonl"
        towns = list(QUESTIONS.items())
        asked = [
            {"qid": f"n{number:03d}", "question": f"{towns[number % 6][1][:-1]}, asks visitor {number}?"}
            for number in range(COUNT)
        ]
        write_rows(self.questions, asked)
        self.qids = [one["qid"] for one in asked]
        (root / "docs" / "水車.md").write_text("アーレンの水車小屋は一七〇二年に建てられました。", encoding="utf-8")

    def configure(self, server, **generator):
        """Write the configuration for `server`."""
        settings = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        model = settings["generator"].get("tokenizer") or settings["generator"]["model"]
        settings["generator"] = {
            "kind": "openai",
            "model": "stand-in",
            "tokenizer": model,
            "base_url": server.base_url,
            "concurrency": 8,
            "timeout_seconds": 1.0,
            "max_retries": 8,
            "breaker_pause_seconds": 0.05,
            **generator,
        }
        settings["rerankers"] = [{"name": "static", "kind": "static"}]
        settings["answer"] = {"batch_questions": 8}
        self.config.write_text(yaml.safe_dump(settings), encoding="utf-8")

    def start(self, command, *arguments, **environment):
        """Start a command as a process, its stderr in a file."""
        with (self.root / "stderr.txt").open("ab") as told:
            return subprocess.Popen(
                [sys.executable, "-m", "flows.cli", command, "-c", str(self.config), *map(str, arguments)],
                env=self.environment | environment,
                cwd=self.root,
                stdout=subprocess.PIPE,
                stderr=told,
                start_new_session=True,
            )

    def answer(self, out, *arguments):
        """Start answering all questions into `out`."""
        return self.start("answer", "--questions", self.questions, "--out", self.root / out, *arguments)

    def told(self):
        """What all commands wrote to stderr."""
        return (self.root / "stderr.txt").read_text(encoding="utf-8")


def ended(process, code=0):
    """Wait for the end of a process that must end with `code`."""
    process.communicate(timeout=WAITED_SECONDS)
    assert process.returncode == code


def kill(process):
    """SIGKILL the process, nothing else."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def free_port():
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def prefect_processes(home):
    """The environment of commands that share one Prefect server: one a command would take most of the time."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "CORAG_", "MLFLOW_"))}
    environment = kept | {"HOME": str(home), "PREFECT_HOME": str(home), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}/api"
    try:
        wait_for(lambda: healthy(f"{url}/health"), server)
        yield environment | {"PREFECT_API_URL": url, "PYTHONPATH": str(REPO), "OMP_NUM_THREADS": "1"}
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
