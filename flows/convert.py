"""Convert: a public data set in its own layout into files that corag reads."""

from pathlib import Path

from corag.errors import IncompleteError
from corag.layouts import CORPUS, QUESTIONS, convert
from flows.questions import describe


def convert_layout(layout: str, source: Path, out: Path) -> str:
    """What was written, and how to use it, as a few lines.

    Raises:
        IncompleteError: some records could not be read; the others are written.
    """
    done = convert(layout, source, out)
    written = f"convert: {done.documents} documents in {out / CORPUS}, {done.questions} questions in {out / QUESTIONS}"
    if done.rejected:
        shown = "; ".join(describe(one) for one in done.rejected[:3])
        raise IncompleteError(f"{written}; {len(done.rejected)} records could not be read ({shown})")
    return f"{written}\nuse: corpus.paths: [{out / CORPUS}], questions: {out / QUESTIONS}"
