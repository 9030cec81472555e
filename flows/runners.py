"""Runs the pieces of large work over Prefect: in threads here, or on a Dask or Ray cluster."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from prefect import Task
from prefect.futures import PrefectFuture
from prefect.server.api.server import SubprocessASGIServer
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from corag.errors import ConfigError, CoragError, ModelError
from corag.settings import RunnerSettings

logger = logging.getLogger(__name__)

Piece = Mapping[str, Any]
"""The parameters of one task: paths, ids and settings, as they travel to another process."""


@contextmanager
def started(settings: RunnerSettings) -> Iterator[TaskRunner[Any]]:
    """The configured task runner, started; to be used inside a flow.

    Raises:
        ConfigError: its package is not installed.
        ModelError: the cluster cannot be reached or started.
    """
    runner = task_runner(settings)
    with _one_prefect_server(), _entered(runner, settings):
        logger.info("runner: %s with %d workers", settings.kind, settings.workers)
        yield runner


def task_runner(settings: RunnerSettings) -> TaskRunner[Any]:
    """The configured task runner, for a flow's `task_runner` or for `started`.

    Raises:
        ConfigError: its package is not installed.
    """
    if settings.kind == "threads":
        return ThreadPoolTaskRunner(max_workers=settings.workers)
    try:
        return _dask(settings) if settings.kind == "dask" else _ray(settings)
    except ImportError as error:
        raise ConfigError(
            f"runner.kind {settings.kind} needs the package prefect-{settings.kind} ({error}); "
            f"pip install 'corag[{settings.kind}]', or set runner.kind: threads"
        ) from None


def run_pieces(task: Task[..., Any], pieces: Sequence[Piece], runner: TaskRunner[Any], retries: int) -> list[Any]:
    """What `task` returns for each of `pieces`, in their order.

    A piece that fails, as when its worker is lost, is run again, `retries` times at most: running it twice must do no
    harm.

    Raises:
        CoragError: as the task raised it; ModelError where a piece fails otherwise, again and again.
    """
    results: dict[int, Any] = {}
    for attempt in range(retries + 1):
        missing = [index for index in range(len(pieces)) if index not in results]
        futures = {index: runner.submit(task, parameters=dict(pieces[index])) for index in missing}
        for index, future in futures.items():
            try:
                results[index] = _result(future)
            except CoragError:
                raise
            except Exception as error:
                # A lost worker shows as an error of the cluster's own.
                reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
                if attempt == retries:
                    raise ModelError(f"{task.name}: a piece failed {attempt + 1} times ({reason})") from error
                logger.warning("%s: piece %d failed (%s); it is run again", task.name, index, reason)
    return [results[index] for index in range(len(pieces))]


def _result(future: PrefectFuture[Any]) -> Any:
    return future.result()


def _dask(settings: RunnerSettings) -> TaskRunner[Any]:
    from prefect_dask import DaskTaskRunner

    if settings.address is not None:
        return DaskTaskRunner(address=settings.address)
    local = {"n_workers": settings.workers, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    return DaskTaskRunner(cluster_kwargs=local)


def _ray(settings: RunnerSettings) -> TaskRunner[Any]:
    # Else it writes a token into the home folder, and reports its use.
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from prefect_ray import RayTaskRunner

    if settings.address is not None:
        return RayTaskRunner(address=settings.address)
    local = {"num_cpus": settings.workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    return RayTaskRunner(init_kwargs={**local, "log_to_driver": False, "logging_level": logging.ERROR})


@contextmanager
def _entered(runner: TaskRunner[Any], settings: RunnerSettings) -> Iterator[None]:
    try:
        runner.__enter__()
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(
            f"runner.kind {settings.kind}: the cluster cannot be used ({reason}); check runner.address"
        ) from error
    try:
        yield
    finally:
        runner.__exit__(None, None, None)


@contextmanager
def _one_prefect_server() -> Iterator[None]:
    """Let the workers report to the server of this process: each would start one of its own."""
    embedded = SubprocessASGIServer()
    if PREFECT_API_URL.value() or not embedded.running:
        yield
        return
    with temporary_settings({PREFECT_API_URL: embedded.api_url}):
        yield
