"""Finding files below a folder and telling their encoding: nothing is lost without a word."""

import logging
import os

import pytest

from corag.errors import InputError
from corag.readers import read_documents

FRENCH = "Le café était déjà fermé quand la fenêtre s'ouvrit ; le garçon, très étonné, leva la tête. " * 5
RUSSIAN = "Мельница была построена у реки, и зимой она стояла без дела, пока не пришёл новый мельник. " * 5
CHINESE = "这座磨坊建在河边，冬天它总是停着，直到新的磨坊主来到这里。" * 8
JAPANESE = "この水車小屋は川のそばに建てられ、冬のあいだは止まっていました。" * 8


def read(*paths):
    """The reading of everything below some paths."""
    return read_documents([str(path) for path in paths], ("**/*",), ())


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Plain text of a mill.", "utf-16-le"),
        ("Plain text of a mill.", "utf-16-be"),
        ("山水 mill", "utf-16"),
        ("山水 mill", "utf-32"),
        ("山水 mill", "utf-8-sig"),
        (FRENCH, "cp1252"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "utf-16"),
        (CHINESE, "gb18030"),
        (JAPANESE, "shift_jis"),
    ],
)
def test_text_of_many_encodings_is_read(tmp_path, text, encoding):
    """With and without a mark; the mark is not part of the text."""
    (tmp_path / "one.txt").write_bytes(text.encode(encoding))
    (document,) = read(tmp_path).documents
    assert document.text == text


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        (FRENCH.encode() + b"\xff" + FRENCH.encode(), len(FRENCH.encode())),
        (CHINESE.encode()[:-1], len(CHINESE.encode()) - 3),
        (b"\xef\xbb\xbfone \xff", 4),
        ("The café is open. ".encode() * 20 + b"\xe9" + "The café is open.".encode(), 19 * 20),
        ("5 € and 7 €, ".encode() * 20 + b"\xff" + "5 €.".encode(), 17 * 20),
    ],
    ids=["stray byte", "torn end", "behind a mark", "like Japanese", "like cp1252"],
)
def test_damaged_utf8_is_not_taken_for_another_encoding(tmp_path, raw, place):
    """Read as something else, the whole text would be garbled: the place of the damage is told instead."""
    (tmp_path / "one.txt").write_bytes(raw)
    (tmp_path / "two.txt").write_text("Good.")
    reading = read(tmp_path)
    assert [one.doc_id for one in reading.documents] == ["two.txt"]
    assert f"byte {place}" in reading.rejected[0].reason


@pytest.mark.parametrize("text", ["one\r\ntwo\rthree\n\nfour", "x" * 1_000_000, "a\u2028b\x0bc\x1cd"])
def test_line_ends_stay_as_they_are(tmp_path, text):
    """Offsets refer to the text of the file."""
    (tmp_path / "one.txt").write_bytes(text.encode())
    (document,) = read(tmp_path).documents
    assert document.text == text


def make_pipe(folder):
    """A name that would make whoever opens it wait for ever."""
    os.mkfifo(folder / "bad.txt")


def make_dangling_link(folder):
    """A link to a file that is gone."""
    (folder / "bad.txt").symlink_to(folder / "gone.txt")


def make_loop_of_links(folder):
    """Two links that lead to each other."""
    (folder / ".other.txt").symlink_to(folder / "bad.txt")
    (folder / "bad.txt").symlink_to(folder / ".other.txt")


@pytest.mark.parametrize("make", [make_pipe, make_dangling_link, make_loop_of_links])
def test_what_cannot_be_opened_is_told(tmp_path, make):
    """Its neighbour is read."""
    make(tmp_path)
    (tmp_path / "good.txt").write_text("Good.")
    reading = read(tmp_path)
    assert [one.doc_id for one in reading.documents] == ["good.txt"]
    assert [one.source for one in reading.rejected] == [str(tmp_path / "bad.txt")]
    assert reading.read == 2


@pytest.mark.parametrize("name", ["bad.txt", "bad"])
def test_what_may_not_be_read_is_told(tmp_path, name):
    """A file, or a folder with all that it holds."""
    path = tmp_path / name
    path.write_text("x") if path.suffix else path.mkdir()
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    (tmp_path / "good.txt").write_text("Good.")
    reading = read(tmp_path)
    path.chmod(0o700)
    assert [one.doc_id for one in reading.documents] == ["good.txt"]
    assert [one.source for one in reading.rejected] == [str(path)]


def test_a_link_to_a_folder_elsewhere_is_followed_once(tmp_path):
    """Links back into a folder that is read in its own place end there."""
    corpus, outside = tmp_path / "corpus", tmp_path / "outside"
    (outside / "sub").mkdir(parents=True)
    corpus.mkdir()
    (outside / "sub" / "a.txt").write_text("Outside.")
    (outside / "sub" / "up").symlink_to(outside)
    (outside / "back").symlink_to(corpus)
    (corpus / "b.txt").write_text("Inside.")
    (corpus / "one").symlink_to(outside)
    (corpus / "two").symlink_to(outside / "sub")
    (corpus / "up").symlink_to(tmp_path)
    assert [one.doc_id for one in read(corpus).documents] == ["b.txt", "one/sub/a.txt"]


def test_a_name_that_is_not_utf8_becomes_text(tmp_path):
    """Whatever stores the id can hold it."""
    with open(os.fsencode(tmp_path) + b"/caf\xe9.txt", "wb") as file:  # noqa: PTH123 - a name of bytes
        file.write(b"Text.")
    (document,) = read(tmp_path).documents
    assert document.doc_id == "caf\\xe9.txt"


def test_files_of_other_kinds_are_counted(tmp_path, caplog):
    """How many were passed over stands in the log."""
    for name in ("a.png", "b.zip", "c.txt"):
        (tmp_path / name).write_text("x")
    with caplog.at_level(logging.INFO):
        assert len(read(tmp_path).documents) == 1
    assert "2 files of other kinds" in caplog.text


def test_a_path_that_is_neither_file_nor_folder_is_an_error(tmp_path):
    """Reading a pipe would never end."""
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(InputError, match=r"pipe\.txt"):
        read(tmp_path / "pipe.txt")
