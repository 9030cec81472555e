"""HotpotQA and MuSiQue: questions over several paragraphs, each with some that help and some that do not."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from corag.errors import InputError
from corag.layouts.items import Item, broken, read_json, read_objects, text_id
from corag.quarantine import Rejected
from corag.values import Document, Question


def items(source: Path) -> Iterator[Item]:
    """The questions of one .json or .jsonl file, each after its paragraphs; equal paragraphs are one document."""
    for record in _records(source):
        if isinstance(record, Rejected):
            yield record
            continue
        place, row = record
        try:
            yield from _question(row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            yield broken(source, place, error)


def _question(row: Mapping[str, Any]) -> Iterator[Item]:
    relevant = []
    for title, text, supports in _paragraphs(row):
        doc_id = text_id(text, title)
        yield Document(doc_id, title, text)
        if supports:
            relevant.append(doc_id)
    answers = [row["answer"], *row.get("answer_aliases", ())] if row.get("answerable", True) else []
    yield Question(
        str(row["_id"] if "_id" in row else row["id"]),
        row["question"],
        tuple(dict.fromkeys(answer for answer in answers if answer.strip())),
        tuple(dict.fromkeys(relevant)),
        {"kind": str(row.get("type", ""))},
    )


def _paragraphs(row: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Title, text, and whether it supports the answer."""
    if "paragraphs" in row:
        for one in row["paragraphs"]:
            yield one["title"], one["paragraph_text"], bool(one.get("is_supporting"))
        return
    context, facts = row["context"], row.get("supporting_facts", ())
    if isinstance(context, dict):
        # The columns of the hub's own conversion.
        context = list(zip(context["title"], context["sentences"], strict=True))
        facts = [(title,) for title in facts["title"]] if facts else ()
    supporting = {fact[0] for fact in facts}
    for title, sentences in context:
        yield title, "".join(sentences).strip(), title in supporting


def _records(source: Path) -> Iterator[tuple[int, Mapping[str, Any]] | Rejected]:
    if source.suffix == ".jsonl":
        yield from read_objects(source)
        return
    held = read_json(source)
    if not isinstance(held, list):
        raise InputError(f"{source}: is no list of questions; HotpotQA's files are one")
    yield from enumerate(held, start=1)
