"""Reading documents and questions: what comes through, and what is refused with its place and reason."""

import json

import pytest

from corag.errors import InputError
from corag.questions import LONGEST_QUESTION, question_id, read_questions
from corag.readers import read_documents
from corag.words import normalized, words
from tests.conftest import write_rows

EVERYTHING = ("**/*",)
FRENCH = "Le café était déjà fermé quand la fenêtre s'ouvrit ; le garçon, très étonné, leva la tête. " * 5


def read(*paths, ignore=()):
    """The reading of some paths."""
    return read_documents([str(path) for path in paths], EVERYTHING, ignore)


def test_a_folder_is_read_sorted_with_relative_ids(tmp_path):
    """Hidden and ignored files and unknown kinds are passed over; nested folders are part of the id."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.md").write_text("# Second\n\nText two.")
    (tmp_path / "a.txt").write_text("First line\nText one.")
    for name in (".hidden.md", "image.png", "draft.md"):
        (tmp_path / name).write_text("x")
    documents = read(tmp_path, ignore=("draft*",)).documents
    assert [(one.doc_id, one.title) for one in documents] == [("a.txt", "First line"), ("b/two.md", "Second")]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\xef\xbb\xbfbom\r\nand crlf", "bom\r\nand crlf"),
        (FRENCH.encode("latin-1"), FRENCH),
        (b"nul\x00byte", "nul\ufffdbyte"),
    ],
    ids=["byte-order mark", "latin-1", "NUL"],
)
def test_text_files_of_other_habits_are_read(tmp_path, raw, text):
    """The text is what a person would see."""
    (tmp_path / "one.txt").write_bytes(raw)
    (document,) = read(tmp_path).documents
    assert document.text == text


def test_an_empty_file_is_rejected_and_a_link_loop_ends(tmp_path):
    """A zero-byte file is named; a folder that links to itself is read once."""
    (tmp_path / "empty.md").write_bytes(b"")
    (tmp_path / "good.md").write_text("Good.")
    (tmp_path / "loop").symlink_to(tmp_path)
    reading = read(tmp_path)
    assert [one.doc_id for one in reading.documents] == ["good.md"]
    assert [(one.source.endswith("empty.md"), one.reason) for one in reading.rejected] == [(True, "empty")]
    assert reading.read == 2


@pytest.mark.parametrize("name", ["gone", "picture.png"])
def test_a_path_that_cannot_be_read_is_an_error(tmp_path, name):
    """What is named explicitly must be there and be of a known kind."""
    (tmp_path / "picture.png").write_bytes(b"x")
    with pytest.raises(InputError, match=name):
        read(tmp_path / name)


def test_records_survive_odd_files(tmp_path):
    """ING-08: byte-order mark, CRLF, U+2028, a surrogate, a blank and a torn line: nothing is lost or split."""
    lines = [
        b"\xef\xbb\xbf" + json.dumps({"doc_id": "a", "text": "one\u2028still one"}, ensure_ascii=False).encode(),
        b'{"doc_id": "b", "text": "bad \\ud83d end", "meta": null}',
        b"",
        b'{"doc_id": "c", "text": "with", "meta": {"src": "x"}}',
        b'{"doc_id": "d", "te',
    ]
    (tmp_path / "docs.jsonl").write_bytes(b"\r\n".join(lines))
    reading = read(tmp_path)
    assert [(one.doc_id, one.text) for one in reading.documents] == [
        ("a", "one\u2028still one"),
        ("b", "bad \ufffd end"),
        ("c", "with"),
    ]
    assert reading.documents[2].metadata == {"meta": '{"src": "x"}'}
    assert [(one.line, "not JSON" in one.reason) for one in reading.rejected] == [(5, True)]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_ids_stay_strings(tmp_path, suffix):
    """Ids such as 007 and 18_19 come through byte for byte from every format."""
    import pandas as pd

    rows = [{"doc_id": "007", "text": "a"}, {"doc_id": "18_19", "text": "b"}]
    path = tmp_path / f"docs{suffix}"
    if suffix == ".jsonl":
        write_rows(path, rows)
    elif suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        pd.DataFrame(rows).to_parquet(path)
    assert [one.doc_id for one in read(path).documents] == ["007", "18_19"]


def test_bad_records_are_named_with_their_line(tmp_path):
    """ING-05: empty, blank, null, missing and wrong texts; stored and refused add up to what was read."""
    texts = [{"text": "good"}, {"text": ""}, {"text": " \n"}, {"text": None}, {}, {"text": 7}]
    write_rows(tmp_path / "docs.jsonl", [{"doc_id": str(number), **text} for number, text in enumerate(texts)])
    reading = read(tmp_path)
    assert [one.line for one in reading.rejected] == [2, 3, 4, 5, 6]
    assert reading.read == len(reading.documents) + len(reading.rejected) == 6


def test_an_id_of_two_texts_is_refused_with_both_places(tmp_path):
    """ING-09: no silent winner."""
    path = tmp_path / "docs.jsonl"
    write_rows(path, [{"doc_id": "d1", "text": "alpha"}, {"doc_id": "d1", "text": "beta"}])
    with pytest.raises(InputError, match=r"docs\.jsonl:1 and .*docs\.jsonl:2"):
        read(path)


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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The Mill, of ARLEN!", ["the", "mill", "of", "arlen"]),
        ("Où ça ?", ["où", "ça"]),
        ("夜茶市1688年", ["夜", "茶", "市", "1688", "年"]),
        ("ﬁne ２", ["fine", "2"]),
        ("ตา", ["ต", "า"]),
        ("?!", []),
    ],
)
def test_words_of_any_script(text, found):
    """Spaced scripts give words, others characters; form and case do not matter."""
    assert words(text) == found


def test_questions_that_differ_in_spelling_only_are_equal():
    """SWP-06: case, spaces and punctuation do not make another question."""
    assert normalized("Who built  the Mill?") == normalized("who built the mill")
