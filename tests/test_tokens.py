"""Counting tokens without the special tokens of a model."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corag.errors import ModelError
from corag.packaged import minilm_folder
from corag.settings import GeneratorSettings
from corag.tokens import generator_tokenizer, load_tokenizer

TOKENIZER = load_tokenizer(minilm_folder())
TEXTS = st.text(alphabet=st.characters(exclude_categories=()), max_size=80)


@pytest.mark.parametrize(("text", "count"), [("", 0), ("   ", 0), ("hello world", 2), ("山水", 2)])
def test_tokens_are_counted_without_special_ones(text, count):
    """A model's markers of beginning and end do not count."""
    assert TOKENIZER.count(text) == count


def test_long_texts_are_counted_whole():
    """The truncation and padding that the file of the tokenizer asks for are off."""
    assert TOKENIZER.count("word " * 3000) == 3000
    assert TOKENIZER.counts(["word", "word " * 700]) == [1, 700]


@settings(max_examples=50, deadline=None)
@given(st.lists(TEXTS, max_size=5))
def test_many_texts_count_as_each(texts):
    """Counting together is counting one by one, lone surrogates included."""
    assert TOKENIZER.counts(texts) == [TOKENIZER.count(text) for text in texts]


@settings(max_examples=50, deadline=None)
@given(TEXTS)
def test_offsets_lie_in_the_text_in_order(text):
    """One pair a token, in characters of the text as it was given."""
    offsets = TOKENIZER.offsets(text)
    assert len(offsets) == TOKENIZER.count(text)
    assert offsets == sorted(offsets)
    assert all(0 <= start <= end <= len(text) for start, end in offsets)


def test_offsets_count_characters_and_not_bytes():
    """What a pair cuts out is the token, behind a surrogate and outside the basic plane too."""
    text = "é \ud83d 🚀 mill"
    start, end = TOKENIZER.offsets(text)[-1]
    assert text[start:end] == "mill"


def test_the_name_is_the_folder_or_given():
    """It is recorded with the counts."""
    assert TOKENIZER.name == minilm_folder().name
    assert load_tokenizer(minilm_folder(), "minilm").name == "minilm"


def test_the_configured_tokenizer_comes_first(tmp_path):
    """A served model's own tokenizer is named in the configuration."""
    settings = GeneratorSettings(tokenizer=str(minilm_folder()))
    assert generator_tokenizer(settings, tmp_path).count("hello world") == 2


def test_a_folder_without_a_tokenizer_is_an_error(tmp_path):
    """The message names the folder and what it lacks."""
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)


def test_a_broken_tokenizer_is_an_error_of_one_line(tmp_path):
    """What the library says is shortened to a line."""
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError) as caught:
        load_tokenizer(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
