"""Ingest into real LanceDB tables, with a fast embedder and tokenizer where no real one is needed."""

import dataclasses
import hashlib
import multiprocessing
import re
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from corag.embedders import CachedEmbedder
from corag.embedders.minilm import MiniLM
from corag.errors import ConfigError, InputError, StoreError
from corag.ingest import IngestReport, Look, StorePlace, ingest
from corag.memo import Memo
from corag.readers import Reading
from corag.retrieval import retrieve
from corag.settings import ChunkingSettings, RetrievalSettings, StoreSettings
from corag.store import ChunkStore
from corag.survey import survey_documents
from corag.values import Document, Question
from corag.writer_lock import writer_lock


class Words:
    """A tokenizer whose tokens are words."""

    name = "words"

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where the words stand."""
        return [match.span() for match in re.finditer(r"\S+", text)]

    def count(self, text: str) -> int:
        """How many there are."""
        return len(self.offsets(text))

    def counts(self, texts: Sequence[str]) -> list[int]:
        """How many there are in each."""
        return [self.count(text) for text in texts]


class Hashing:
    """An embedder whose vectors follow from a hash of the text; none for texts with "poison"."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.name, self.revision, self.dimension, self.max_length, self.truncated = "hashing", "r1", 8, 64, 0
        self.asked: list[str] = []
        self.seconds = seconds

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors [n, 8] of length 1."""
        time.sleep(self.seconds)
        self.asked += texts
        self.truncated += sum(len(text.split()) > self.max_length for text in texts)
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) for text in texts]
        vectors = np.array([np.random.default_rng(seed).normal(size=8) for seed in seeds], np.float32).reshape(-1, 8)
        vectors[["poison" in text for text in texts]] = np.nan
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


CHUNKING = ChunkingSettings(chunk_tokens=8)


def document(doc_id: str, text: str, title: str = "", **metadata: str) -> Document:
    """A document."""
    return Document(doc_id, title, text, metadata)


def sentences(count: int, start: int = 0) -> str:
    """`count` sentences of eight words, no two alike."""
    return " ".join(f"Sentence number {index} tells of thing number {index}." for index in range(start, start + count))


DOCUMENTS = [document("007", sentences(3)), document("18_19", sentences(2, 10)), document("it's", sentences(1, 20))]


def given(documents: Sequence[Document]) -> Look:
    """A look at documents that are at hand."""
    return lambda stored, contents: survey_documents(Reading(list(documents), [], len(documents)), stored, contents)


def run(
    folder: Path,
    documents: Sequence[Document],
    embedder: Hashing | None = None,
    chunking: ChunkingSettings = CHUNKING,
    **options: object,
) -> IngestReport:
    """One ingest of `documents` into `folder`."""
    cached = CachedEmbedder(embedder or Hashing(), Memo(folder / "memo.sqlite"))
    place = StorePlace(str(folder / "lancedb"), StoreSettings())
    return ingest(given(documents), Words(), chunking, cached, place, lock=folder / "lock", **options)  # type: ignore[arg-type]


def reader(folder: Path) -> ChunkStore:
    """The store in `folder`."""
    return ChunkStore.open(str(folder / "lancedb"), StoreSettings(), Hashing())


def test_a_first_ingest_stores_every_document(tmp_path: Path) -> None:
    """Everything is added and counted, and each chunk is a span of its document."""
    done: list[int] = []
    report = run(tmp_path, DOCUMENTS, advance=done.append)
    assert (report.documents, report.chunks, report.added, report.changed, report.unchanged) == (3, 6, 3, 0, 0)
    assert (report.removed, report.rejected, report.truncated, report.embedded_texts) == (0, (), 0, 6)
    assert sum(done) == 3
    store = reader(tmp_path)
    assert store.version == report.version
    assert set(store.documents()) == {"007", "18_19", "it's"}
    found = store.search(Hashing().embed(["x"]), ["x"], 50)[0]
    texts = {one.doc_id: one.text for one in DOCUMENTS}
    assert all(texts[one.chunk.doc_id][one.chunk.start : one.chunk.end] == one.chunk.text for one in found)


def test_a_second_ingest_does_nothing(tmp_path: Path) -> None:
    """Unchanged documents cost no embedding and no version of the table."""
    first = run(tmp_path, DOCUMENTS)
    embedder = Hashing()
    second = run(tmp_path, DOCUMENTS, embedder, prune=True)
    assert (second.unchanged, second.added, second.changed, second.embedded_texts) == (3, 0, 0, 0)
    assert embedder.asked == []
    assert second.version == first.version


def test_a_changed_document_embeds_only_what_changed(tmp_path: Path) -> None:
    """STO-02: a new last sentence embeds one chunk; a new title or field embeds none, but is stored."""
    run(tmp_path, DOCUMENTS)
    embedder = Hashing()
    longer = dataclasses.replace(DOCUMENTS[0], text=DOCUMENTS[0].text + " " + sentences(1, 99))
    titled = document("18_19", DOCUMENTS[1].text, "New title", source="o'x")
    report = run(tmp_path, [longer, titled, DOCUMENTS[2]], embedder)
    assert (report.changed, report.unchanged, report.embedded_texts, report.chunks) == (2, 1, len(embedder.asked), 7)
    assert 1 <= len(embedder.asked) <= 2
    assert any("99" in text for text in embedder.asked)
    hits = reader(tmp_path).search(Hashing().embed(["x"]), ["x"], 9, "vector", {"source": "o'x"})[0]
    assert {(one.chunk.doc_id, one.chunk.title) for one in hits} == {("18_19", "New title")}


def test_a_shorter_document_leaves_no_old_chunk(tmp_path: Path) -> None:
    """After a document was cut, only its new chunks are left."""
    run(tmp_path, DOCUMENTS)
    report = run(tmp_path, [dataclasses.replace(DOCUMENTS[0], text=sentences(1))])
    assert (report.documents, report.chunks) == (3, 4)


def test_missing_documents_go_only_when_pruned(tmp_path: Path) -> None:
    """A document that is gone from the corpus stays by default and is removed with `prune`."""
    run(tmp_path, DOCUMENTS)
    assert run(tmp_path, DOCUMENTS[:1]).documents == 3
    report = run(tmp_path, DOCUMENTS[:1], prune=True)
    assert (report.removed, report.documents, report.chunks) == (2, 1, 3)
    with pytest.raises(InputError, match="empty the store"):
        run(tmp_path, [], prune=True)


def test_equal_texts_are_embedded_once_and_stored_twice(tmp_path: Path) -> None:
    """Two documents with one text share the embedding, and each has its own chunks."""
    embedder = Hashing()
    report = run(tmp_path, [document("a", sentences(2)), document("b", sentences(2))], embedder)
    assert (len(embedder.asked), report.chunks) == (2, 4)
    assert [one.doc_id for one in reader(tmp_path).all_chunks()] == ["a", "a", "b", "b"]


def test_a_bad_document_is_named_and_the_others_are_stored(tmp_path: Path) -> None:
    """STO-05: a document with a part that has no vector is rejected whole; its neighbours and former version stay."""
    bad = document("bad one", sentences(2) + " poison " + sentences(1, 5))
    report = run(tmp_path, [DOCUMENTS[0], bad, DOCUMENTS[1]])
    assert [(one.source, "vector" in one.reason) for one in report.rejected] == [("bad one", True)]
    assert (report.added, report.documents) == (2, 2)
    run(tmp_path, [document("bad one", "fine now")])
    assert run(tmp_path, [bad]).documents == 3


def test_doubled_ids_are_refused_before_any_write(tmp_path: Path) -> None:
    """Two documents of one id end the ingest, on the first run as on the second."""
    run(tmp_path, DOCUMENTS)
    for _ in range(2):
        with pytest.raises(InputError, match="'d1' stands twice"):
            run(tmp_path, [document("d1", "alpha"), document("d1", "beta")])
    assert set(reader(tmp_path).documents()) == {"007", "18_19", "it's"}


def test_other_chunking_or_titles_ingest_again(tmp_path: Path) -> None:
    """A new chunk size, or titles in front of the embedded texts, replaces every document's chunks."""
    run(tmp_path, DOCUMENTS)
    report = run(tmp_path, DOCUMENTS, chunking=ChunkingSettings(chunk_tokens=16))
    assert (report.changed, report.unchanged) == (3, 0)
    assert report.chunks < 6
    embedder = Hashing()
    titled = [dataclasses.replace(one, title="Title") for one in DOCUMENTS]
    run(tmp_path, titled, embedder, prepend_title=True)
    assert all(text.startswith("Title\n") for text in embedder.asked)
    assert not any(one.text.startswith("Title") for one in reader(tmp_path).all_chunks())
    under = [dataclasses.replace(one, title="Title", headings=((0, "Part"),)) for one in DOCUMENTS]
    run(tmp_path, under, embedder := Hashing(), prepend_title=True)
    assert all(text.startswith("Title\nPart\nSentence") for text in embedder.asked)
    assert {one.metadata["heading"] for one in reader(tmp_path).all_chunks()} == {"Part"}


