"""The explanation of one answer for a terminal."""

from corag.explain import (
    Explanation,
    best_nodes,
    marginal_benefits,
    order_name,
    runner_up,
    why_order_ends,
    why_search_ended,
)
from corag.explain_prompt import marked_sentences
from corag.search.tree import PolicyTree

BEST_SHOWN = 8
"""Orders of the tree that are listed, best value first."""


def as_text(told: Explanation) -> str:
    """The explanation for a terminal."""
    blocks = [_head(told), _candidates(told), _tree(told.tree), _chosen(told), _prompt(told), _answer(told)]
    return "\n\n".join("\n".join(block) for block in blocks)


def why_chosen(tree: PolicyTree) -> str:
    """By how much the chosen order beats the runner-up, and whether by its benefit or by its cost."""
    second = runner_up(tree)
    if second is None:
        return "There was no other order to choose from."
    lead = tree.value(tree.best) - tree.value(second)
    by_benefit = tree.benefit[tree.best] - tree.benefit[second]
    by_cost = tree.charge[second] - tree.charge[tree.best]
    same = set(tree.order[second]) == set(tree.order[tree.best])
    return (
        f"The runner-up, {order_name(tree.order[second])}, is worth {lead:.3f} less "
        f"({by_benefit:+.3f} by W, {by_cost:+.3f} by cost)" + (": the same chunks in another order." if same else ".")
    )


def configuration_words(told: Explanation) -> str:
    """Who chose which configuration, and why."""
    configuration, settings = told.choice.configuration, told.tree.parameters
    rule = (
        settings.selection if settings.selection == "best-first" else f"{settings.selection}, backup {settings.backup}"
    )
    return (
        f"configuration by {told.choice.source} ({told.choice.reason}): {configuration.reranker}, "
        f"{configuration.iterations} iterations, λ {configuration.cost_coefficient:g}, "
        f"c {configuration.exploration_coefficient:g}; selection {rule}; budget {settings.budget} tokens"
    )


def _head(told: Explanation) -> list[str]:
    return [f"question: {told.question}", configuration_words(told), *([told.note] if told.note else [])]


def _candidates(told: Explanation) -> list[str]:
    return [
        "candidates (similarity, W alone, tokens):",
        *(
            f"  #{index:<2} {candidate.similarity:>6.3f}  {worth:.3f}  {candidate.cost:>4}  "
            f"{candidate.chunk.chunk_id}  {_excerpt(candidate.chunk.text)}"
            for index, (candidate, worth) in enumerate(zip(told.candidates, told.singles, strict=True))
        ),
    ]


def _tree(tree: PolicyTree) -> list[str]:
    return [
        f"policy tree: {len(tree.order) - 1} orders scored in {tree.iterations} iterations; {tree.nan} without a score",
        why_search_ended(tree),
        "best orders (value = W − λ·cost/B, W, tokens, visits):",
        *(
            f"  {'→' if node == tree.best else ' '} {order_name(tree.order[node]):<20} {tree.value(node):>6.3f}  "
            f"{tree.benefit[node]:.3f}  {tree.cost[node]:>4}  {tree.visits[node]}"
            for node in best_nodes(tree, BEST_SHOWN)
        ),
    ]


def _chosen(told: Explanation) -> list[str]:
    tree = told.tree
    lines = [
        f"  [{place}] #{index} {told.candidates[index].chunk.chunk_id}  {gain:+.3f}"
        for place, (index, gain) in enumerate(zip(tree.order[tree.best], marginal_benefits(tree), strict=True), 1)
    ]
    return [
        "chosen, with the gain in W of each chunk:",
        *(lines or ["  nothing: no order is worth its cost"]),
        why_chosen(tree),
        f"Why it ends there: {why_order_ends(tree)}",
    ]


def _prompt(told: Explanation) -> list[str]:
    if told.prompt is None:
        return ["prompt: none; without a context `corag answer` reports no_context and asks nothing"]
    return [
        f"prompt ({sum(tokens for _, tokens in told.parts)} tokens):",
        *(f"  {tokens:>5}  {name}" for name, tokens in told.parts),
        "",
        told.prompt.system,
        told.prompt.user,
    ]


def _answer(told: Explanation) -> list[str]:
    one = told.generation
    if one is None:
        return ["answer: none"]
    cited = [
        f"  [{place}] {chunk.doc_id}, characters {chunk.start}-{chunk.end}"
        for place, chunk in enumerate(told.chunks, 1)
    ]
    said = " ".join(
        sentence + "".join(f" [{place}]" for place in places)
        for sentence, places in marked_sentences(one.text, told.chunks)
    )
    return [f"answer ({one.answer_tokens} tokens, {one.finish_reason}):", one.error or said, "sources:", *cited]


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else line[:69] + "…"
