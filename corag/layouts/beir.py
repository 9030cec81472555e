"""BEIR: a folder with corpus.jsonl, queries.jsonl and a table of judgements a split."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from corag.errors import InputError
from corag.layouts.items import Item, broken, read_objects, read_text
from corag.quarantine import Rejected
from corag.values import Document, Question

SPLITS = ("test", "dev", "train")
"""Where a query is judged in several splits, the first of these counts."""


def items(source: Path) -> Iterator[Item]:
    """Every document, then the queries that some split judges, with their relevant documents; there are no answers."""
    if not source.is_dir():
        raise InputError(f"{source}: is no folder; BEIR's layout is one with corpus.jsonl and queries.jsonl")
    for record in read_objects(source / "corpus.jsonl"):
        if isinstance(record, Rejected):
            yield record
            continue
        try:
            yield Document(str(record[1]["_id"]), str(record[1].get("title", "")), record[1]["text"])
        except KeyError as error:
            yield broken(source / "corpus.jsonl", record[0], error)
    relevant = _judgements(source)
    for record in read_objects(source / "queries.jsonl"):
        if isinstance(record, Rejected):
            yield record
            continue
        try:
            qid = str(record[1]["_id"])
            if qid in relevant:
                split, doc_ids = relevant[qid]
                yield Question(qid, record[1]["text"], (), doc_ids, {"split": split})
        except KeyError as error:
            yield broken(source / "queries.jsonl", record[0], error)


def _judgements(source: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    """By query its split and its relevant documents, best first."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for split in SPLITS:
        path = source / "qrels" / f"{split}.tsv"
        if not path.exists():
            continue
        judged: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for line, row in enumerate(csv.DictReader(io.StringIO(read_text(path)), delimiter="\t"), start=2):
            try:
                if int(row["score"]) > 0:
                    judged[row["query-id"]].append((-int(row["score"]), row["corpus-id"]))
            except (KeyError, TypeError, ValueError):
                raise InputError(
                    f"{path}:{line}: is no judgement; the table needs query-id, corpus-id and a whole score"
                ) from None
        for qid, held in judged.items():
            found.setdefault(qid, (split, tuple(doc_id for _, doc_id in sorted(held))))
    if not found:
        raise InputError(
            f"{source / 'qrels'}: holds no judgement; put {', '.join(f'{one}.tsv' for one in SPLITS)} there"
        )
    return found
