"""Reading questions: ids, references, and what is refused with its line and reason."""

import json

import pytest

from corag.errors import InputError
from corag.quarantine import LONGEST_EXCERPT
from corag.questions import LONGEST_QUESTION, question_id, read_questions
from tests.conftest import write_rows


def read(path, *rows):
    """The reading of those records."""
    write_rows(path, rows)
    return read_questions(str(path))


def test_questions_of_every_shape_are_read(tmp_path):
    """No qid, a number as qid, one reference or several, other fields as metadata."""
    path = tmp_path / "q.jsonl"
    write_rows(
        path,
        [
            {"question": "Who?", "answers": "Ann"},
            {"qid": 7, "question": "When?", "answers": ["1", "2"], "relevant_ids": ["a"], "kind": "one_fact"},
        ],
    )
    first, second = read_questions(str(path)).questions
    assert (first.qid, first.answers) == (question_id("Who?"), ("Ann",))
    assert (second.qid, second.answers, second.relevant_ids) == ("7", ("1", "2"), ("a",))
    assert second.metadata == {"kind": "one_fact"}


def test_csv_questions_may_hold_lists(tmp_path):
    """A JSON list in a field is several references."""
    path = tmp_path / "q.csv"
    path.write_text('qid,question,answers\n007,Who?,"[""Ann"", ""Anne""]"\n', encoding="utf-8")
    (question,) = read_questions(str(path)).questions
    assert (question.qid, question.answers) == ("007", ("Ann", "Anne"))


def test_bad_questions_are_refused_alone(tmp_path):
    """Each bad line is named with its reason; a repeated question is merged."""
    path = tmp_path / "q.jsonl"
    good = {"qid": "a", "question": "Who?"}
    write_rows(
        path,
        [
            good,
            {"qid": "b"},
            {"qid": "c", "question": " "},
            {"qid": "a", "question": "Else?"},
            good,
            {"qid": "d", "question": "x" * (LONGEST_QUESTION + 1)},
            {"qid": ["e"], "question": "Who?"},
            {"qid": "f", "question": "Who?", "answers": 3},
        ],
    )
    with path.open("ab") as file:
        file.write(b'{"qid": "g", "question": "\xff"}\n[1]\n{"qid"')
    reading = read_questions(str(path))
    assert [question.qid for question in reading.questions] == ["a"]
    assert [one.line for one in reading.rejected] == [2, 3, 4, 6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize("name", ["gone.jsonl", "q.txt"])
def test_a_missing_or_unknown_file_of_questions_is_an_error(tmp_path, name):
    """The path is in the message."""
    with pytest.raises(InputError, match=name):
        read_questions(str(tmp_path / name))


def test_a_question_without_a_qid_keeps_its_id(tmp_path):
    """The id depends on the text alone, not on the line, the spaces around it or the other fields."""
    path = tmp_path / "q.jsonl"
    (alone,) = read(path, {"question": "Who?"}).questions
    later = read(path, {"question": "When?"}, {"qid": "", "question": "Who?", "answers": "Ann"}).questions[1]
    assert alone.qid == later.qid == question_id(" Who?\n")
    assert question_id("Who?") != question_id("When?")


@pytest.mark.parametrize(("qid", "found"), [("007", "007"), (7, "7"), (0, "0"), ("18_19", "18_19")])
def test_a_qid_is_text(tmp_path, qid, found):
    """Numbers become text, and text stays byte for byte."""
    (question,) = read(tmp_path / "q.jsonl", {"qid": qid, "question": "Who?"}).questions
    assert question.qid == found


@pytest.mark.parametrize("qid", [1.5, True, ["a"], {"a": 1}])
def test_a_qid_of_another_kind_is_refused(tmp_path, qid):
    """An id that has no one spelling is none."""
    reading = read(tmp_path / "q.jsonl", {"qid": qid, "question": "Who?"})
    assert not reading.questions
    assert "`qid` is" in reading.rejected[0].reason


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (None, ()),
        ("", ()),
        ("  ", ()),
        ("Ann", ("Ann",)),
        ([], ()),
        (["Ann", " "], ("Ann",)),
        (["Ann", 7], ("Ann", "7")),
        ('["Ann", "Anne"]', ("Ann", "Anne")),
        ("[a note", ("[a note",)),
        ("[]", ()),
        ("[null]", ("[null]",)),
        ("[" * 100_000, ("[" * 100_000,)),
        ("[" + "9" * 5000, ("[" + "9" * 5000,)),
    ],
)
def test_references_are_a_string_or_a_list(tmp_path, answers, found):
    """Empty references are none."""
    (question,) = read(tmp_path / "q.jsonl", {"question": "Who?", "answers": answers}).questions
    assert question.answers == found


