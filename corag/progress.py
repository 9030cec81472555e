"""Progress of long work: a bar on a terminal, a plain line now and then elsewhere. Always on stderr."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 15.0

Advance = Callable[[int], None]
"""Takes the number of items that have just been finished."""


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Advance]:
    """A callable that advances the bar named `label`; `total` is None where it is not known beforehand."""
    if sys.stderr.isatty():
        yield from _bar(label, total)
    else:
        yield from _lines(label, total)


def _bar(label: str, total: int | None) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total)
        yield lambda count: bar.advance(task, count)


def _lines(label: str, total: int | None) -> Iterator[Advance]:
    done, started, last = 0, time.monotonic(), time.monotonic()

    def advance(count: int) -> None:
        nonlocal done, last
        done += count
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            logger.info("%s: %s", label, f"{done}/{total}" if total else done)

    yield advance
    logger.info("%s: %d done in %.1f s", label, done, time.monotonic() - started)
