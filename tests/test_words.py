"""Words of any script, and texts that are equal but for their spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corag.words import normalized, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The Mill, of ARLEN!", ["the", "mill", "of", "arlen"]),
        ("Où ça ?", ["où", "ça"]),
        ("夜茶市1688年", ["夜", "茶", "市", "1688", "年"]),
        ("ﬁne ２", ["fine", "2"]),
        ("ตา", ["ต", "า"]),
        ("ユーザーID", ["ユ", "ー", "ザ", "ー", "id"]),
        ("?!", []),
    ],
)
def test_words_of_any_script(text, found):
    """Spaced scripts give words, others characters; form and case do not matter."""
    assert words(text) == found


def test_questions_that_differ_in_spelling_only_are_equal():
    """SWP-06: case, spaces and punctuation do not make another question."""
    assert normalized("Who built  the Mill?") == normalized("who built the mill")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("cafe\u0301", "caf\u00e9"),
        ("a\u00a0b\u2028c", "a b c"),
        ("Ｗｈｏ？", "who"),
        ("", " ?!\n"),
    ],
)
def test_spellings_of_one_text_are_equal(one, other):
    """Case, composition, width, spaces and punctuation do not count."""
    assert normalized(one) == normalized(other)


@pytest.mark.parametrize(("one", "other"), [("in 1702", "in 1703"), ("ou", "où"), ("山高", "山低"), ("ab", "a b")])
def test_texts_that_say_something_else_stay_different(one, other):
    """Numbers, accents and word borders count."""
    assert normalized(one) != normalized(other)


@given(st.text(), st.text())
def test_words_of_two_texts_are_those_of_each(one, other):
    """A line break between two texts separates their words."""
    assert words(f"{one}\n{other}") == words(one) + words(other)


@given(st.text())
def test_words_are_neither_empty_nor_spaced(text):
    """No word holds white space, so that joining them by spaces loses nothing."""
    found = words(text)
    assert normalized(text).split() == found
    assert all(word.split() == [word] for word in found)
