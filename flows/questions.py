"""Reads the questions of a flow and puts what cannot be read into quarantine."""

import logging
from collections.abc import Sequence

from corag.errors import InputError
from corag.quarantine import Rejected, write_quarantine
from corag.questions import read_questions
from corag.settings import SAMPLE
from corag.values import Question
from corag.workspace import Workspace

logger = logging.getLogger(__name__)


def load_questions(
    source: str, workspace: Workspace, name: str, split: str | None = None, limit: int | None = None
) -> tuple[list[Question], list[Rejected]]:
    """The questions of `source` and the records that could not be read.

    `split` chooses the part of the bundled sample; `limit` takes the first ones.

    Raises:
        InputError: the file cannot be read, or holds no question at all.
    """
    reading = read_questions(source, split=split if source == SAMPLE else None)
    write_quarantine(workspace.quarantine, f"questions-{name}", reading.rejected)
    for rejected in reading.rejected:
        logger.warning("%s", describe(rejected))
    if not reading.questions:
        raise InputError(f"{source}: holds no usable question ({len(reading.rejected)} records were rejected)")
    if limit is not None and limit < len(reading.questions):
        logger.info("%s: the first %d of %d questions are taken (%s)", source, limit, len(reading.questions), name)
    return list(reading.questions[:limit]), list(reading.rejected)


def describe(rejected: Rejected) -> str:
    """One line: where the record stands and why it was rejected."""
    where = rejected.source if rejected.line is None else f"{rejected.source}:{rejected.line}"
    return f"{where}: {rejected.reason}"


def rejected_note(rejected: Sequence[Rejected], workspace: Workspace) -> str:
    """What a summary says of rejected records; empty where there are none."""
    if not rejected:
        return ""
    shown = "; ".join(describe(one) for one in rejected[:3])
    more = f"; and {len(rejected) - 3} more" if len(rejected) > 3 else ""
    return f"{len(rejected)} records rejected ({shown}{more}), kept in {workspace.quarantine}"
