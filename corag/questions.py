"""Reads questions, with references and relevant documents where they are given."""

import hashlib
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corag.errors import InputError
from corag.quarantine import Rejected
from corag.records import RECORD_SUFFIXES, Record, read_records, text_field
from corag.settings import SAMPLE
from corag.values import Question

logger = logging.getLogger(__name__)

LONGEST_QUESTION = 100_000
"""Characters: a longer question is no question, and would stall whatever reads it."""

SAMPLE_QUESTIONS = Path(__file__).parent / "sample" / "questions.jsonl"


@dataclass(frozen=True, slots=True)
class QuestionReading:
    """Usable questions in the order of the file, one a qid, and the refused records."""

    questions: list[Question]
    rejected: list[Rejected]


def question_id(text: str) -> str:
    """A stable id for a question that has none: a hash of its text."""
    return "q-" + hashlib.sha256(text.strip().encode("utf-8", "replace")).hexdigest()[:16]


def read_questions(source: str, split: str | None = None) -> QuestionReading:
    """The questions of a .jsonl, .csv or .parquet file; `sample` is the bundled set.

    `split` keeps the records whose field `split` has that value. A second record of a qid is dropped where it asks the
    same, and refused where it asks something else.

    Raises:
        InputError: the file is missing, or not of a known kind.
    """
    path = SAMPLE_QUESTIONS if source == SAMPLE else Path(source)
    if path.suffix.lower() not in RECORD_SUFFIXES:
        raise InputError(f"{path}: questions are read from {', '.join(RECORD_SUFFIXES)}; convert the file")
    try:
        present = path.is_file()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check its rights") from None
    if not present:
        raise InputError(f"{path}: no such file of questions; check the path, or write the file there")
    questions: dict[str, Question] = {}
    rejected: list[Rejected] = []
    for record in read_records(path):
        one = record if isinstance(record, Rejected) else _question(record)
        if isinstance(one, Rejected):
            rejected.append(one)
        elif split is not None and one.metadata.get("split") != split:
            continue
        elif one.qid not in questions:
            questions[one.qid] = one
        elif questions[one.qid].question != one.question:
            assert isinstance(record, Record)
            rejected.append(record.rejected(f"qid {one.qid!r} stands for another question already"))
        else:
            logger.info("%s:%d: qid %r again, with the same question", path, record.line, one.qid)
    return QuestionReading(list(questions.values()), rejected)


def _question(record: Record) -> Question | Rejected:
    fields = dict(record.fields)
    text = fields.pop("question", None)
    if not isinstance(text, str):
        return record.rejected("has no field `question`" if text is None else "`question` is not a string")
    if not text.strip():
        return record.rejected("`question` is empty")
    if len(text) > LONGEST_QUESTION:
        return record.rejected(f"`question` has {len(text)} characters, more than {LONGEST_QUESTION}")
    qid = fields.pop("qid", None)
    if not isinstance(qid, str | int | None) or isinstance(qid, bool):
        return record.rejected(f"`qid` is {type(qid).__name__}, not a string")
    answers, relevant = _strings(fields.pop("answers", None)), _strings(fields.pop("relevant_ids", None))
    if answers is None:
        return record.rejected("`answers` is neither a string nor a list of strings")
    if relevant is None:
        return record.rejected("`relevant_ids` is neither a string nor a list of strings")
    return Question(
        qid=question_id(text) if qid in (None, "") else str(qid),
        question=text,
        answers=tuple(answer for answer in answers if answer.strip()),
        relevant_ids=relevant,
        metadata={name: text_field(value) for name, value in sorted(fields.items()) if value is not None},
    )


def _strings(value: Any) -> tuple[str, ...] | None:
    """A string or a list of strings as a tuple; a CSV field may hold a JSON list. None where it is neither."""
    if value is None:
        return ()
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            listed = _listed(value)
            return (value,) if listed is None else listed
        return (value,)
    if isinstance(value, list) and all(isinstance(item, str | int) and not isinstance(item, bool) for item in value):
        return tuple(str(item) for item in value)
    return None


def _listed(text: str) -> tuple[str, ...] | None:
    """The items of a JSON list of strings; None where the text is none, but begins like one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # Also thousands of brackets or digits, which Python refuses to parse.
        return None
    return _strings(value) if isinstance(value, list) else None
