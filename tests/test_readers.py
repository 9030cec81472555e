"""Reading documents: what comes through, and what is refused with its place and reason."""

import json

import pytest

from corag.errors import InputError
from corag.readers import read_documents
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


def test_the_headings_of_markdown_are_known(tmp_path):
    """Where each begins and what it says; code and the title are none."""
    text = "# Title\r\n\nIntro.\n\n## One  \nText.\n```\n## code\n```\n### Two\nText. #no\n#none\n"
    (tmp_path / "one.md").write_bytes(text.encode())
    (document,) = read(tmp_path).documents
    assert document.title == "Title"
    assert [(text[place:].split("\n")[0].strip(), words) for place, words in document.headings] == [
        ("## One", "One"),
        ("### Two", "Two"),
    ]


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
    for _ in range(2):
        with pytest.raises(InputError, match=r"docs\.jsonl:1 and .*docs\.jsonl:2"):
            read(path)


ODD_LINES = [
    (b'{"text": "a", "n": ' + b"9" * 5000 + b"}", "number is too long"),
    (b"[" * 100_000, "nested too deeply"),
    (b'{"text": "caf\xe9"}', "not UTF-8"),
    (b'["a"]', "not a JSON object but list"),
]


@pytest.mark.parametrize(("line", "reason"), ODD_LINES, ids=[reason for _, reason in ODD_LINES])
def test_no_line_stops_the_lines_after_it(tmp_path, line, reason):
    """Whatever a line holds, it is refused alone with its number."""
    (tmp_path / "docs.jsonl").write_bytes(b'{"text": "before"}\n' + line + b'\n{"text": "after"}\n')
    reading = read(tmp_path)
    assert [one.text for one in reading.documents] == ["before", "after"]
    (refused,) = reading.rejected
    assert refused.line == 2
    assert reason in refused.reason


@pytest.mark.parametrize(
    ("raw", "line", "reason"),
    [
        (b'doc_id,text\n1,good\n2,"open\n3,next\n', 3, "nothing from here on"),
        (b"doc_id,text\n1,good\n2,caf\xe9\n3,next\n", 3, "not UTF-8"),
        (b"doc_id,text,caf\xe9\n1,good,x\n", 1, "no row is read"),
        (b'doc_id,text\n1,"a\nb"\n2,"a"b\n3,next\n', 4, "not CSV"),
        (b"doc_id,text\n1,good,more\n", 2, "more fields"),
        (b"doc_id,text\n1\n", 2, "no field `text`"),
    ],
    ids=["open quote", "latin-1", "latin-1 header", "stray quote", "more fields", "fewer fields"],
)
def test_bad_rows_of_csv_are_named_with_their_line(tmp_path, raw, line, reason):
    """The message says how much of the file is lost."""
    (tmp_path / "docs.csv").write_bytes(raw)
    (refused,) = read(tmp_path).rejected
    assert refused.line == line
    assert reason in refused.reason


def test_a_bad_row_of_csv_costs_itself_alone(tmp_path):
    """The rows after a stray quote and after bytes that are not UTF-8 are read."""
    rows = [b"doc_id,text", b"1,one", b'2,"a"b', b"3,three", b"4,caf\xe9", b'5,"five, \nstill"', b"6"]
    (tmp_path / "docs.csv").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(rows))
    reading = read(tmp_path)
    assert [(one.doc_id, one.text) for one in reading.documents] == [
        ("1", "one"),
        ("3", "three"),
        ("5", "five, \nstill"),
    ]
    assert [one.line for one in reading.rejected] == [3, 5, 8]
    assert reading.read == 6


@pytest.mark.parametrize("rest", ['three",1', "three"])
def test_the_rest_of_a_faulty_row_is_no_record(tmp_path, rest):
    """What follows a line break inside the quotes of a row that broke looks like a row of its own."""
    rows = ["text,doc_id", '"one', 'says "two" and', rest, "four,2", '"say ""five""",3']
    (tmp_path / "docs.csv").write_text("\n".join(rows))
    reading = read(tmp_path)
    assert [(one.doc_id, one.text) for one in reading.documents] == [("2", "four"), ("3", 'say "five"')]
    assert [one.line for one in reading.rejected] == [2, 4]


@pytest.mark.parametrize("depth", [101, 480, 900])
def test_a_record_nested_too_deeply_is_refused_alone(tmp_path, depth):
    """It would overflow the stack of whoever walks through it."""
    deep = b'{"text": "a", "m": ' + b"[" * depth + b"]" * depth + b"}\n"
    (tmp_path / "docs.jsonl").write_bytes(deep + b'{"text": "b"}\n')
    reading = read(tmp_path)
    assert [one.text for one in reading.documents] == ["b"]
    assert [(one.line, "nested too deeply" in one.reason) for one in reading.rejected] == [(1, True)]


