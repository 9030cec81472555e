"""The bundled sample: enough of it, and every reference stands in the documents that it names."""

import json
import re

import pytest

from corag.questions import SAMPLE_QUESTIONS, read_questions
from corag.readers import read_documents
from corag.words import normalized

KINDS = {"one_fact", "two_facts", "explanation", "comparison"}


@pytest.fixture(scope="module")
def documents():
    """The documents by id."""
    reading = read_documents(["sample"], ("**/*",), ())
    assert not reading.rejected
    return {document.doc_id: document for document in reading.documents}


@pytest.fixture(scope="module")
def records():
    """The raw question records, evidence included."""
    return [json.loads(line) for line in SAMPLE_QUESTIONS.read_text(encoding="utf-8").split("\n") if line]


def test_there_are_enough_documents_of_some_length(documents):
    """At least sixty, of 300 words (Chinese: 300 characters) and more, about a fifth not in English."""
    assert len(documents) >= 60
    for doc_id, document in documents.items():
        size = len(document.text) if doc_id.startswith("zh/") else len(document.text.split())
        assert size >= 300, doc_id
    foreign = sum(doc_id.startswith(("zh/", "fr/")) for doc_id in documents)
    assert 0.15 <= foreign / len(documents) <= 0.25


def test_there_are_enough_questions_of_every_kind(records):
    """At least 120 with unique ids, the four kinds in both parts, a third with two pieces of evidence or more."""
    assert len(records) >= 120
    assert len({record["qid"] for record in records}) == len(records)
    for split in ("train", "held_out"):
        assert {record["kind"] for record in records if record["split"] == split} == KINDS
    assert sum(len(record["evidence"]) > 1 for record in records) >= len(records) / 3


def test_every_reference_stands_in_the_documents_that_it_names(documents, records):
    """Quotes are verbatim, the relevant documents are those quoted, and every number of a reference is quoted."""
    for record in records:
        quoted = {evidence["doc_id"] for evidence in record["evidence"]}
        assert quoted == set(record["relevant_ids"]), record["qid"]
        for evidence in record["evidence"]:
            assert evidence["quote"] in documents[evidence["doc_id"]].text, record["qid"]
        evidence_text = " ".join(evidence["quote"] for evidence in record["evidence"])
        for answer in record["answers"]:
            for number in re.findall(r"\d[\d,.]*\d|\d", answer):
                assert number in evidence_text, (record["qid"], number)


def test_no_question_is_on_both_sides(records):
    """What is held out is not trained on in other spelling."""
    sides = {}
    for record in records:
        assert sides.setdefault(normalized(record["question"]), record["split"]) == record["split"]


def test_near_duplicates_are_planted(documents):
    """Several documents share most of their sentences with another, so that retrieval has something to confuse."""
    sentences = {doc_id: set(document.text.split(". ")) for doc_id, document in documents.items()}
    pairs = [
        (one, other)
        for one in sentences
        for other in sentences
        if one < other and len(sentences[one] & sentences[other]) > len(sentences[one]) / 2
    ]
    assert len(pairs) >= 6


def test_the_split_is_read_by_name():
    """`sample` with a split gives that part only."""
    both = read_questions("sample").questions
    train, held_out = (read_questions("sample", split=split).questions for split in ("train", "held_out"))
    assert len(train) + len(held_out) == len(both)
    assert all(question.metadata["split"] == "train" for question in train)