def test_another_embedder_is_refused(tmp_path: Path) -> None:
    """Ingesting with other weights names both, and changes nothing."""
    version = run(tmp_path, DOCUMENTS).version
    other = Hashing()
    other.revision = "r2"
    with pytest.raises(StoreError, match=r"hashing \(r1\).*hashing \(r2\)"):
        run(tmp_path, DOCUMENTS, other)
    assert reader(tmp_path).version == version


def test_chunks_beyond_the_embedder(tmp_path: Path) -> None:
    """ING-10: chunks far longer than the embedder reads are refused at the start; a little longer ones are counted."""
    with pytest.raises(ConfigError, match=r"chunk_tokens \(2000\).*64 tokens"):
        run(tmp_path, DOCUMENTS, chunking=ChunkingSettings(chunk_tokens=2000))
    report = run(tmp_path, [document("long", "word " * 120)], chunking=ChunkingSettings(chunk_tokens=128))
    assert report.truncated == 1


def test_writes_are_batched(tmp_path: Path) -> None:
    """STO-06: versions follow the batches, not the documents; small later ingests add little, idle ones nothing."""
    many = [document(f"d{index:04d}", f"Short text number {index}.") for index in range(5000)]
    first = run(tmp_path, many)
    assert first.added == 5000
    assert first.version < 12
    for step in range(10):
        many = [*many, *(document(f"e{step}{index}", f"Later text {step} {index}.") for index in range(5))]
        last = run(tmp_path, many)
    assert last.version < first.version + 20
    assert [run(tmp_path, many).version for _ in range(3)] == [last.version] * 3


