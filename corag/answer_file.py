"""Writes the answers file: aside first, then renamed, so that under its name it is whole or absent."""

import glob
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from corag.answer_rows import AnswerRow
from corag.errors import InputError

PARQUET = ".parquet"
_ROWS_PER_GROUP = 1000


def write_answers(rows: Iterable[AnswerRow], out: Path) -> None:
    """Write `rows` one after the other; what a killed process left aside is removed first.

    Raises:
        InputError: the folder cannot be written.
    """
    aside = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for left in _left_behind(out):
            left.unlink(missing_ok=True)
        if out.suffix == PARQUET:
            _write_parquet(rows, aside)
        else:
            with aside.open("w", encoding="utf-8", newline="\n") as file:
                for row in rows:
                    file.write(row.model_dump_json() + "\n")
                file.flush()
                os.fsync(file.fileno())
        aside.replace(out)
    except OSError as error:
        raise InputError(f"{out}: cannot write the answers ({error.strerror}); name another --out") from error


def _left_behind(out: Path) -> Iterator[Path]:
    """The unfinished files of processes that are no more."""
    for path in out.parent.glob(f".{glob.escape(out.name)}.*.part"):
        owner = path.name.removeprefix(f".{out.name}.").removesuffix(".part")
        if owner.isdigit() and not _alive(int(owner)):
            yield path


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _write_parquet(rows: Iterable[AnswerRow], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, integer, real = pa.string(), pa.int64(), pa.float64()
    citation = pa.struct([("chunk_id", text), ("doc_id", text), ("start", integer), ("end", integer)])
    latency = pa.struct([(stage, real) for stage in ("embed", "retrieve", "search", "generate")])
    kinds = {
        "citations": pa.list_(citation),
        "latency_ms": latency,
        "reused": pa.bool_(),
        **dict.fromkeys(("context_tokens", "prompt_tokens", "answer_tokens", "budget", "iterations"), integer),
        **dict.fromkeys(("cost_coefficient", "exploration_coefficient", "benefit"), real),
    }
    schema = pa.schema([(name, kinds.get(name, text)) for name in AnswerRow.model_fields])
    with pq.ParquetWriter(path, schema) as writer:
        for group in _groups(rows):
            writer.write_table(pa.Table.from_pylist([row.model_dump(mode="json") for row in group], schema))


def _groups(rows: Iterable[AnswerRow]) -> Iterator[list[AnswerRow]]:
    source = iter(rows)
    while group := list(itertools.islice(source, _ROWS_PER_GROUP)):
        yield group
