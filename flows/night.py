"""The morning after: what a night did, as a page, a Prefect artifact, an MLflow run, and a line in the history."""

from datetime import date as Date

from prefect import task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from corag.answer_store import AnswerStore
from corag.components import Components
from corag.errors import ConfigError
from corag.night_figures import night_figures, warnings_of
from corag.night_history import keep_night
from corag.night_page import night_note, night_page
from flows.answer import Answered, logger
from training.registry import connect, log_night_run

FAILURES_SHOWN = 100


def checked_date(given: str) -> str:
    """`given`, which must be a date such as 2026-03-08.

    Raises:
        ConfigError: it is none.
    """
    try:
        return Date.fromisoformat(given).isoformat()
    except ValueError:
        raise ConfigError(f"date {given!r} is not a date; write it as 2026-03-08") from None


@task(cache_policy=NO_CACHE, persist_result=False)
def report_night(parts: Components, date: str, answered: Answered) -> str:
    """Write the report of the night of `date`; where it is. A later attempt at the same date replaces it."""
    config, reports = parts.config, parts.workspace.reports
    qids = [question.qid for question in answered.questions]
    store = AnswerStore(answered.store)
    try:
        rows = list(store.rows(qids))
    finally:
        store.close()
    figures = night_figures(
        rows,
        {question.qid: question.answers for question in answered.questions},
        seconds=answered.seconds,
        answered_now=len(rows) - answered.before,
        champion=answered.champion is not None,
        metrics=config.metrics,
        pricing=config.pricing,
    )
    nights = keep_night(reports, date, figures)
    warned = warnings_of(figures, [held for day, held in nights.items() if day < date])
    for one in warned:
        logger.warning("night of %s: %s", date, one)
    note = night_note(date, figures, warned, config.pricing.currency)
    shown = night_page(
        date,
        figures,
        nights,
        warned,
        currency=config.pricing.currency,
        failures=[(row.qid, row.error or "") for row in rows if row.status == "failed"][:FAILURES_SHOWN],
        record={
            "answers": answered.out,
            "run": answered.record.identity,
            "agent": answered.record.agent,
            "generator": answered.record.generator,
            "corpus": answered.record.corpus,
            **answered.record.made_with,
        },
    )
    path = reports / f"{date}.html"
    aside = path.with_suffix(".html.part")
    aside.write_text(shown, encoding="utf-8")
    aside.replace(path)
    create_markdown_artifact(note, key="corag-night", description=f"Night of {date}")
    nightly = config.tracking.model_copy(update={"experiment": f"{config.tracking.experiment}-nightly"})
    log_night_run(connect(nightly), date, figures, note=note, page=path, run=answered.record.identity)
    return f"report: {path}" + "".join(f"\nunusual: {one}" for one in warned)
