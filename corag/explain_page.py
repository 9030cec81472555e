"""The explanation of one answer as a self-contained page; its tree can be zoomed, folded and asked."""

from importlib.resources import files

from markupsafe import Markup, escape

from corag.explain import (
    Explanation,
    best_nodes,
    marginal_benefits,
    order_name,
    why_order_ends,
    why_search_ended,
)
from corag.explain_prompt import marked_sentences
from corag.explain_sources import Segment, segments
from corag.explain_text import configuration_words, why_chosen
from corag.explain_tree import tree_data
from corag.pages import data_block, page, paragraph, section, table

ORDERS_SHOWN = 10

STYLE = """
.tree { display: grid; grid-template-columns: minmax(0, 3fr) minmax(17rem, 1fr); gap: 1rem; }
@media (max-width: 60rem) { .tree { grid-template-columns: 1fr; } }
#tree { width: 100%; height: 26rem; background: var(--panel); border-radius: 6px; cursor: grab; touch-action: none;
  user-select: none; }
#tree text { font: 12px system-ui, sans-serif; fill: var(--ink); } #tree .fold { fill: var(--accent); cursor: pointer;
  font-weight: 700; }
#tree .edge { fill: none; stroke: var(--line); } #tree circle { fill: var(--soft); }
#tree .node { cursor: pointer; } #tree .best circle { fill: var(--good); } #tree .second circle { fill: var(--accent); }
#tree .selected circle, #tree .node:focus circle { stroke: var(--ink); stroke-width: 2.5; }
#tree .node:focus { outline: none; }
.tools button { font: inherit; padding: .1rem .7rem; margin-right: .3rem; }
#node th { font-weight: 400; white-space: normal; } .source { white-space: pre-wrap; background: var(--panel);
  padding: .8rem; border-radius: 6px; max-height: 22rem; overflow-y: auto; }
mark b { color: var(--accent); }
"""


def as_page(told: Explanation) -> str:
    """The page of one explanation; it needs no network."""
    return page(
        told.question,
        paragraph(_sentence(configuration_words(told)), "note"),
        *([paragraph(told.note, "note")] if told.note else []),
        section("Answer", *_answer(told)),
        section("Why this order", *_why(told)),
        section("Candidates", _candidates(told)),
        section("Policy tree", *_tree(told)),
        section("Prompt", *_prompt(told)),
        section("Sources", *_sources(told)),
        style=STYLE,
        script=files("corag").joinpath("assets/tree.js").read_text(encoding="utf-8"),
    )


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _answer(told: Explanation) -> list[Markup]:
    one = told.generation
    if one is None:
        return [paragraph("None: no order of chunks is worth its cost, so that nothing was asked.", "bad")]
    if one.error is not None:
        return [paragraph(one.error, "bad")]
    said = Markup(" ").join(
        Markup("{}{}").format(sentence, Markup("").join(_reference(place) for place in places))
        for sentence, places in marked_sentences(one.text, told.chunks)
    )
    note = f"{one.answer_tokens} tokens, ended by {one.finish_reason}. The marks show which chunk shares its words."
    return [Markup("<p><strong>{}</strong></p>").format(said), paragraph(note, "note")]


def _reference(place: int) -> Markup:
    return Markup(' <a href="#source-{}">[{}]</a>').format(place, place)


def _why(told: Explanation) -> list[Markup]:
    tree = told.tree
    chosen = [
        (f"[{place}]", f"#{index}", told.candidates[index].chunk.chunk_id, told.candidates[index].cost, float(gain))
        for place, (index, gain) in enumerate(zip(tree.order[tree.best], marginal_benefits(tree), strict=True), 1)
    ]
    orders = [
        ("chosen" if node == tree.best else "", order_name(tree.order[node]), float(tree.value(node)),
         float(tree.benefit[node]), tree.cost[node], tree.visits[node])
        for node in best_nodes(tree, ORDERS_SHOWN)
    ]  # fmt: skip
    return [
        table(("place", "candidate", "chunk", "tokens", "gain in W"), chosen)
        if chosen
        else paragraph("The empty order: no chunk is worth its cost.", "bad"),
        paragraph(why_chosen(tree)),
        paragraph(why_order_ends(tree)),
        paragraph(why_search_ended(tree)),
        table(("", "best orders", "value", "W", "tokens", "visits"), orders),
    ]


def _candidates(told: Explanation) -> Markup:
    rows = [
        (f"#{index}", one.chunk.chunk_id, float(one.similarity), worth if worth == worth else None, one.cost,
         one.chunk.text)
        for index, (one, worth) in enumerate(zip(told.candidates, told.singles, strict=True))
    ]  # fmt: skip
    return table(("", "chunk", "similarity", "W alone", "tokens", "text"), rows)


def _tree(told: Explanation) -> list[Markup]:
    tree = told.tree
    note = (
        f"{len(tree.order) - 1} orders scored in {tree.iterations} iterations, {tree.nan} of them without a score. "
        "Each node appends a candidate; the number is its value. Green: chosen; blue: runner-up. Click a node for its "
        "numbers, +n for what is folded; drag to move, Ctrl and wheel to zoom; by keyboard: Tab, Enter, Space."
    )
    drawing = Markup(
        '<div class="tools"><button id="in">+</button><button id="out">−</button><button id="fit">fit</button></div>'
        '<div class="tree"><svg id="tree" role="group" aria-label="policy tree"></svg>'
        '<table aria-live="polite"><tbody id="node"></tbody></table></div>'
    )
    return [paragraph(note, "note"), drawing, data_block("tree-data", tree_data(tree, told.candidates))]


def _prompt(told: Explanation) -> list[Markup]:
    if told.prompt is None:
        return [paragraph("None was sent.")]
    total = sum(tokens for _, tokens in told.parts)
    return [
        table(("part", "tokens"), [*told.parts, ("all", total)]),
        Markup("<pre>{}\n\n{}</pre>").format(told.prompt.system, told.prompt.user),
    ]


def _sources(told: Explanation) -> list[Markup]:
    cited = list(enumerate(told.chunks, 1))
    shown = []
    for doc_id in dict.fromkeys(chunk.doc_id for _, chunk in cited):
        own = [(place, chunk) for place, chunk in cited if chunk.doc_id == doc_id]
        shown.append(Markup("<h3>{}</h3>").format(doc_id))
        text = Markup("").join(_segment(one) for one in segments(told.documents.get(doc_id, ""), own))
        shown.append(Markup('<div class="source" tabindex="0">{}</div>').format(text))
    return shown or [paragraph("None.", "note")]


def _segment(one: Segment) -> Markup:
    if one.omitted:
        return Markup('<span class="note"> […{} characters…] </span>').format(f"{one.omitted:,}")
    if not one.cited:
        return escape(one.text)
    places = Markup("").join(Markup('<b id="source-{}">[{}] </b>').format(place, place) for place in one.begins)
    return Markup("<mark>{}{}</mark>").format(places, one.text)
