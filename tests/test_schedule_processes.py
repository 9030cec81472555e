"""The schedules on a real Prefect server: served by `corag serve`, and deployed to a pool with a worker at `/`."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest
import yaml

from benchmarks.stand_in_server import StandInServer, serving
from tests.conftest import REPO
from tests.night_processes import WAITED_SECONDS, Nightly, ended, prefect_processes, wait_for

pytestmark = pytest.mark.slow

ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


@pytest.fixture(scope="module")
def prefect_api(tmp_path_factory):
    """The environment of commands that share one Prefect server; a night that failed is tried again soon."""
    with prefect_processes(tmp_path_factory.mktemp("prefect")) as environment:
        yield environment


@pytest.fixture
def night(tmp_path, smollm2_folder, prefect_api):
    """A project whose corpus is indexed, with schedules that are not due for long."""
    project = Nightly(tmp_path, smollm2_folder, prefect_api)
    with serving(StandInServer()) as server:
        project.configure(server)
        ended(project.start("ingest"))
    project.questions.write_text(
        "".join(line + "\n" for line in project.questions.read_text("utf-8").split("\n")[:12]), encoding="utf-8"
    )
    return project


def schedule(project, server, **settings):
    """Configure the project's schedule, and its generator at `server`."""
    project.configure(server)
    held = yaml.safe_load(project.config.read_text(encoding="utf-8"))
    held["schedule"] = {
        "timezone": "Europe/Paris",
        "nightly_cron": "0 2 1 1 *",
        "weekly_cron": "0 4 1 1 *",
        "questions": "questions.jsonl",
        "out": "answers/{date}.jsonl",
        **settings,
    }
    project.config.write_text(yaml.safe_dump(held), encoding="utf-8")


def ask(project, path, body=None):
    """What the Prefect API says."""
    request = urllib.request.Request(
        f"{project.environment['PREFECT_API_URL']}/{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def deployments(project):
    """The registered deployments by name."""
    return {one["name"]: one for one in ask(project, "deployments/filter", {})}


def trigger(project, name, **parameters):
    """The id of a new run of a deployment."""
    deployment = deployments(project)[name]["id"]
    return ask(project, f"deployments/{deployment}/create_flow_run", {"parameters": parameters})["id"]


def state(project, run):
    """The type of a run's state."""
    return ask(project, f"flow_runs/{run}")["state_type"]


def finish(project, run, process):
    """The type of the state in which a run ends."""
    wait_for(lambda: state(project, run) in ENDED, process)
    return state(project, run)


@contextmanager
def running(command, environment, folder, told):
    """A process that is ended with all that it started."""
    with told.open("ab") as out:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=out, stderr=out, start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_served_schedules_run_a_night_and_double_none(night):
    """Both are registered with cron and zone; a night completes with its report; of two at once one is cancelled."""
    with serving(StandInServer(seconds=0.2)) as server:
        schedule(night, server)
        serve = [sys.executable, "-m", "flows.cli", "serve", "-c", str(night.config)]
        with running(serve, night.environment, night.root, night.root / "stderr.txt") as process:
            wait_for(lambda: len(deployments(night)) >= 2, process)
            found = deployments(night)
            assert {name: one["schedules"][0]["schedule"]["cron"] for name, one in found.items()} == {
                "nightly": "0 2 1 1 *", "weekly": "0 4 1 1 *",
            }  # fmt: skip
            assert {one["schedules"][0]["schedule"]["timezone"] for one in found.values()} == {"Europe/Paris"}
            first, second = (trigger(night, "nightly", date="2026-03-08") for _ in range(2))
            assert sorted((finish(night, first, process), finish(night, second, process))) == ["CANCELLED", "COMPLETED"]
            rows = night.rows("answers/2026-03-08.jsonl")
            assert [row["status"] for row in rows] == ["answered"] * 12
            assert set(server.answered.values()) == {1}
            assert (night.root / "ws" / "reports" / "2026-03-08.html").exists()
            assert any(one["key"] == "corag-night" for one in ask(night, "artifacts/filter", {}))
            # The slot is free again.
            assert finish(night, trigger(night, "nightly", date="2026-03-09"), process) == "COMPLETED"


def test_a_night_in_which_a_question_fails_is_no_success(night):
    """The rest is answered and reported; the run ends as failed, and a faulty date never becomes a file."""
    night.questions.write_text(
        night.questions.read_text("utf-8") + json.dumps({"qid": "overflow", "question": "why " * 20_000}) + "\n",
        encoding="utf-8",
    )
    script = (
        "import sys; from flows.schedule import nightly_flow\n"
        "state = nightly_flow.with_options(retries=0)(sys.argv[1], [], sys.argv[2], return_state=True)\n"
        "print(state.type.value)"
    )
    with serving(StandInServer()) as server:
        schedule(night, server)

        def outcome_of(date):
            done = subprocess.run(
                [sys.executable, "-c", script, str(night.config), date],
                env=night.environment, cwd=night.root, capture_output=True, text=True, timeout=WAITED_SECONDS,
            )  # fmt: skip
            return done.stdout.split()[-1:]

        assert outcome_of("2026-03-08") == ["FAILED"]
        assert outcome_of("yesterday") == ["FAILED"]
    rows = night.rows("answers/2026-03-08.jsonl")
    assert [row["status"] for row in rows] == ["answered"] * 12 + ["failed"]
    assert "overflow" in (night.root / "ws" / "reports" / "2026-03-08.html").read_text("utf-8")
    assert [one.name for one in (night.root / "answers").iterdir()] == ["2026-03-08.jsonl"]


def test_deployments_run_in_a_worker_that_starts_anywhere(night):
    """SCH-06: `prefect deploy --all`, a process worker at `/` without PYTHONPATH: the night is answered."""
    environment = {name: value for name, value in night.environment.items() if name != "PYTHONPATH"}
    prefect = [sys.executable, "-m", "prefect", "--no-prompt"]
    with serving(StandInServer()) as server:
        schedule(night, server)
        for command in (["work-pool", "create", "corag", "--type", "process"], ["deploy", "--all"]):
            done = subprocess.run(
                [*prefect, *command], env=environment | {"CORAG_CONFIG": str(night.config)}, cwd=REPO,
                capture_output=True, text=True, timeout=WAITED_SECONDS,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
        worker = [*prefect, "worker", "start", "--pool", "corag", "--limit", "2"]
        with running(worker, environment, "/", night.root / "stderr.txt") as process:
            time.sleep(1)
            assert finish(night, trigger(night, "nightly", date="2026-10-31"), process) == "COMPLETED"
    assert len(night.rows("answers/2026-10-31.jsonl")) == 12
