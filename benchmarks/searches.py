"""The tree search on real questions: against every order, and many trees side by side against one at a time."""

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from benchmarks.figures import Figure
from corag.components import Components
from corag.memo import Memo
from corag.order_scorer import OrderScorer, PairCount
from corag.rerankers import load_reranker
from corag.retrieval import retrieve
from corag.search.parameters import SearchParameters, value_of
from corag.selection import Chosen, Selection, parameters_of, select
from corag.settings import RerankerSettings
from corag.values import Configuration, Question

SIDE_BY_SIDE = (1, 8, 32)
"""Queries whose trees advance together."""

COST_COEFFICIENTS = (0.0, 0.1)


def compare_searches(parts: Components, questions: Sequence[Question]) -> list[Figure]:
    """The figures of the tree search against every order, on the questions' own candidates."""
    found = retrieve(parts.store, parts.embedder, questions, parts.config.retrieval)
    table = Memo(None).table("scores")
    print("| reranker | λ | selection | share of the optimum | optimum found | orders scored | of all orders |")
    print("|---|---|---|---|---|---|---|")
    ratios, hits = [], []
    for settings in parts.config.rerankers:
        for cost in COST_COEFFICIENTS:
            asked = [
                Selection(one.qid, question.question, one.candidates, Configuration(settings.name, 10, cost, 2.4))
                for question, one in zip(questions, found, strict=True)
            ]
            scorers = {settings.name: OrderScorer(parts.reranker(settings.name), table, "per_query")}
            every = [replace(one, strategy="exhaustive") for one in asked]
            best = select(every, scorers, parts.config.search)
            for rule in ("best-first", "uct"):
                search = parts.config.search.model_copy(update={"selection": rule})
                chosen = select(asked, scorers, search)
                parameters = parameters_of(asked[0].configuration, search)
                pairs = [
                    (value(one, parameters), value(top, parameters)) for one, top in zip(chosen, best, strict=True)
                ]
                share = [mine / top for mine, top in pairs if top > 0]
                hit = [abs(mine - top) < 1e-6 for mine, top in pairs]
                if rule == parts.config.search.selection:
                    ratios += share
                    hits += hit
                print(
                    f"| {settings.name} | {cost:g} | {rule} | {fmean(share):.4f} | {fmean(hit):.0%} | "
                    f"{fmean(one.scored for one in chosen):.1f} | {fmean(top.scored for top in best):.0f} |",
                    flush=True,
                )
    print()
    return [
        ("real_optimum_ratio", fmean(ratios), 0.99, "higher", len(ratios)),
        ("real_optimum_found", fmean(hits), 0.6, "higher", len(hits)),
    ]


def value(chosen: Chosen, parameters: SearchParameters) -> float:
    """W − λ·cost/B of what was chosen."""
    return value_of(chosen.benefit, sum(chunk.tokens for chunk in chosen.chunks), parameters)


def compare_lockstep(parts: Components, questions: Sequence[Question]) -> list[Figure]:
    """Pairs a second with so many trees side by side, on the same queries.

    With `dense`: one model forward a pair, as a cross-encoder has.
    """
    reranker = load_reranker(
        RerankerSettings(name="dense", kind="dense"),
        embedder=lambda: parts.embedder,
        generator=lambda: parts.generator,
        corpus=lambda: [],
    )
    asked = questions[: max(SIDE_BY_SIDE)]
    found = retrieve(parts.store, parts.embedder, asked, parts.config.retrieval)
    selections = [
        Selection(one.qid, question.question, one.candidates, Configuration("dense", 3, 0.1, 2.4))
        for question, one in zip(asked, found, strict=True)
    ]
    print("| trees side by side (dense) | pairs/s | against one at a time |\n|---|---|---|")
    speeds = {}
    for width in SIDE_BY_SIDE:
        count, table = PairCount(), Memo(None).table("scores")
        start = time.perf_counter()
        for first in range(0, len(selections), width):
            scorers = {"dense": OrderScorer(reranker, table, "per_query", count)}
            select(selections[first : first + width], scorers, parts.config.search)
        speeds[width] = count.scored / (time.perf_counter() - start)
        print(f"| {width} | {speeds[width]:.1f} | {speeds[width] / speeds[1]:.2f} |", flush=True)
    print()
    return [("lockstep_ratio", speeds[max(SIDE_BY_SIDE)] / speeds[1], 1, "higher", len(selections))]
