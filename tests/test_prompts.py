"""Prompts: the chunks in order, and nothing but the template's own placeholders filled in."""

from hypothesis import given
from hypothesis import strategies as st

from corag.prompts import JOINT, build_prompt
from corag.settings import PromptSettings

SETTINGS = PromptSettings(system="Be brief.", user="C: {context}\nQ: {question}", user_without_context="Q: {question}")


def test_chunks_stand_in_the_given_order():
    """The prompt joins the chunks by a blank line in the order of the search, not sorted."""
    prompt = build_prompt("why?", ["second", "first"], SETTINGS)
    assert prompt.user == "C: second\n\nfirst\nQ: why?"
    assert prompt.system == "Be brief."


def test_no_chunk_takes_the_template_without_context():
    """Without chunks the template for no context is used."""
    assert build_prompt("why?", [], SETTINGS).user == "Q: why?"


@given(question=st.text(), chunks=st.lists(st.text(), min_size=1, max_size=3))
def test_any_text_goes_in_unchanged(question, chunks):
    """Braces, placeholders and backslashes in a question or chunk are text, never a template."""
    expected = f"C: {JOINT.join(chunks)}\nQ: {question.strip()}"
    assert build_prompt(question, chunks, SETTINGS).user == expected


def test_placeholders_inside_a_chunk_stay():
    """A chunk that spells a placeholder does not get the question."""
    assert build_prompt("why?", ["{question} {0} {", r"\1"], SETTINGS).user == "C: {question} {0} {\n\n\\1\nQ: why?"
