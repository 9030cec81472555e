"""Chunks: within the limit, exact spans, no gaps but white space, and an end on any input."""

import base64
import dataclasses
import logging
import random
import time
from itertools import pairwise

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from corag.chunking import chunk_document
from corag.generators.convert import converted_smollm2
from corag.settings import ChunkingSettings
from corag.tokens import load_tokenizer
from corag.values import Document
from tests.conftest import MODELS

TOKENIZER = load_tokenizer(converted_smollm2(MODELS))
BLOB = base64.b64encode(random.Random(0).randbytes(150_000)).decode()


def chunks_of(text, size=20, overlap=0):
    """The chunks of a document with that text."""
    return chunk_document(
        Document("doc", "Title", text, {"source": "x"}),
        TOKENIZER,
        ChunkingSettings(chunk_tokens=size, chunk_overlap=overlap),
    )


@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet=st.sampled_from("ab é夜ต\n.,。!? 👩‍🚀\u0301\r"), max_size=300),
    st.integers(5, 30),
    st.integers(0, 4),
)
def test_chunks_are_exact_spans_that_cover_the_text(text, size, overlap):
    """Every chunk is a span of the text; what lies between two is white space; positions and ids count up."""
    chunks = chunks_of(text, size, overlap)
    finished = 0
    for position, chunk in enumerate(chunks):
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.tokens == TOKENIZER.count(chunk.text)
        assert chunk.position == position
        assert chunk.end > finished
        assert not text[finished : chunk.start].strip()
        finished = chunk.end
    assert not text[finished:].strip()
    assert chunks == chunks_of(text, size, overlap)


@pytest.mark.parametrize("overlap", [0, 30])
@pytest.mark.parametrize(
    "text",
    [
        BLOB,
        "中文页面没有空格但是有很多字符和标点，" * 1800,
        "Double  spaces, and clauses; here. " * 300,
        "ไทยไม่มีช่องว่าง" * 300,
    ],
    ids=["blob", "Chinese", "spaces", "Thai"],
)
def test_no_chunk_exceeds_the_limit(text, overlap):
    """ING-04: whatever the text is made of, its chunks measure at most the limit, overlap included."""
    chunks = chunks_of(text, 100, overlap)
    assert len(chunks) > 1
    assert max(chunk.tokens for chunk in chunks) <= 100


def test_sentences_stay_whole_where_they_fit():
    """A chunk ends at a sentence, its white space with it."""
    text = "One short sentence. Another short sentence here. A third one follows it. And a fourth."
    chunks = chunks_of(text, 12)
    assert len(chunks) > 1
    assert all(chunk.text.rstrip().endswith(".") for chunk in chunks)


def test_chinese_ends_at_its_full_stop():
    """Sentences of scripts without spaces are boundaries too."""
    assert [chunk.text for chunk in chunks_of("山很高。水很深。", 14)] == ["山很高。", "水很深。"]


def test_a_grapheme_is_not_torn():
    """Characters of several code points stay together where they fit."""
    family = "e\u0301"
    for chunk in chunks_of(family * 200, 7):
        assert not chunk.text.startswith("\u0301")


def test_a_character_beyond_the_limit_is_kept_alone(caplog):
    """ING-04: it is emitted with a warning rather than lost."""
    with caplog.at_level(logging.WARNING):
        (chunk,) = chunks_of("🚀", 1)
    assert chunk.text == "🚀"
    assert "more than chunk_tokens" in caplog.text


def test_equal_paragraphs_are_chunks_of_their_own():
    """ING-06: ids come from the document and the position, not from the text."""
    paragraph = "The same paragraph stands here twice, word for word.\n\n"
    ids = [chunk.chunk_id for chunk in chunks_of(paragraph * 2, 13)]
    assert ids == ["doc#0000", "doc#0001"]


def test_metadata_and_title_travel_with_every_chunk():
    """A chunk can be filtered by what is known of its document."""
    (chunk,) = chunks_of("Short.")
    assert (chunk.doc_id, chunk.title, chunk.metadata) == ("doc", "Title", {"source": "x"})


