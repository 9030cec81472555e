"""One question in detail: candidates, policy tree, why this order, the prompt and the answer."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from corag.agents import Choice
from corag.order_scorer import OrderScorer
from corag.search.mcts import TreeSearch
from corag.search.parameters import SearchParameters
from corag.search.tree import PolicyTree
from corag.values import Candidate, Generation, Prompt

BEST_SHOWN = 8
"""Orders of the tree that are listed, best value first."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that decided one answer. `marginal` is each chosen chunk's gain in W when it was appended."""

    question: str
    choice: Choice
    candidates: Sequence[Candidate]
    singles: Sequence[float]
    tree: PolicyTree
    marginal: Sequence[float]
    prompt: Prompt
    prompt_tokens: int
    generation: Generation


def grow_tree(
    query: str, candidates: Sequence[Candidate], scorer: OrderScorer, parameters: SearchParameters
) -> tuple[PolicyTree, list[float]]:
    """The finished policy tree of one question, and W of each single candidate (NaN where it has none)."""
    scorer.add_query("explain", query, candidates)
    search = TreeSearch([candidate.cost for candidate in candidates], parameters)
    while not search.finished:
        benefits, failed = scorer([("explain", order) for order in search.pending()])
        if failed:
            break
        search.receive(benefits)
    singles, _ = scorer([("explain", (index,)) for index in range(len(candidates))])
    return search.tree, singles


def marginal_benefits(tree: PolicyTree) -> list[float]:
    """What each chunk of the best order added to W when it was appended."""
    node, gains = tree.best, []
    while tree.parent[node] >= 0:
        gains.append(tree.benefit[node] - tree.benefit[tree.parent[node]])
        node = tree.parent[node]
    return gains[::-1]


def as_text(told: Explanation) -> str:
    """The explanation for a terminal."""
    tree, settings = told.tree, told.tree.parameters
    configuration = told.choice.configuration
    lines = [
        f"question: {told.question}",
        f"configuration by {told.choice.source} ({told.choice.reason}): {configuration.reranker}, "
        f"{configuration.iterations} iterations, λ {configuration.cost_coefficient:g}, "
        f"c {configuration.exploration_coefficient:g}; budget {settings.budget} tokens",
        "",
        "candidates (similarity, W alone, tokens):",
        *(
            f"  {index}  {candidate.similarity:.3f}  {worth:.3f}  {candidate.cost:>4}  {candidate.chunk.chunk_id}  "
            f"{_excerpt(candidate.chunk.text)}"
            for index, (candidate, worth) in enumerate(zip(told.candidates, told.singles, strict=True))
        ),
        "",
        f"policy tree: {len(tree.order) - 1} orders scored in {tree.iterations} iterations; "
        f"stopped: {tree.result().stopped}; {tree.nan} without a score",
        "best orders (value = W − λ·cost/B, W, tokens, visits):",
        *(
            f"  {'→' if node == tree.best else ' '} {_order(tree.order[node]):<14} {tree.value(node):.3f}  "
            f"{tree.benefit[node]:.3f}  {tree.cost[node]:>4}  {tree.visits[node]}"
            for node in best_nodes(tree)
        ),
        "",
        "chosen, with the gain in W of each chunk:",
        *(
            f"  {told.candidates[index].chunk.chunk_id}  {gain:+.3f}"
            for index, gain in zip(tree.order[tree.best], told.marginal, strict=True)
        ),
        *([] if tree.order[tree.best] else ["  nothing: no order is worth its cost"]),
        "",
        f"prompt ({told.prompt_tokens} tokens with its template):",
        told.prompt.system,
        told.prompt.user,
        "",
        f"answer ({told.generation.answer_tokens} tokens, {told.generation.finish_reason}):",
        told.generation.error or told.generation.text,
    ]
    return "\n".join(lines)


def as_page(told: Explanation) -> str:
    """The same as a self-contained page."""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{html.escape(told.question[:80])}</title>"
        "<style>:root{color-scheme:light dark}body{margin:2rem auto;max-width:70rem;padding:0 1rem}"
        "pre{white-space:pre-wrap;font:14px/1.5 ui-monospace,monospace}</style>"
        f"<pre>{html.escape(as_text(told))}</pre></html>\n"
    )


def best_nodes(tree: PolicyTree) -> list[int]:
    """The nodes of greatest value, best first; the empty order is among them where nothing beats it."""
    ranked = sorted(range(len(tree.order)), key=lambda node: (-tree.value(node), len(tree.order[node]), node))
    shown = ranked[:BEST_SHOWN]
    return shown if tree.best in shown else [tree.best, *shown[:-1]]


def _order(order: tuple[int, ...]) -> str:
    return "→".join(str(index) for index in order) or "(empty)"


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else line[:69] + "…"
