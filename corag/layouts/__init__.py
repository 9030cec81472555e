"""Public data sets in their own layouts, turned into the corpus and questions that corag reads."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corag.errors import InputError
from corag.layouts import beir, hotpotqa, msmarco, squad, wikipassageqa
from corag.layouts.items import Item, replaced
from corag.quarantine import Rejected
from corag.values import Document, Question

Layout = Callable[[Path], Iterator[Item]]

LAYOUTS: dict[str, Layout] = {
    "wikipassageqa": wikipassageqa.items,
    "msmarco": msmarco.items,
    "squad": squad.items,
    "hotpotqa": hotpotqa.items,
    "musique": hotpotqa.items,
    "beir": beir.items,
}
"""Every layout by name, each a function from its file or folder to documents, questions and refused records."""

CORPUS, QUESTIONS = "corpus.jsonl", "questions.jsonl"


@dataclass(frozen=True, slots=True)
class Converted:
    """What a conversion wrote, and the records that it could not read."""

    documents: int
    questions: int
    rejected: tuple[Rejected, ...]


def convert(layout: str, source: Path, out: Path) -> Converted:
    """Write `corpus.jsonl` and `questions.jsonl` into the folder `out`; a document that stands twice is written once.

    Raises:
        InputError: the layout is not known, or the source cannot be read as one of that layout.
    """
    if layout not in LAYOUTS:
        raise InputError(f"{layout}: not a known layout; choose among {', '.join(LAYOUTS)}")
    if not source.exists():
        raise InputError(f"{source}: no such file or folder; check the path")
    seen: dict[str, set[str]] = {CORPUS: set(), QUESTIONS: set()}
    rejected: list[Rejected] = []
    out.mkdir(parents=True, exist_ok=True)
    with replaced(out / CORPUS) as corpus, replaced(out / QUESTIONS) as questions:
        for item in LAYOUTS[layout](source):
            if isinstance(item, Rejected):
                rejected.append(item)
                continue
            file, name, row = (
                (corpus, CORPUS, _document_row(item))
                if isinstance(item, Document)
                else (questions, QUESTIONS, _question_row(item))
            )
            held = item.doc_id if isinstance(item, Document) else item.qid
            if held not in seen[name]:
                seen[name].add(held)
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        if not seen[CORPUS]:
            reason = rejected[0].reason if rejected else "it holds no document"
            raise InputError(f"{source}: cannot be read as {layout} ({reason}); check the layout's name and the files")
    return Converted(len(seen[CORPUS]), len(seen[QUESTIONS]), tuple(rejected))


def _document_row(document: Document) -> dict[str, object]:
    return {"doc_id": document.doc_id, "title": document.title, "text": document.text, **document.metadata}


def _question_row(question: Question) -> dict[str, object]:
    return {
        "qid": question.qid,
        "question": question.question,
        "answers": list(question.answers),
        "relevant_ids": list(question.relevant_ids),
        **question.metadata,
    }
