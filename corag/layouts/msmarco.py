"""MS MARCO question answering: queries with their passages, as JSON lines or as one object of columns."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from corag.layouts.items import Item, broken, read_json, read_objects, text_id
from corag.quarantine import Rejected
from corag.values import Document, Question

NO_ANSWER = "No Answer Present."


def items(source: Path) -> Iterator[Item]:
    """The queries of one file, each after its passages; equal passages of several queries are one document.

    A query without an answer has no reference. Its relevant passages are those that the annotators selected.
    """
    for record in _records(source):
        if isinstance(record, Rejected):
            yield record
            continue
        place, row = record
        try:
            yield from _query(row)
        except (KeyError, TypeError, AttributeError) as error:
            yield broken(source, place, error)


def _query(row: Mapping[str, Any]) -> Iterator[Item]:
    relevant = []
    for passage in row["passages"]:
        text = passage["passage_text"]
        doc_id = text_id(text)
        yield Document(doc_id, "", text, {"url": str(passage.get("url", ""))})
        if passage.get("is_selected"):
            relevant.append(doc_id)
    written = row.get("wellFormedAnswers")
    answers = [*(written if isinstance(written, list) else ()), *row.get("answers", ())]
    yield Question(
        str(row["query_id"]),
        row["query"],
        tuple(dict.fromkeys(answer for answer in answers if answer.strip() and answer != NO_ANSWER)),
        tuple(dict.fromkeys(relevant)),
        {"kind": str(row.get("query_type", ""))},
    )


def _records(source: Path) -> Iterator[tuple[int, Mapping[str, Any]] | Rejected]:
    if source.suffix == ".jsonl":
        yield from read_objects(source)
        return
    held = read_json(source)
    if isinstance(held, dict) and isinstance(held.get("query"), dict):
        # One object of columns, each keyed by the number of the row.
        for place, name in enumerate(held["query"], start=1):
            yield place, {column: values[name] for column, values in held.items() if name in values}
        return
    yield from enumerate(held if isinstance(held, list) else [held], start=1)
