"""Looking through a corpus: what is read again, what is passed over, and what pruning must leave alone."""

import json
import os
import uuid
from pathlib import Path

import fsspec
import pytest

from corag.errors import InputError
from corag.file_register import FileRegister
from corag.readers import read_documents
from corag.spool import Spool
from corag.survey import Survey, all_kinds, survey_documents, survey_files
from corag.values import Document

EVERYTHING = all_kinds(("**/*",), ())


class Corpus:
    """A folder, the register of its files, and what a store would hold after each ingest."""

    def __init__(self, root: Path) -> None:
        self.docs = root / "docs"
        self.docs.mkdir()
        self.register = FileRegister(root / "files.sqlite")
        self.root, self.stored, self.fingerprinted = root, {}, []

    def write(self, name: str, text: str | bytes) -> None:
        """Write a file as if some time ago."""
        path = self.docs / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(path, (1_700_000_000, 1_700_000_000))

    def fingerprint(self, document: Document) -> str:
        """A hash of the text; remembers that the document was read."""
        self.fingerprinted.append(document.doc_id)
        return f"{document.title}|{document.text}"

    def survey(self, *paths: str, mark: str = "m", prune: bool = False) -> Survey:
        """Look through the corpus, and store what is new."""
        self.fingerprinted = []
        spool = Spool(self.root)
        given = paths or (str(self.docs),)
        found = survey_files(given, EVERYTHING, self.stored, self.fingerprint, self.register, spool, mark)
        if prune:
            for gone in set(self.stored) - set(found.contents) - set(found.unreadable):
                del self.stored[gone]
        self.stored.update({one.doc_id: found.contents[one.doc_id] for one in found.documents})
        return found


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """An empty corpus."""
    return Corpus(tmp_path)


def jsonl(*records: object) -> str:
    """Records as lines; a string stands as it is."""
    return "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records)


def test_an_unchanged_file_is_not_read_again(corpus: Corpus) -> None:
    """The second look reads nothing, and still knows every document, every refusal and their number."""
    corpus.write("a.txt", "Alpha.")
    corpus.write("b.jsonl", jsonl({"doc_id": "007", "text": "Beta."}, "{torn", {"doc_id": "18_19", "text": "Gamma."}))
    first = corpus.survey()
    assert {one.doc_id for one in first.documents} == {"a.txt", "007", "18_19"} == set(corpus.fingerprinted)
    second = corpus.survey()
    assert (corpus.fingerprinted, len(second.documents)) == ([], 0)
    assert (second.contents, second.rejected, second.read) == (first.contents, first.rejected, 4)


def test_only_the_changed_file_is_read(corpus: Corpus) -> None:
    """A file of another size, or of another time, is read; only documents with another content are to be stored."""
    corpus.write("a.txt", "Alpha.")
    corpus.write("b.jsonl", jsonl({"doc_id": "1", "text": "One."}, {"doc_id": "2", "text": "Two."}))
    corpus.survey()
    corpus.write("b.jsonl", jsonl({"doc_id": "1", "text": "One."}, {"doc_id": "2", "text": "Too."}))
    assert [one.doc_id for one in corpus.survey().documents] == ["2"]
    assert corpus.fingerprinted == ["1", "2"]


def test_a_file_written_just_now_is_read_again(corpus: Corpus) -> None:
    """Its time would not tell of a second change within the same moment."""
    (corpus.docs / "a.txt").write_text("Alpha.")
    corpus.survey()
    assert len(corpus.survey().documents) == 0
    assert corpus.fingerprinted == ["a.txt"]


@pytest.mark.parametrize("lost", ["a document", "the settings"])
def test_a_file_is_read_again_when_the_store_or_the_settings_differ(corpus: Corpus, lost: str) -> None:
    """The register never stands for what is not in the store, or for what other settings made of a file."""
    corpus.write("a.txt", "Alpha.")
    corpus.survey()
    if lost == "a document":
        corpus.stored.clear()
    corpus.survey(mark="m" if lost == "a document" else "other")
    assert corpus.fingerprinted == ["a.txt"]
    assert set(corpus.stored) == {"a.txt"}