def test_each_chunk_knows_its_heading():
    """The last heading at or before its beginning, white space aside; a field of that name in the record wins."""
    text = "Intro words here.\n\n## Mills\n\nThey grind rye all day.\n\n## Bells\n\nThey ring twice."
    headings = ((text.index("## Mills"), "Mills"), (text.index("## Bells"), "Bells"))
    document = Document("doc", "Title", text, {"source": "x"}, headings)
    chunks = chunk_document(document, TOKENIZER, ChunkingSettings(chunk_tokens=14))
    under = {chunk.metadata.get("heading"): chunk.text for chunk in chunks}
    assert set(under) == {None, "Mills", "Bells"}
    assert ("Intro" in under[None], "rye" in under["Mills"], "ring" in under["Bells"]) == (True, True, True)
    own = dataclasses.replace(document, metadata={"heading": "own"})
    assert {one.metadata["heading"] for one in chunk_document(own, TOKENIZER, ChunkingSettings())} == {"own"}


def test_a_lone_surrogate_counts_as_one_character():
    """Offsets stay those of the text as it was read."""
    text = "a \ud83d b"
    assert TOKENIZER.count(text) > 0
    assert all(0 <= start <= end <= len(text) for start, end in TOKENIZER.offsets(text))


@settings(max_examples=80, deadline=None)
@given(
    st.text(alphabet=st.sampled_from("ae,. \n\r夜。กำ\u0301\u200d👩🏽🚀🇫🇷क्षि"), max_size=120),
    st.integers(4, 12),
    st.integers(0, 3),
)
def test_chunks_begin_and_end_between_graphemes(text, size, overlap):
    """A boundary inside a character of several code points is only taken where it alone exceeds the limit."""
    fitting = [match.span() for match in regex.finditer(r"\X", text) if TOKENIZER.count(match.group()) <= size]
    for chunk in chunks_of(text, size, overlap):
        for start, end in fitting:
            assert not start < chunk.start < end
            assert not start < chunk.end < end


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.integers(1, 8), st.data())
def test_only_a_single_code_point_may_exceed_the_limit(text, size, data):
    """Whatever the text and however small the limit, chunking ends and keeps the limit."""
    overlap = data.draw(st.integers(0, size - 1))
    for chunk in chunks_of(text, size, overlap):
        assert chunk.tokens <= size or len(chunk.text) == 1


@pytest.mark.parametrize("overlap", [0, 30])
@pytest.mark.parametrize(
    "text",
    ["e" + "\u0301" * 3000, "👩\u200d" * 2000, "🇫🇷" * 3000, "word " + " " * 20_000 + "word", "." * 20_000],
    ids=["marks", "joined", "flags", "blanks", "dots"],
)
def test_odd_texts_keep_the_limit_too(text, overlap):
    """A grapheme without end is split, and rows of flags, blanks and dots take no more than a moment."""
    started = time.monotonic()
    assert all(chunk.tokens <= 100 for chunk in chunks_of(text, 100, overlap))
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("size", [8, 17])
def test_without_overlap_chunks_make_up_the_text(size):
    """Joined in order, they are the text itself, as no chunk here is white space alone."""
    text = "One short sentence; with a clause. 水很深。 ไทยไม่มีช่องว่าง\n\nAnother paragraph, here."
    assert "".join(chunk.text for chunk in chunks_of(text, size)) == text


@pytest.mark.parametrize("text", ["", " ", "\n\n\t \r\n", "\u3000"])
def test_a_blank_document_has_no_chunks(text):
    """No empty chunk is ever stored."""
    assert chunks_of(text) == []


def test_chunks_overlap_by_whole_words():
    """Neighbours share at most the overlap, and what is shared starts at a word."""
    text = " ".join(f"word{number}" for number in range(60))
    chunks = chunks_of(text, 20, 6)
    assert len(chunks) > 2
    for one, other in pairwise(chunks):
        shared = text[other.start : one.end]
        assert shared.startswith("word")
        assert TOKENIZER.count(shared) <= 6


def test_equal_paragraphs_of_two_documents_have_ids_of_their_own():
    """ING-06: each of the copies exists and points at its own document."""
    paragraph = "The same paragraph stands in both, word for word."
    settings_ = ChunkingSettings(chunk_tokens=20, chunk_overlap=0)
    one, other = (chunk_document(Document(doc_id, "", paragraph), TOKENIZER, settings_) for doc_id in ("a.md", "b.md"))
    assert [(chunk.chunk_id, chunk.doc_id) for chunk in one + other] == [("a.md#0000", "a.md"), ("b.md#0000", "b.md")]
