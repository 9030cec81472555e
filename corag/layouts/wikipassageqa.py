"""WikiPassageQA: questions in tab-separated files, and the passages of every document in one JSON file."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from corag.errors import InputError
from corag.layouts.items import Item, broken, read_json, read_text
from corag.values import Document, Question

PASSAGES = "document_passages.json"


def items(source: Path) -> Iterator[Item]:
    """A document a passage, and the questions of every .tsv file; the file's name is the split.

    `source` is the folder. A question's reference is the text of its relevant passages.
    """
    passages = read_json(source / PASSAGES)
    if not isinstance(passages, dict):
        raise InputError(f"{source / PASSAGES}: is no object of documents; check the file")
    for document, held in passages.items():
        for number, text in held.items():
            yield Document(_doc_id(document, number), "", str(text), {"document": str(document)})
    for path in sorted(source.glob("*.tsv")):
        table = csv.DictReader(io.StringIO(read_text(path)), delimiter="\t", quoting=csv.QUOTE_NONE)
        for line, row in enumerate(table, start=2):
            try:
                document = row["DocumentID"]
                numbers = [one.strip() for one in row["RelevantPassages"].split(",") if one.strip()]
                yield Question(
                    row["QID"],
                    row["Question"],
                    (" ".join(str(passages[document][number]) for number in numbers),),
                    tuple(_doc_id(document, number) for number in numbers),
                    {"split": path.stem},
                )
            except (KeyError, TypeError, AttributeError) as error:
                yield broken(path, line, error)


def _doc_id(document: str, number: str) -> str:
    return f"{document}_{number}"
