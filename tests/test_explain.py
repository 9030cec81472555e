"""What an explanation says: text and page tell the same tree, and nothing in a question becomes part of the page."""

import json
import re

import pytest

from corag.explain import best_nodes, marginal_benefits, pruned, runner_up, why_order_ends, why_search_ended
from corag.explain_page import as_page
from corag.explain_prompt import marked_sentences, prompt_parts
from corag.explain_sources import document_texts, segments
from corag.explain_text import as_text, why_chosen
from corag.explain_tree import tree_data
from corag.values import Chunk, Prompt
from tests.explanations import TEXTS, explained


class Words:
    """Counts words."""

    def count(self, text):
        """How many."""
        return len(text.split())


def embedded(shown):
    """The tree's data as the page's script finds it."""
    (block,) = re.findall(r'<script type="application/json" id="tree-data">(.*?)</script>', shown, flags=re.DOTALL)
    return json.loads(block)


def test_text_and_page_name_candidates_order_and_reasons():
    """Every candidate, the chosen order with its gains, the runner-up, and why it stopped."""
    told = explained()
    text, shown = as_text(told), as_page(told)
    for chunk in told.chunks:
        assert chunk.chunk_id in text
        assert chunk.chunk_id in shown
    for sentence in (why_chosen(told.tree), why_order_ends(told.tree), why_search_ended(told.tree)):
        assert sentence in text
        assert sentence.replace("'", "&#39;") in shown
    assert all(words in shown for words in TEXTS)
    assert shown.count("<mark>") == len(told.chunks)


def test_the_page_holds_the_whole_tree_and_asks_for_nothing():
    """As many nodes as the tree has, the best and the runner-up among them; no address but the page's own."""
    told = explained()
    shown = as_page(told)
    data = embedded(shown)
    assert data == tree_data(told.tree, told.candidates)
    assert len(data["nodes"]) == len(told.tree.order)
    assert (data["best"], data["runnerUp"]) == (told.tree.best, runner_up(told.tree))
    assert not re.findall(r"(?:src|href)=[\"'](?!data:|#)", shown)
    assert "http://www.w3.org/2000/svg" in shown.replace("https://", "")
    assert shown.count("http") == 1


def test_a_question_cannot_break_out_of_the_page():
    """Tags and ends of scripts are text, in the head, in the data and in the sources."""
    evil = "</script><script>alert(1)</script>"
    shown = as_page(explained(question=evil, texts=(evil, *TEXTS), answer=evil))
    assert "alert(1)</script>" not in shown
    assert shown.count("<script") == 2


def test_a_utility_is_the_sum_of_what_is_shown():
    """U = mean + exploration − charge at every visited node; an unvisited one has none."""
    told = explained()
    for node, one in enumerate(tree_data(told.tree, told.candidates)["nodes"]):
        if told.tree.visits[node]:
            assert one["utility"] == pytest.approx(one["mean"] + one["explore"] - one["charge"], abs=1e-5)
        else:
            assert one["utility"] is None


def test_marginal_benefits_add_up_and_pruned_children_do_not_fit():
    """The gains sum to W of the order; behind an order of two chunks of 10 no third fits a budget of 25."""
    told = explained(budget=25)
    tree = told.tree
    assert sum(marginal_benefits(tree)) == pytest.approx(tree.benefit[tree.best])
    pair = next(node for node, order in enumerate(tree.order) if len(order) == 2)
    assert [over for _, over in pruned(tree, pair)] == [5, 5, 5]
    assert best_nodes(tree, 1) == [tree.best]


def test_nothing_within_the_budget_is_told():
    """No candidate fits: nothing was searched, nothing is cited, and both forms say so."""
    told = explained(budget=5)
    assert told.chunks == []
    assert "No candidate fits the budget of 5 tokens" in as_text(told)
    assert "No candidate fits the budget of 5 tokens" in as_page(told)


def test_prompt_parts_add_up():
    """System, chunks, question, and the template as the rest."""
    chunk = Chunk("c", "d", 0, 0, 5, "rye", 4)
    parts = prompt_parts("who grinds", [chunk], Prompt("be brief", "x"), 20, Words())
    assert parts == [("system", 2), ("[1] c", 4), ("question", 2), ("template", 12)]


def test_sentences_are_marked_by_the_chunk_that_shares_their_words():
    """Each sentence names the chunk that holds most of it, and none where all hold little."""
    chunks = [Chunk(f"c{n}", f"d{n}", 0, 0, 5, text, 4) for n, text in enumerate(TEXTS[:2])]
    marked = marked_sentences("The mill grinds rye. The bridge is long. Nobody knows why it snowed.", chunks)
    assert [places for _, places in marked] == [[1], [2], []]


def test_cited_spans_are_cut_out_of_their_document():
    """Citations may overlap; text between is kept near them, and its far middle is left out and counted."""
    text = "a" * 100 + "CITED" + "b" * 100
    chunk = Chunk("c", "d", 0, 100, 105, "CITED", 1)
    found = segments(text, [(1, chunk)], around=10)
    assert [(one.text, one.cited, one.omitted) for one in found] == [
        ("", False, 90), ("a" * 10, False, 0), ("CITED", True, 0), ("b" * 10, False, 0), ("", False, 90),
    ]  # fmt: skip
    assert document_texts([Chunk("x", "d", 1, 6, 8, "yz", 1), Chunk("w", "d", 0, 0, 5, "abcde", 1)]) == {
        "d": "abcde yz"
    }
