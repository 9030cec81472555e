"""The schedules: answer every night, retrain every week; served by one process or deployed to a work pool."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from prefect import flow, serve
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.client.schemas.schedules import CronSchedule
from prefect.schedules import Cron, Schedule
from pydantic import ValidationError

from corag.config import load_config
from corag.errors import ConfigError, IncompleteError
from corag.settings import Config, ScheduleSettings
from flows.answer import answer_questions
from flows.night import checked_date, report_night
from flows.promote import promote_flow
from flows.runtime import open_components
from flows.sweep import sweep_flow
from flows.train import train_flow

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment


@flow(name="nightly-answer", flow_run_name="nightly-{date}", retries=2, retry_delay_seconds=60)
def nightly_flow(config_file: str | None = None, overrides: list[str] | None = None, date: str | None = None) -> str:
    """Answer the scheduled questions into the file of this date in the schedule's time zone, and report the night.

    A retry, or a second run on the same date, resumes: finished questions are not answered again.

    Raises:
        IncompleteError: some questions failed; the others are answered and reported.
    """
    day = checked_date(date) if date is not None else None
    parts = open_components(config_file, overrides or [], "nightly")
    schedule = parts.config.schedule
    if schedule.questions is None:
        raise ConfigError("schedule.questions is not set: name the file of questions to answer every night")
    day = day or datetime.now(ZoneInfo(schedule.timezone)).date().isoformat()
    answered = answer_questions(parts, schedule.questions, schedule.out.format(date=day))
    told = f"{answered.summary}\n{report_night(parts, day, answered)}"
    if answered.problems:
        raise IncompleteError("; ".join([told, *answered.problems]))
    return told


@flow(name="weekly-retrain", retries=1, retry_delay_seconds=300)
def retrain_flow(config_file: str | None = None, overrides: list[str] | None = None) -> str:
    """Sweep, train and promote; what the sweep has scored before is not scored again."""
    call = (config_file, overrides or [])
    sweep_flow(*call)
    train_flow(*call)
    return promote_flow(*call)


def cron_schedule(cron: str, schedule: ScheduleSettings, key: str) -> Schedule:
    """The schedule of one cron line in the configured time zone.

    Raises:
        ConfigError: the line or the time zone is not valid; nothing has been registered yet.
    """
    try:
        ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError(
            f"schedule.timezone {schedule.timezone!r} is not known; use a name such as 'Europe/Paris' or 'UTC'"
        ) from None
    try:
        CronSchedule(cron=cron, timezone=schedule.timezone)
    except ValidationError as error:
        detail = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise ConfigError(f"schedule.{key} {cron!r} is not a cron line of five fields ({detail})") from None
    return Cron(cron, timezone=schedule.timezone)


def serve_schedules(config_file: str | None, overrides: list[str]) -> None:
    """Register both schedules with Prefect and run them until the process is stopped.

    Both are checked before either is registered. One run of each at a time: a run that is due while the last one
    is still going is cancelled rather than doubled.
    """
    config = load_config(Path(config_file) if config_file else None, overrides)
    nightly = cron_schedule(config.schedule.nightly_cron, config.schedule, "nightly_cron")
    weekly = cron_schedule(config.schedule.weekly_cron, config.schedule, "weekly_cron")
    parameters = {"config_file": config_file, "overrides": _absolute_overrides(config, overrides)}
    alone = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW)
    deployments = [
        flow_of_schedule.to_deployment(name=name, schedule=when, parameters=parameters, concurrency_limit=alone)
        for flow_of_schedule, name, when in ((nightly_flow, "nightly", nightly), (retrain_flow, "weekly", weekly))
    ]
    serve(*(cast("RunnerDeployment", deployment) for deployment in deployments), pause_on_shutdown=False)


def _absolute_overrides(config: Config, overrides: list[str]) -> list[str]:
    """The overrides with the places that depend on the current folder pinned, for a worker started elsewhere."""
    here = Path.cwd()
    uri = config.tracking.uri
    if uri.startswith("sqlite:///") and not uri.startswith("sqlite:////"):
        uri = f"sqlite:///{here / uri.removeprefix('sqlite:///')}"
    return [
        *overrides,
        f"workspace={Path(config.workspace).absolute()}",
        f"tracking.uri={uri}",
        f"tracking.artifacts={Path(config.tracking.artifacts).absolute()}",
        f"schedule.out={Path(config.schedule.out).absolute()}",
    ]