def test_a_row_of_parquet_that_is_not_utf8_is_refused_alone(tmp_path):
    """Parquet does not check its strings; a folder's name such as `lang=en` is no column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    offsets = b"".join(end.to_bytes(4, "little") for end in (0, 1, 2))
    texts = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"\xffb")])
    (tmp_path / "lang=en").mkdir()
    pq.write_table(pa.table({"text": texts}), tmp_path / "lang=en" / "docs.parquet")
    reading = read(tmp_path)
    assert [(one.doc_id, one.text, one.metadata) for one in reading.documents] == [("lang=en/docs.parquet#2", "b", {})]
    assert [(one.line, one.reason) for one in reading.rejected] == [(1, "not UTF-8")]


@pytest.mark.parametrize("doc_id", [True, ["a"], {"a": 1}])
def test_an_id_that_has_no_one_spelling_is_refused(tmp_path, doc_id):
    """A document's id is a string or a number."""
    write_rows(tmp_path / "docs.jsonl", [{"doc_id": doc_id, "text": "a"}])
    (refused,) = read(tmp_path).rejected
    assert "`doc_id` is" in refused.reason


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.csv", "docs.txt", "docs.md", "docs.parquet"])
def test_a_file_of_zero_bytes_is_told(tmp_path, name):
    """It is named, and its neighbour is read."""
    (tmp_path / name).write_bytes(b"")
    (tmp_path / "good.txt").write_text("Good.")
    reading = read(tmp_path)
    assert [one.doc_id for one in reading.documents] == ["good.txt"]
    assert [one.source for one in reading.rejected] == [str(tmp_path / name)]
    assert reading.read == 2


def test_a_file_that_is_no_parquet_is_rejected_alone(tmp_path):
    """The other files of the folder are read."""
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    (tmp_path / "b.txt").write_text("Good.")
    reading = read(tmp_path)
    assert [one.doc_id for one in reading.documents] == ["b.txt"]
    assert [(one.line, "no parquet file" in one.reason) for one in reading.rejected] == [(None, True)]


def test_bytes_that_are_no_text_are_rejected(tmp_path):
    """A binary file under a text suffix does not become a document."""
    (tmp_path / "one.txt").write_bytes(bytes(range(256)) * 8)
    reading = read(tmp_path)
    assert not reading.documents
    assert "save it as UTF-8" in reading.rejected[0].reason


@pytest.mark.parametrize(
    ("patterns", "ignore", "ids"),
    [
        (("**/*",), (), ["B.txt", "a.md", "sub/a.md", "sub/deep/c.txt"]),
        (("**/*.md",), (), ["a.md", "sub/a.md"]),
        (("**/*",), ("sub/*",), ["B.txt", "a.md"]),
        (("**/*",), ("**/a.md",), ["B.txt", "sub/deep/c.txt"]),
        (("sub/deep/*", "*.txt"), (), ["B.txt", "sub/deep/c.txt"]),
        ((), (), []),
    ],
)
def test_patterns_choose_among_the_files_of_a_folder(tmp_path, patterns, ignore, ids):
    """Patterns match the path below the folder; hidden folders are never entered."""
    for name in ("B.txt", "a.md", "sub/a.md", "sub/deep/c.txt", ".git/x.md", "sub/.x/y.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Text of {name}.")
    reading = read_documents([str(tmp_path)], patterns, ignore)
    assert [one.doc_id for one in reading.documents] == ids


def test_the_same_record_twice_is_kept_once(tmp_path):
    """A repetition is told with the place of the first and counts among what was read."""
    write_rows(tmp_path / "docs.jsonl", [{"id": "d", "text": "one"}] * 2)
    reading = read(tmp_path)
    assert len(reading.documents) == 1
    assert reading.read == 2
    assert "docs.jsonl:1" in reading.rejected[0].reason


def test_records_without_an_id_are_named_after_their_line(tmp_path):
    """Blank lines count, so that the id leads to the record; numbers become text."""
    (tmp_path / "docs.jsonl").write_text('{"text": "a"}\n\n{"text": "b", "id": null}\n{"text": "c", "id": 0}\n')
    assert [one.doc_id for one in read(tmp_path).documents] == ["docs.jsonl#1", "docs.jsonl#3", "0"]


def test_metadata_that_changes_its_kind_loses_no_row(tmp_path):
    """ING-08: a field that is null for thousands of lines and then an object."""
    rows = [{"id": str(number), "text": "t", "meta": None} for number in range(3000)]
    write_rows(tmp_path / "docs.jsonl", [*rows, {"id": "last", "text": "t", "meta": {"src": "x"}}])
    documents = read(tmp_path).documents
    assert len(documents) == 3001
    assert documents[0].metadata == {}
    assert documents[-1].metadata == {"meta": '{"src": "x"}'}