def test_another_path_to_a_file_gives_it_another_id(corpus: Corpus) -> None:
    """Named by itself a file has a shorter id than below a folder, whatever is remembered of it."""
    corpus.write("sub/a.txt", "Alpha.")
    corpus.survey()
    found = corpus.survey(str(corpus.docs / "sub"))
    assert set(found.contents) == {"a.txt"}


def test_a_removed_file_is_pruned(corpus: Corpus) -> None:
    """What is gone from the folder, or from a file that was read whole, goes."""
    corpus.write("a.txt", "Alpha.")
    corpus.write("b.jsonl", jsonl({"doc_id": "1", "text": "One."}, {"doc_id": "2", "text": "Two."}))
    corpus.survey()
    (corpus.docs / "a.txt").unlink()
    corpus.write("b.jsonl", jsonl({"doc_id": "1", "text": "One."}))
    assert not corpus.survey(prune=True).unreadable
    assert set(corpus.stored) == {"1"}


@pytest.mark.parametrize("bad", [b"", b"\xc3\xa9 \xc3\xa8 \xc3\xaa torn \xff"])
def test_a_file_that_cannot_be_read_today_deletes_nothing(corpus: Corpus, bad: bytes) -> None:
    """Its document stays through any number of prunes, until the file is mended or gone."""
    corpus.write("a.txt", "Alpha.")
    corpus.write("b.txt", "Beta.")
    corpus.survey()
    corpus.write("b.txt", bad)
    for _ in range(3):
        assert set(corpus.survey(prune=True).unreadable) == {"b.txt"}
        assert set(corpus.stored) == {"a.txt", "b.txt"}
    (corpus.docs / "b.txt").unlink()
    corpus.survey(prune=True)
    assert set(corpus.stored) == {"a.txt"}


def test_a_bad_record_deletes_no_record_of_its_file(corpus: Corpus) -> None:
    """The torn line may hold any of the documents that the file held before; mended, the file counts again."""
    lines = [{"doc_id": str(index), "text": f"Number {index}."} for index in range(4)]
    corpus.write("b.jsonl", jsonl(*lines))
    corpus.survey()
    corpus.write("b.jsonl", jsonl(lines[0], '{"doc_id": "1", "te', lines[3]))
    for _ in range(3):
        corpus.survey(prune=True)
        assert set(corpus.stored) == {"0", "1", "2", "3"}
    corpus.write("b.jsonl", jsonl(lines[0], lines[3]))
    corpus.survey(prune=True)
    assert set(corpus.stored) == {"0", "3"}


def test_a_folder_that_cannot_be_read_deletes_nothing(corpus: Corpus) -> None:
    """Whatever lay below it stays; here it has become a link to itself."""
    corpus.write("a.txt", "Alpha.")
    corpus.write("sub/b.txt", "Beta.")
    corpus.write("sub0.txt", "A neighbour in name only.")
    corpus.survey()
    (corpus.docs / "sub" / "b.txt").unlink()
    (corpus.docs / "sub").rmdir()
    (corpus.docs / "sub").symlink_to(corpus.docs / "sub")
    (corpus.docs / "sub0.txt").unlink()
    corpus.survey(prune=True)
    assert set(corpus.stored) == {"a.txt", "sub/b.txt"}


def test_of_equal_records_one_is_left_when_the_other_goes(corpus: Corpus) -> None:
    """The same record in two files is refused in the second, and taken from there once the first is gone."""
    record = {"doc_id": "x", "text": "Same."}
    corpus.write("a.jsonl", jsonl(record))
    corpus.write("b.jsonl", jsonl(record, {"doc_id": "y", "text": "Other."}))
    for _ in range(2):
        (refused,) = corpus.survey().rejected
        assert refused.source == f"{corpus.docs}/b.jsonl:1"
    (corpus.docs / "a.jsonl").unlink()
    found = corpus.survey(prune=True)
    assert (list(found.rejected), set(corpus.stored)) == ([], {"x", "y"})


def test_an_id_of_two_texts_is_refused_the_same_way_every_time(corpus: Corpus) -> None:
    """ING-09: both lines are named before anything is stored, on the first run as on later ones, across files too."""
    corpus.write("a.jsonl", jsonl({"doc_id": "d1", "text": "alpha"}, {"doc_id": "d2", "text": "x"}))
    corpus.survey()
    corpus.write("b.jsonl", jsonl({"doc_id": "d3", "text": "y"}, {"doc_id": "d1", "text": "beta"}))
    for _ in range(2):
        with pytest.raises(InputError, match=r"'d1' .*a\.jsonl:1 and .*b\.jsonl:2"):
            corpus.survey()
    assert set(corpus.stored) == {"d1", "d2"}


