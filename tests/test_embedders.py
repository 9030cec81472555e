"""The embedders on the packaged models, and what they share."""

import json
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corag.embedders import CachedEmbedder, Embedder, load_embedder, valid_rows
from corag.embedders.base import clean, embed_by_length, normalize
from corag.embedders.minilm import MiniLM
from corag.embedders.revision import folder_revision
from corag.errors import ConfigError, ModelError
from corag.memo import Memo
from corag.packaged import minilm_folder
from corag.settings import EmbedderSettings

TEXTS = [
    "The heron stands in the shallow river.",
    "",
    "北京是中国的首都。",
    "Le héron attend au bord de l'eau. " * 12,
    "bad \ud83d end",
    "A river heron waits in shallow water.",
]


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    """The packaged MiniLM."""
    return MiniLM(None, max_length=512, batch_size=4)


@pytest.fixture(scope="module")
def static() -> Embedder:
    """The packaged wordllama."""
    return load_embedder(EmbedderSettings(kind="static"))


def test_minilm_agrees_with_sentence_transformers(minilm: MiniLM) -> None:
    """Vectors equal those of the reference library on the same folder."""
    from sentence_transformers import SentenceTransformer

    reference = SentenceTransformer(str(minilm_folder()), device="cpu", local_files_only=True)
    texts = [text for text in TEXTS if text == clean(text)]
    assert np.allclose(minilm.embed(texts), reference.encode(texts), atol=1e-5)


@pytest.mark.parametrize("kind", ["minilm", "static"])
def test_order_and_batch_change_nothing(kind: str, request: pytest.FixtureRequest) -> None:
    """Each text keeps its vector, of length 1, whatever stands beside it and in whatever order."""
    embedder = request.getfixturevalue(kind)
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    assert np.allclose(embedder.embed(TEXTS[::-1])[::-1], vectors, atol=1e-6, equal_nan=True)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert np.allclose(embedder.embed([text])[0], vector, atol=1e-6, equal_nan=True)
    assert np.allclose(np.linalg.norm(vectors[valid_rows(vectors)], axis=1), 1, atol=1e-5)
    assert embedder.embed([]).shape == (0, embedder.dimension)


@pytest.mark.parametrize("kind", ["minilm", "static"])
def test_like_texts_are_near(kind: str, request: pytest.FixtureRequest) -> None:
    """Two sentences about one thing are nearer than two about different things."""
    embedder = request.getfixturevalue(kind)
    first, second, other = embedder.embed([TEXTS[0], TEXTS[5], "The bank raised its interest rate."])
    assert first @ second > first @ other + 0.2


def test_long_texts_are_cut_and_counted() -> None:
    """A text beyond the model's length is cut there and counted; one within it is not."""
    embedder = MiniLM(None, max_length=16, batch_size=4)
    short, long = "one two three", "word " * 200
    vectors = embedder.embed([short, long, "word " * 14])
    assert embedder.truncated == 1
    assert embedder.max_length == 16
    assert np.allclose(vectors[1], vectors[2], atol=1e-6)
    embedder.embed(["x" * 5_000_000])
    assert embedder.truncated == 2


def test_static_reads_long_texts_whole(static: Embedder) -> None:
    """The static embedder has no limit: the end of a long text still counts."""
    long = "river " * 3000
    assert not np.allclose(static.embed([long])[0], static.embed([long + "finance " * 3000])[0], atol=1e-3)
    assert static.truncated == 0


def test_static_names_texts_without_a_vector(static: Embedder) -> None:
    """A text without a word has no vector, and does not touch its neighbours."""
    assert valid_rows(static.embed(["river", "  \n", "water"])).tolist() == [True, False, True]


def test_token_vectors_are_the_single_tokens(minilm: MiniLM) -> None:
    """One vector of length 1 a token, special tokens left out, the same alone and in a batch."""
    texts = ["", "a heron", TEXTS[3]]
    found = minilm.token_vectors(texts)
    assert [len(one) for one in found[:2]] == [0, 2]
    for text, vectors in zip(texts, found, strict=True):
        assert vectors.shape[1] == minilm.dimension
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        assert np.allclose(minilm.token_vectors([text])[0], vectors, atol=1e-5)


def test_packaged_models_need_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading the packaged models opens no connection."""

    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    for kind in ("minilm", "static"):
        assert load_embedder(EmbedderSettings(kind=kind)).dimension > 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "model", "message"),
    [
        ("minilm", "/no/such/folder", "no such model folder"),
        ("flag", "./nowhere", "no such model folder"),
        ("minilm", "not a name", "correct the name"),
        ("flag", None, "embedder.model is empty"),
        ("static", "anything", "remove embedder.model"),
    ],
)
def test_a_missing_model_is_named(kind: str, model: str | None, message: str) -> None:
    """A model that cannot be had ends in one line that says what to change."""
    with pytest.raises((ModelError, ConfigError), match=message) as caught:
        load_embedder(EmbedderSettings(kind=kind, model=model))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_an_unreachable_hub_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub name that was never downloaded ends at once where no hub answers."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=r"some/unheard-of-model.*download the model beforehand"):
        load_embedder(EmbedderSettings(kind="flag", model="some/unheard-of-model"))


def test_a_folder_with_other_pooling_is_refused(tmp_path: Path) -> None:
    """A folder that says it pools by its first token is not silently read by the mean."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    with pytest.raises(ModelError, match=r"embedder\.kind: flag"):
        MiniLM(str(tmp_path), 512, 4)


