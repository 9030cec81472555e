"""SQuAD and data sets of its form: titles, paragraphs, and questions whose answers are spans of them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from corag.errors import InputError
from corag.layouts.items import Item, broken, read_json
from corag.values import Document, Question


def items(source: Path) -> Iterator[Item]:
    """A document a paragraph, followed by its questions; one that cannot be answered has no reference."""
    held = read_json(source)
    if not isinstance(held, dict) or not isinstance(held.get("data"), list):
        raise InputError(f"{source}: has no list `data`; SQuAD's files have one")
    for place, article in enumerate(held["data"], start=1):
        try:
            yield from _article(article, place)
        except (KeyError, TypeError, AttributeError) as error:
            yield broken(source, place, error)


def _article(article: Mapping[str, Any], place: int) -> Iterator[Item]:
    title = str(article.get("title", "")).replace("_", " ")
    for number, paragraph in enumerate(article["paragraphs"]):
        doc_id = f"{title or place}/{number}"
        yield Document(doc_id, title, paragraph["context"])
        for question in paragraph["qas"]:
            answers = () if question.get("is_impossible") else question.get("answers", ())
            yield Question(
                str(question["id"]),
                question["question"],
                tuple(dict.fromkeys(answer["text"] for answer in answers if answer["text"].strip())),
                (doc_id,),
            )