def memory_url(files: dict[str, bytes]) -> str:
    """A folder of its own in fsspec's memory, with these files."""
    folder = f"memory://corpus-{uuid.uuid4().hex}"
    for name, raw in files.items():
        with fsspec.open(f"{folder}/{name}", "wb") as file:
            file.write(raw)
    return folder


def test_files_behind_a_url_are_read_as_those_of_a_folder(corpus: Corpus) -> None:
    """Ids, order, refusals, hidden names, kinds; and what has not changed is not fetched again."""
    url = memory_url(
        {
            "b/two.md": b"# Two\n\nBeta.",
            "a.txt": b"Alpha.",
            ".hidden/x.txt": b"x",
            "picture.png": b"x",
            "empty.txt": b"",
            "rows.jsonl": b'{"doc_id": "007", "text": "Seven."}\n{torn\n',
            "table.parquet": b"no parquet",
        }
    )
    found = corpus.survey(url)
    assert list(found.contents) == ["a.txt", "b/two.md", "007"]
    assert [one.title for one in found.documents] == ["Alpha.", "Two", ""]
    name = url.removeprefix("memory://")
    places = [(one.source.rsplit(name, 1)[-1], one.line) for one in found.rejected]
    assert places == [("/empty.txt", None), ("/rows.jsonl", 2), ("/table.parquet", None)]
    assert "corag-" not in found.rejected[2].reason
    corpus.survey(url)
    assert corpus.fingerprinted == []
    with fsspec.open(f"{url}/a.txt", "wb") as file:
        file.write(b"Alpha, changed.")
    assert [one.doc_id for one in corpus.survey(url).documents] == ["a.txt"]


def test_a_single_url_and_a_file_url(corpus: Corpus) -> None:
    """One file behind a URL has its name as its id; `file://` is the folder itself."""
    url = memory_url({"deep/one.txt": b"One."})
    assert list(corpus.survey(f"{url}/deep/one.txt").contents) == ["one.txt"]
    corpus.write("a b.txt", "Alpha.")
    by_url = read_documents([f"file://{corpus.docs}"], ("**/*",), ())
    assert by_url == read_documents([str(corpus.docs)], ("**/*",), ())


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("memory://nothing-here", "no such file or folder"),
        ("nonsense://x/y", "nonsense"),
        ("gs://bucket/x", "package"),
        ("file:///nowhere/at/all", "no such file or folder"),
    ],
)
def test_a_url_that_leads_nowhere_is_an_error(corpus: Corpus, url: str, told: str) -> None:
    """One line that names the URL and what is wrong; a missing library is named."""
    with pytest.raises(InputError, match=told) as caught:
        corpus.survey(url)
    assert str(caught.value).startswith(url.removeprefix("file://")) or str(caught.value).startswith(url)
    assert "\n" not in str(caught.value)


def test_documents_at_hand_are_surveyed_alike(tmp_path: Path) -> None:
    """Only those whose hash is not stored are to be stored."""
    (tmp_path / "a.txt").write_text("Alpha.")
    (tmp_path / "b.txt").write_text("Beta.")
    reading = read_documents([str(tmp_path)], ("**/*",), ())
    found = survey_documents(reading, {"a.txt": "Alpha."}, lambda document: document.text)
    assert ([one.doc_id for one in found.documents], set(found.contents)) == (["b.txt"], {"a.txt", "b.txt"})


def test_a_spool_gives_back_what_it_got(tmp_path: Path) -> None:
    """Texts of any kind and size come back as they were, as often as asked for, and leave no file behind."""
    texts = ["a\u2028b\r\n", "lone \ud83d", "\x00", "夜🚀", "x" * (70 << 20)]
    documents = [
        Document(f"d{index}", "t\n", text, {"k": text[:9]}, ((index, "h"),)) for index, text in enumerate(texts)
    ]
    spool = Spool(tmp_path)
    for document in documents:
        spool.add(document)
    assert len(spool) == 5
    assert list(spool) == documents == list(spool)
    spool.close()
    assert list(tmp_path.iterdir()) == []
