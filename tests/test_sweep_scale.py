"""A sweep of many questions through Prefect and MLflow, with a served model that answers at once."""

import json
import threading

import pytest

from corag.sweep_files import read_sweep
from tests.conftest import TOWNS, write_rows
from tests.test_openai_api import Scripted

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prefect_server")]

QUESTIONS, CONFIGURATIONS = 200, 10


@pytest.fixture
def server():
    """A server that echoes, serving."""
    serving = Scripted()
    threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield serving
    serving.shutdown()
    serving.server_close()


def task_runs():
    """Every task run that the Prefect server knows, and the parameters of every flow run."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        tasks = client.read_task_runs(limit=200)
        return {task.id for task in tasks}, [run.parameters for run in client.read_flow_runs(limit=200)]


def test_two_hundred_questions_take_a_handful_of_task_runs(project, server, smollm2_folder):
    """SCH-05: 200 questions × 10 configurations: few task runs, small parameters, no locked database, no lost trial."""
    towns = list(TOWNS)
    rows = [
        {
            "qid": f"q{number:03d}",
            "question": f"What does visitor {number} hear of {towns[number % len(towns)].title()}?",
            "answers": ["The town lies on a hill."],
            "relevant_ids": [f"{towns[number % len(towns)]}.md"],
        }
        for number in range(QUESTIONS)
    ]
    write_rows(project.root / "many.jsonl", rows)
    served = {
        "kind": "openai", "model": "tiny", "tokenizer": str(smollm2_folder),
        "base_url": f"http://127.0.0.1:{server.server_address[1]}/v1",
    }  # fmt: skip
    settings = [
        "questions.held_out_limit=1", "sweep.iterations=[2,5]", "sweep.cost_coefficients=[0.0,0.1,0.2,0.3,0.5]",
        "rerankers=[{name: static, kind: static}]", *(f"generator.{key}={value}" for key, value in served.items()),
    ]  # fmt: skip
    sets = [part for setting in settings for part in ("--set", setting)]
    assert project.run("ingest", *sets).exit_code == 0
    before, _ = task_runs()
    result = project.run("sweep", "--questions", project.root / "many.jsonl", "--force", *sets)
    assert result.exit_code == 0, result.output
    assert "database is locked" not in result.output
    after, parameters = task_runs()
    assert 0 < len(after - before) < 50
    assert max(len(json.dumps(one, default=str)) for one in parameters) < 512 * 1024
    trials = read_sweep(project.root / "ws" / "sweep").trials
    assert len(trials) == (QUESTIONS + 1) * CONFIGURATIONS
    assert trials["error"].isna().all()