@pytest.mark.parametrize("field", ["answers", "relevant_ids"])
@pytest.mark.parametrize("value", [3, {"a": 1}, [None], [["a"]], [True]])
def test_references_of_another_kind_are_refused(tmp_path, field, value):
    """The reason names the field."""
    reading = read(tmp_path / "q.jsonl", {"question": "Who?", field: value})
    assert not reading.questions
    assert f"`{field}`" in reading.rejected[0].reason


def test_a_bad_row_of_csv_stops_no_other(tmp_path):
    """Each bad row is named with its line."""
    path = tmp_path / "q.csv"
    path.write_bytes(b'qid,question\n1,Who?\n2,caf\xe9?\n3,"a"b\n4,When?\n')
    reading = read_questions(str(path))
    assert [one.qid for one in reading.questions] == ["1", "4"]
    assert [one.line for one in reading.rejected] == [3, 4]


def test_what_is_kept_of_a_refused_record_is_bounded(tmp_path):
    """A question of megabytes does not stay in memory."""
    (refused,) = read(tmp_path / "q.jsonl", {"question": "x" * 10_000_000}).rejected
    assert len(refused.record) <= LONGEST_EXCERPT


def test_a_qid_of_two_questions_is_refused_for_the_second(tmp_path):
    """A number and its spelling are one qid; the first question stays, with its references."""
    reading = read(
        tmp_path / "q.jsonl",
        {"qid": 1, "question": "Who?", "answers": "Ann"},
        {"qid": "1", "question": "When?"},
        {"qid": "1", "question": "Who?", "answers": "Anne"},
    )
    assert [(one.qid, one.answers) for one in reading.questions] == [("1", ("Ann",))]
    assert [one.line for one in reading.rejected] == [2]
    assert "'1'" in reading.rejected[0].reason


@pytest.mark.parametrize(("length", "kept"), [(LONGEST_QUESTION, 1), (LONGEST_QUESTION + 1, 0)])
def test_the_longest_question(tmp_path, length, kept):
    """A question at the bound is kept, a longer one refused."""
    reading = read(tmp_path / "q.jsonl", {"question": "x" * length})
    assert (len(reading.questions), len(reading.rejected)) == (kept, 1 - kept)


@pytest.mark.parametrize("raw", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_a_file_without_records_has_no_questions(tmp_path, raw):
    """It is the caller who knows whether that is a mistake."""
    path = tmp_path / "q.jsonl"
    path.write_bytes(raw)
    reading = read_questions(str(path))
    assert (reading.questions, reading.rejected) == ([], [])


def test_a_split_chooses_by_the_field(tmp_path):
    """Records of another split or of none are left out without being refused."""
    path = tmp_path / "q.jsonl"
    splits = {"a": "train", "b": "held_out", "c": None}
    write_rows(path, [{"qid": qid, "question": f"{qid}?", "split": split} for qid, split in splits.items()])
    for split, qids in (("train", ["a"]), ("held_out", ["b"]), ("other", []), (None, ["a", "b", "c"])):
        reading = read_questions(str(path), split)
        assert [one.qid for one in reading.questions] == qids
        assert not reading.rejected


def test_other_fields_become_text(tmp_path):
    """Strings stay as they are, other values become JSON, and null is left out."""
    fields = {"kind": "one_fact", "level": 2, "tags": ["a"], "nothing": None}
    (question,) = read(tmp_path / "q.jsonl", {"question": "Who?", **fields}).questions
    assert question.metadata == {"kind": "one_fact", "level": "2", "tags": json.dumps(["a"])}


def test_a_parquet_file_of_questions_is_read(tmp_path):
    """Lists of strings are references."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "q.parquet"
    pq.write_table(pa.Table.from_pylist([{"qid": "007", "question": "Who?", "answers": ["Ann", "Anne"]}]), path)
    (question,) = read_questions(str(path)).questions
    assert (question.qid, question.answers) == ("007", ("Ann", "Anne"))