def test_a_writer_waits_and_says_so(tmp_path: Path) -> None:
    """While another ingest holds the lock a second one ends with one line after its wait."""
    with writer_lock(tmp_path / "lock", 0), pytest.raises(StoreError, match="another ingest"):
        run(tmp_path, DOCUMENTS, lock_wait_seconds=0.1)
    assert run(tmp_path, DOCUMENTS).added == 3


def slow_ingest(folder: Path) -> None:
    """Ingest forty documents, the first of them one a batch, half a second a batch."""
    run(folder, many_documents(), Hashing(seconds=0.5), commit_chunks=1)


def many_documents() -> list[Document]:
    """Forty documents of three chunks."""
    return [document(f"d{index:02d}", sentences(3, 10 * index)) for index in range(40)]


def processes() -> multiprocessing.context.ForkServerContext:
    """Processes that start quickly, because what they import is there, and share nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["test_ingest", "lancedb", "pyarrow", "filelock"])
    return context


@pytest.mark.slow
def test_a_killed_ingest_goes_on(tmp_path: Path) -> None:
    """After SIGKILL no document is half there, the lock is free, and the next ingest does the rest only."""
    victim = processes().Process(target=slow_ingest, args=(tmp_path,))
    victim.start()
    while not (tmp_path / "lancedb").exists() or len(reader_or_empty(tmp_path)) < 5:
        assert victim.exitcode is None
        time.sleep(0.05)
    victim.kill()
    victim.join()
    stored = len(reader_or_empty(tmp_path))
    assert 5 <= stored < 40
    assert reader(tmp_path).count == 3 * stored
    report = run(tmp_path, many_documents())
    assert (report.unchanged, report.added, report.chunks) == (stored, 40 - stored, 120)


def reader_or_empty(folder: Path) -> dict[str, str]:
    """The stored documents, none before there is a table."""
    try:
        return reader(folder).documents()
    except StoreError:
        return {}


@pytest.mark.slow
def test_eight_processes_leave_each_chunk_once(tmp_path: Path) -> None:
    """Eight ingests of the same documents at once all succeed, and every chunk is there once."""
    workers = [processes().Process(target=run, args=(tmp_path, many_documents())) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * 8
    store = reader(tmp_path)
    store.check_unique()
    assert (store.count, len(store.documents())) == (120, 40)


def test_a_fact_deep_in_a_document_is_found(tmp_path: Path) -> None:
    """ING-10: with chunks that the embedder reads whole, a fact at word 1500 of a document is the first candidate."""
    filler = " ".join(f"Paragraph {index} says nothing of note about ordinary days." for index in range(170))
    text = f"{filler} The secret code is QX-77."
    embedder = CachedEmbedder(MiniLM(None, 256, 32), Memo(None))
    chunking = ChunkingSettings(chunk_tokens=40)
    report = ingest(
        given([document("deep", text)]),
        Words(),
        chunking,
        embedder,
        StorePlace(str(tmp_path), StoreSettings()),
        lock=tmp_path / "lock",
    )
    assert report.truncated == 0
    store = ChunkStore.open(str(tmp_path), StoreSettings(), embedder)
    (found,) = retrieve(store, embedder, [Question("q", "What is the secret code?")], RetrievalSettings(top_k=3))
    assert "QX-77" in found.candidates[0].chunk.text
