"""A small explanation with a real tree and a made-up reranker, for the tests of text and page."""

from dataclasses import replace

from corag.agents import Choice
from corag.explain import Explanation, grow_tree
from corag.explain_sources import document_texts
from corag.memo import Memo
from corag.order_scorer import OrderScorer
from corag.search.parameters import SearchParameters
from corag.values import Configuration, Generation, Prompt
from tests.search_cases import FakeReranker, candidates, made_up

TEXTS = ("The mill grinds rye.", "The bridge is long.", "The bell is heavy.", "The map is old.", "The salt is dear.")


def explained(question="Who grinds rye?", texts=TEXTS, budget=30, answer="The mill grinds rye."):
    """The explanation of one question over `texts`, each a document of its own."""
    found = candidates(list(texts))
    scorer = OrderScorer(FakeReranker(made_up, "fake", "fake max_length=512"), Memo(None).table("scores"), "per_query")
    parameters = SearchParameters(budget=budget, iterations=6, cost_coefficient=0.1, exploration_coefficient=2.4)
    tree, singles = grow_tree(question, found, scorer, parameters)
    told = Explanation(
        question,
        Choice(Configuration("fake", 6, 0.1, 2.4), "fixed", "there is no champion"),
        found,
        singles,
        tree,
        prompt=Prompt("Be brief.", question),
        generation=Generation(answer, 20, 5, "stop"),
        parts=[("system", 3), ("question", 5), ("template", 12)],
    )
    return replace(told, documents=document_texts(told.chunks))
