"""Each public layout, from a small file of its form to a corpus and questions that corag's own readers take."""

import json

import pytest

from corag.errors import InputError
from corag.layouts import LAYOUTS, convert
from corag.questions import read_questions
from corag.records import read_records

MILL, BRIDGE = "The mill of Arlen was built in 1702.", "The bridge of Brock is 312 metres long."


def wikipassageqa(folder):
    """A folder with one document of two passages, and a question."""
    (folder / "document_passages.json").write_text(json.dumps({"7": {"0": MILL, "1": BRIDGE}}))
    (folder / "dev.tsv").write_text(
        'QID\tQuestion\tDocumentID\tDocumentName\tRelevantPassages\n5\tHow long is the "bridge"?\t7\tTowns.html\t0,1\n'
    )
    return folder


def msmarco_rows():
    """Two queries; the second has no answer and shares a passage."""
    passages = [
        {"passage_text": MILL, "is_selected": 0, "url": "http://a"},
        {"passage_text": BRIDGE, "is_selected": 1, "url": "http://b"},
    ]
    return [
        {"query_id": 1, "query": "how long", "query_type": "NUMERIC", "answers": ["312 metres"], "passages": passages},
        {
            "query_id": 2,
            "query": "who",
            "query_type": "PERSON",
            "answers": ["No Answer Present."],
            "passages": passages,
        },
    ]


def msmarco(folder):
    """JSON lines."""
    (folder / "dev.jsonl").write_text("\n".join(json.dumps(row) for row in msmarco_rows()))
    return folder / "dev.jsonl"


def msmarco_columns(folder):
    """One object of columns."""
    rows = msmarco_rows()
    columns = {name: {str(place): row[name] for place, row in enumerate(rows)} for name in rows[0]}
    (folder / "dev.json").write_text(json.dumps(columns))
    return folder / "dev.json"


def squad(folder):
    """One article of two paragraphs; the second question cannot be answered."""
    paragraphs = [
        {"context": MILL, "qas": [{"id": "a", "question": "When?", "is_impossible": True, "answers": []}]},
        {
            "context": BRIDGE,
            "qas": [{"id": "b", "question": "How long?", "answers": [{"text": "312"}, {"text": "312"}]}],
        },
    ]
    (folder / "dev.json").write_text(json.dumps({"data": [{"title": "Old_towns", "paragraphs": paragraphs}]}))
    return folder / "dev.json"


def hotpotqa(folder):
    """One question over two paragraphs, one of which supports the answer."""
    row = {
        "_id": "h",
        "question": "How long?",
        "answer": "312 metres",
        "type": "bridge",
        "supporting_facts": [["Brock", 0]],
        "context": [["Arlen", [MILL, " It grinds rye."]], ["Brock", [BRIDGE]]],
    }
    (folder / "dev.json").write_text(json.dumps([row]))
    return folder / "dev.json"


def musique(folder):
    """One question over two paragraphs, with another name for the answer."""
    row = {
        "id": "m",
        "question": "How long?",
        "answer": "312 metres",
        "answer_aliases": ["312 m"],
        "answerable": True,
        "paragraphs": [
            {"idx": 0, "title": "Arlen", "paragraph_text": MILL, "is_supporting": False},
            {"idx": 1, "title": "Brock", "paragraph_text": BRIDGE, "is_supporting": True},
        ],
    }
    (folder / "dev.jsonl").write_text(json.dumps(row))
    return folder / "dev.jsonl"


