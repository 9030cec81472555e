"""The schedules: one run a local date whatever the clocks do, refused before anything is registered, and deployed."""

import asyncio
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml

from corag.errors import ConfigError
from corag.settings import ScheduleSettings
from flows.night import checked_date
from flows.schedule import cron_schedule

REPO = Path(__file__).parent.parent
NEW_YORK = ZoneInfo("America/New_York")


@pytest.mark.parametrize(
    ("cron", "first", "days"),
    [("30 2 * * *", date(2026, 3, 7), 4), ("30 1 * * *", date(2026, 10, 31), 4)],
    ids=["an hour is skipped", "an hour comes twice"],
)
def test_each_local_date_has_exactly_one_run(cron, first, days):
    """SCH-01: also on the days on which the clocks are changed."""
    from prefect.server.schemas.schedules import CronSchedule

    made = cron_schedule(cron, ScheduleSettings(timezone="America/New_York"), "nightly_cron")
    schedule = CronSchedule(cron=made.cron, timezone=made.timezone)
    start = datetime(first.year, first.month, first.day, tzinfo=NEW_YORK)
    end = start + timedelta(days=days) - timedelta(minutes=1)
    due = asyncio.run(_due(schedule, start, end))
    assert [moment.astimezone(NEW_YORK).date() for moment in due] == [
        first + timedelta(days=day) for day in range(days)
    ]


async def _due(schedule, start, end):
    return await schedule.get_dates(n=20, start=start, end=end)


def test_without_a_time_zone_it_is_utc():
    """SCH-01: and it says so."""
    assert cron_schedule("0 2 * * *", ScheduleSettings(), "nightly_cron").timezone == "UTC"


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [
        ("0 2 * *", "UTC", "schedule.nightly_cron '0 2 \\* \\*' is not a cron line"),
        ("99 2 * * *", "UTC", "schedule.nightly_cron '99 2"),
        ("0 2 * * *", "Mars/Base", "schedule.timezone 'Mars/Base' is not known"),
    ],
)
def test_a_faulty_schedule_is_refused_in_one_line(cron, zone, words):
    """CFG-03: with the key and the value."""
    with pytest.raises(ConfigError, match=words) as refused:
        cron_schedule(cron, ScheduleSettings(timezone=zone), "nightly_cron")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("given", ["2026-3-8", "yesterday", "2026-02-30", ""])
def test_a_date_that_is_none_is_refused(given):
    """The parameter of a night is a date, and nothing is answered under another name."""
    with pytest.raises(ConfigError, match="write it as 2026-03-08"):
        checked_date(given)


def test_the_deployments_agree_with_the_default_configuration():
    """The same cron lines and time zone, one run at a time, flows found as modules, and no step that needs a folder."""
    deployed = yaml.safe_load((REPO / "prefect.yaml").read_text(encoding="utf-8"))
    settings, found = ScheduleSettings(), {one["name"]: one for one in deployed["deployments"]}
    for name, cron, flow in (
        ("nightly", settings.nightly_cron, "flows.schedule.nightly_flow"),
        ("weekly", settings.weekly_cron, "flows.schedule.retrain_flow"),
    ):
        assert found[name]["schedules"] == [{"cron": cron, "timezone": settings.timezone}]
        assert found[name]["entrypoint"] == flow
        assert found[name]["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}
    assert deployed["pull"] == []