def test_flag_reads_a_folder(minilm: MiniLM) -> None:
    """FlagEmbedding on the packaged folder gives the same vectors and revision, and counts what it cuts."""
    flag = load_embedder(EmbedderSettings(kind="flag", model=str(minilm_folder()), max_length=64))
    texts = [TEXTS[0], TEXTS[2], "word " * 100]
    assert np.allclose(flag.embed(texts)[:2], minilm.embed(texts)[:2], atol=1e-5)
    assert (flag.revision, flag.dimension, flag.truncated) == (minilm.revision, 384, 1)
    assert flag.embed([]).shape == (0, 384)


def test_the_revision_follows_the_content(tmp_path: Path) -> None:
    """A copy of a folder has its revision; another configuration or other weights have another."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("config.json", "tokenizer.json", "vocab.txt"):
        shutil.copy(minilm_folder() / name, copy)
    (copy / "model.safetensors").write_bytes(bytes(3_000_000))
    first = folder_revision(copy)
    assert first == folder_revision(shutil.copytree(copy, tmp_path / "again"))
    (copy / "model.safetensors").write_bytes(bytes(2_999_999) + b"x")
    second = folder_revision(copy)
    (copy / "config.json").write_text("{}")
    assert len({first, second, folder_revision(copy)}) == 3


class Counting:
    """Wraps the static embedder: remembers what it was asked, and has no vector for one text."""

    def __init__(self, inner: Embedder) -> None:
        self.name, self.revision, self.dimension = inner.name, inner.revision, inner.dimension
        self.max_length, self.truncated, self.inner, self.asked = inner.max_length, 0, inner, []

    def embed(self, texts: list[str]) -> np.ndarray:
        """The inner vectors, NaN for "poison"."""
        self.asked += texts
        vectors = self.inner.embed(texts)
        vectors[[text == "poison" for text in texts]] = np.nan
        return vectors


def test_the_cache_embeds_each_text_once(static: Embedder, tmp_path: Path) -> None:
    """Equal texts and texts of an earlier run are not embedded again; vectors are the same to the bit."""
    counting = Counting(static)
    cached = CachedEmbedder(counting, Memo(tmp_path / "memo.sqlite"))
    texts = ["river", "bank", "river", "poison"]
    first = cached.embed(texts)
    assert counting.asked == ["river", "bank", "poison"]
    assert cached.embedded == 3
    again = CachedEmbedder(counting, Memo(tmp_path / "memo.sqlite"))
    assert np.array_equal(again.embed(texts), first, equal_nan=True)
    assert counting.asked[3:] == ["poison"]
    assert again.embed([]).shape == (0, static.dimension)


def test_the_cache_keeps_models_apart(static: Embedder) -> None:
    """Another revision or length of the same model shares no vector."""
    memo, counting = Memo(None), Counting(static)
    CachedEmbedder(counting, memo).embed(["river"])
    for field, value in (("revision", "other"), ("max_length", 7)):
        setattr(counting, field, value)
        CachedEmbedder(counting, memo).embed(["river"])
    assert counting.asked == ["river"] * 3


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 5))
def test_batches_by_length_restore_the_order(lengths: list[int], batch_size: int) -> None:
    """Whatever the lengths and the batch size, item i gets the vector of item i, in full batches longest first."""
    seen: list[int] = []

    def embed(batch: list[int]) -> np.ndarray:
        seen.extend(lengths[index] for index in batch)
        assert len(batch) <= batch_size
        return np.array([[index + 1.0, 1.0] for index in batch])

    vectors = embed_by_length(lengths, 2, batch_size, embed)
    assert np.allclose(vectors[:, 0] / vectors[:, 1], np.arange(1, len(lengths) + 1), atol=1e-4)
    assert seen == sorted(seen, reverse=True)


def test_normalize_marks_what_has_no_direction() -> None:
    """Zero, NaN and infinite rows become NaN; the others get length 1, very small and large ones too."""
    rows = np.array([[3, 4], [0, 0], [np.nan, 1], [np.inf, 1], [1e-30, 0], [3e30, 4e30]], dtype=np.float32)
    found = normalize(rows)
    assert valid_rows(found).tolist() == [True, False, False, False, True, True]
    assert np.allclose(found[[0, 4, 5]], [[0.6, 0.8], [1, 0], [0.6, 0.8]])
    assert not valid_rows(np.zeros((1, 2), np.float32)).any()


@given(st.text(alphabet=st.characters(), max_size=20))
def test_cleaned_text_is_valid_unicode(text: str) -> None:
    """Any text can be encoded after cleaning, and valid text is unchanged."""
    cleaned = clean(text)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert cleaned == text or "\ufffd" in cleaned or any("\ud800" <= one <= "\udfff" for one in text)
