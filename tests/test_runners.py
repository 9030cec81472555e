"""Pieces of work over threads, a local Dask and a local Ray: the same results everywhere, and no lost piece."""

import shutil

import pytest
from prefect import flow

from corag.errors import ConfigError, ModelError
from corag.settings import RunnerSettings
from corag.sweep_files import read_sweep
from flows.runners import run_pieces, started, task_runner
from tests import piece_tasks
from tests.conftest import TOWNS, Project

THREADS = RunnerSettings(kind="threads", workers=2)
CLUSTERS = [
    pytest.param(RunnerSettings(kind="dask", workers=2), marks=pytest.mark.slow, id="dask"),
    pytest.param(RunnerSettings(kind="ray", workers=2), marks=pytest.mark.slow, id="ray"),
]


def run(task, pieces, settings):
    """The results of the pieces, in a flow."""
    needs(settings.kind)

    @flow
    def spread():
        with started(settings) as runner:
            return run_pieces(task, pieces, runner, settings.retries)

    return spread()


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize("settings", [pytest.param(THREADS, id="threads"), *CLUSTERS])
def test_results_come_in_the_order_of_the_pieces(settings):
    """Whoever finishes first."""
    assert run(piece_tasks.square, [{"number": one} for one in range(6)], settings) == [0, 1, 4, 9, 16, 25]


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize("settings", CLUSTERS)
def test_a_piece_whose_worker_dies_is_run_again(settings, tmp_path):
    """The worker's process ends in the midst of a piece; every result is there all the same."""
    pieces = [{"number": one, "folder": str(tmp_path)} for one in range(6)]
    assert run(piece_tasks.die_once, pieces, settings) == [0, 1, 4, 9, 16, 25]
    assert (tmp_path / "died").exists()


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize("settings", [pytest.param(THREADS, id="threads"), *CLUSTERS])
def test_a_piece_that_fails_is_run_again(settings, tmp_path):
    """Once is bad luck; with no retry left it is an error that says what failed."""
    pieces = [{"number": one, "folder": str(tmp_path)} for one in range(6)]
    assert run(piece_tasks.fail_once, pieces, settings) == [0, 1, 4, 9, 16, 25]
    (tmp_path / "failed").unlink()
    with pytest.raises(ModelError, match="lost the thread"):
        run(piece_tasks.fail_once, pieces, settings.model_copy(update={"retries": 0}))


@pytest.mark.usefixtures("prefect_server")
def test_a_users_mistake_is_told_as_it_is():
    """It is not tried again, and keeps its own words."""
    with pytest.raises(ModelError, match=r"^model 1: not there; correct the path$"):
        run(piece_tasks.refuse, [{"number": 1}], THREADS)


def test_a_missing_package_is_named(monkeypatch):
    """Clusters are extras: without them the message says what to install."""
    for kind in ("dask", "ray"):
        monkeypatch.setitem(__import__("sys").modules, f"prefect_{kind}", None)
        with pytest.raises(ConfigError, match=rf"corag\[{kind}\]"):
            task_runner(RunnerSettings(kind=kind))


def needs(kind):
    """Skip where the extra of that runner is not installed."""
    if kind != "threads":
        pytest.importorskip(f"prefect_{kind}")


def stored(project: Project) -> dict[str, tuple[str, list[float]]]:
    """Text and vector of every chunk."""
    import lancedb

    table = lancedb.connect(str(project.root / "ws" / "lancedb")).open_table("chunks")
    rows = table.search().limit(1000).to_list()
    return {row["chunk_id"]: (row["text"], list(row["vector"])) for row in rows}


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize(
    "kind", ["threads", pytest.param("dask", marks=pytest.mark.slow), pytest.param("ray", marks=pytest.mark.slow)]
)
def test_an_ingest_gives_the_same_on_every_runner(project, kind):
    """Every chunk has the text and, with the static embedder, the very vector that plain embedding gives it."""
    needs(kind)
    plain = ["--set", "embedder.kind=static"]
    assert project.run("ingest", *plain).exit_code == 0
    wanted = stored(project)
    shutil.rmtree(project.root / "ws")
    spread = [*plain, "--set", f"runner.kind={kind}", "--set", "runner.workers=2", "--set", "runner.piece_texts=3"]
    done = project.run("ingest", *spread)
    assert done.exit_code == 0, (done.stderr, done.exception)
    assert f"{len(TOWNS)} added" in done.stdout
    assert stored(project) == wanted
    assert list((project.root / "ws" / "cache" / "pieces").iterdir()) == []


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize(
    "kind", ["threads", pytest.param("dask", marks=pytest.mark.slow), pytest.param("ray", marks=pytest.mark.slow)]
)
def test_a_sweep_gives_the_same_on_every_runner(project, finished, kind):
    """Trials and labels are those of a sweep in this process, and what its workers scored and generated is counted."""
    needs(kind)
    assert project.run("ingest").exit_code == 0
    spread = ["--set", f"runner.kind={kind}", "--set", "runner.workers=2", "--set", "sweep.batch_questions=3"]
    done = project.run("sweep", *spread)
    assert done.exit_code == 0, (done.stderr, done.exception)
    mine, plain = (read_sweep(one.root / "ws" / "sweep") for one in (project, finished))
    told = ["qid", "reranker", "iterations", "cost_coefficient", "chunk_ids", "benefit", "scored", "error"]
    # Scored in other batches, so that sums may differ in their last digits.
    assert mine.trials[told].to_json(double_precision=4) == plain.trials[told].to_json(double_precision=4)
    assert [label.qid for label in mine.labels] == [label.qid for label in plain.labels]
    for work, done_now in (("pairs", "scored"), ("calls", "made")):
        assert mine.record[work][done_now] > 0
        assert mine.record[work][done_now] == plain.record[work][done_now]
    assert list((project.root / "ws" / "cache" / "pieces").iterdir()) == []