def beir(folder):
    """A folder with two documents, and a query that only the dev split judges beside one that none does."""
    (folder / "qrels").mkdir()
    rows = [{"_id": "d1", "title": "Arlen", "text": MILL}, {"_id": "d2", "title": "Brock", "text": BRIDGE}]
    (folder / "corpus.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    queries = [{"_id": "q1", "text": "How long?"}, {"_id": "q2", "text": "Nobody judged this"}]
    (folder / "queries.jsonl").write_text("\n".join(json.dumps(row) for row in queries))
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t2\nq1\td1\t0\n")
    return folder


@pytest.mark.parametrize(
    ("layout", "make", "answers"),
    [
        ("wikipassageqa", wikipassageqa, (f"{MILL} {BRIDGE}",)),
        ("msmarco", msmarco, ("312 metres",)),
        ("msmarco", msmarco_columns, ("312 metres",)),
        ("squad", squad, ("312",)),
        ("hotpotqa", hotpotqa, ("312 metres",)),
        ("musique", musique, ("312 metres", "312 m")),
        ("beir", beir, ()),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_layout_becomes_a_corpus_and_questions(tmp_path, layout, make, answers):
    """Each passage is one document, and the question names the document that answers it."""
    (tmp_path / "source").mkdir()
    done = convert(layout, make(tmp_path / "source"), tmp_path / "out")
    assert not done.rejected
    texts = {one.fields["doc_id"]: one.fields["text"] for one in read_records(tmp_path / "out" / "corpus.jsonl")}
    reading = read_questions(str(tmp_path / "out" / "questions.jsonl"))
    assert not reading.rejected
    assert (len(texts), len(reading.questions)) == (done.documents, done.questions)
    assert len(texts) == 2
    (asked,) = [one for one in reading.questions if "long" in one.question]
    assert asked.answers == answers
    assert BRIDGE in [texts[doc_id] for doc_id in asked.relevant_ids]
    assert layout == "wikipassageqa" or len(asked.relevant_ids) == 1


def test_a_question_without_an_answer_has_no_reference(tmp_path):
    """It is kept, so that an evaluation can count it, and nothing stands for its answer."""
    convert("msmarco", msmarco(tmp_path), tmp_path / "out")
    (_, unanswered) = read_questions(str(tmp_path / "out" / "questions.jsonl")).questions
    assert unanswered.answers == ()


def test_a_broken_record_stops_no_other(tmp_path):
    """It is named by file and place."""
    source = msmarco(tmp_path)
    source.write_text('{"query_id": 9}\n[1]\n{"half\n' + source.read_text())
    done = convert("msmarco", source, tmp_path / "out")
    assert (done.documents, done.questions) == (2, 2)
    assert [one.line for one in done.rejected] == [1, 2, 3]
    assert "passages" in done.rejected[0].reason


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_no_such_layout_is_refused(tmp_path, layout):
    """The message names the file, nothing is written, and what stood there stays."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "corpus.jsonl").write_text("kept")
    (tmp_path / "other.json").write_text('{"some": "thing"}')
    with pytest.raises(InputError, match=r"other\.json|no such file|no folder"):
        convert(layout, tmp_path / "other.json", out)
    assert [path.name for path in out.iterdir()] == ["corpus.jsonl"]
    assert (out / "corpus.jsonl").read_text() == "kept"


def test_an_unknown_layout_or_path_is_refused(tmp_path):
    """The known layouts are named."""
    with pytest.raises(InputError, match="wikipassageqa"):
        convert("magic", tmp_path, tmp_path / "out")
    with pytest.raises(InputError, match="no such file"):
        convert("squad", tmp_path / "absent.json", tmp_path / "out")


def test_the_command_says_what_it_wrote_and_what_it_could_not_read(tmp_path, monkeypatch):
    """Exit code 0 with the files to use, 1 where a record was broken, 2 for another layout; no traceback."""
    from typer.testing import CliRunner

    from flows.cli import app

    monkeypatch.setenv("CORAG_WORKSPACE", str(tmp_path / "ws"))
    source = msmarco(tmp_path)

    def run(layout):
        return CliRunner().invoke(app, ["convert", layout, str(source), str(tmp_path / "out")])

    done = run("msmarco")
    assert (done.exit_code, "2 documents" in done.stdout, "corpus.paths" in done.stdout) == (0, True, True)
    source.write_text("[1]\n" + source.read_text())
    assert run("msmarco").exit_code == 1
    assert run("squad").exit_code == 2
