"""The rows of the tables that an evaluation writes: methods, retrieval, and the questions that tell most."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from corag.evaluation_methods import AGENT, NAIVE, Asked
from corag.evaluation_rows import Evaluated
from corag.evaluation_summary import MethodSummary, mean
from corag.retrieval_metrics import NDCG_DEPTH, score_retrieval

CASES = 5
"""So many of the greatest gains and of the greatest losses are shown side by side."""

METHOD_COLUMNS = (
    "method",
    "n_total",
    "n_scored",
    "n_failed",
    "rouge_1",
    "rouge_2",
    "rouge_l",
    "rouge_l_low",
    "rouge_l_high",
    "gain",
    "gain_low",
    "gain_high",
    "significant",
    "exact_match",
    "token_f1",
    "recall",
    "context_tokens",
    "rouge_l_per_100_tokens",
    "reranker_pairs",
    "llm_calls",
    "latency_embed_ms",
    "latency_retrieve_ms",
    "latency_search_ms",
    "latency_generate_ms",
)
CASE_COLUMNS = (
    "qid",
    "question",
    "reference",
    "gain",
    "naive_answer",
    "corag_answer",
    "naive_context",
    "corag_context",
    "naive_rouge_l",
    "corag_rouge_l",
)
RETRIEVAL_COLUMNS = ("metric", "value", "n")


def method_row(one: MethodSummary) -> dict[str, Any]:
    """One row of `methods.csv`; the gain is empty for `naive` itself and where `naive` was not asked."""
    special = {
        "rouge_l": one.rouge_l.mean,
        "rouge_l_low": one.rouge_l.low,
        "rouge_l_high": one.rouge_l.high,
        "gain": one.gain.mean if one.gain else None,
        "gain_low": one.gain.low if one.gain else None,
        "gain_high": one.gain.high if one.gain else None,
        "rouge_l_per_100_tokens": one.per_100_tokens,
    }
    return {name: special[name] if name in special else getattr(one, name) for name in METHOD_COLUMNS}


def retrieval_rows(
    asked: Asked, top_k: int, copies: Mapping[str, Collection[str]] | None = None
) -> list[dict[str, Any]]:
    """Recall at some depths up to `top_k` and nDCG at 10, over the questions whose relevant documents are known.

    A question that could not be searched has no candidates, and counts 0.
    """
    rows = []
    for depth in sorted({depth for depth in (1, 3, 5) if depth < top_k} | {top_k}):
        scores = [
            score_retrieval(retrieval.candidates, question.relevant_ids, depth, copies)
            for question, retrieval in zip(asked.questions, asked.retrievals, strict=True)
        ]
        known = [score for score in scores if score is not None]
        rows.append({"metric": f"recall@{depth}", "value": mean(one.recall for one in known), "n": len(known)})
    rows.append({"metric": f"ndcg@{NDCG_DEPTH}", "value": mean(one.ndcg for one in known), "n": len(known)})
    return rows


def case_rows(
    rows: Sequence[Evaluated], references: Mapping[str, Sequence[str]], texts: Mapping[str, str], method: str = AGENT
) -> list[dict[str, Any]]:
    """The greatest gains of `method` over `naive`, then its greatest losses, the greatest first; equal ones by qid.

    `references` are by qid, `texts` by chunk id. A question that gained and lost nothing is no case.
    """
    scored = {(row.method, row.qid): row for row in rows if row.rouge_l is not None}
    pairs = [
        (scored[NAIVE, qid], row) for (name, qid), row in scored.items() if name == method and (NAIVE, qid) in scored
    ]
    ranked = sorted(pairs, key=lambda pair: (_gain(*pair), pair[0].qid))
    losses = [pair for pair in ranked if _gain(*pair) < 0][:CASES]
    gains = sorted((pair for pair in pairs if _gain(*pair) > 0), key=lambda pair: (-_gain(*pair), pair[0].qid))[:CASES]
    return [
        {
            "qid": mine.qid,
            "question": mine.question,
            "reference": next(iter(references.get(mine.qid, ())), ""),
            "gain": _gain(naive, mine),
            "naive_answer": naive.answer,
            "corag_answer": mine.answer,
            "naive_context": _context(naive, texts),
            "corag_context": _context(mine, texts),
            "naive_rouge_l": naive.rouge_l,
            "corag_rouge_l": mine.rouge_l,
        }
        for naive, mine in [*gains, *losses]
    ]


def _gain(naive: Evaluated, mine: Evaluated) -> float:
    assert mine.rouge_l is not None
    assert naive.rouge_l is not None
    return mine.rouge_l - naive.rouge_l


def _context(row: Evaluated, texts: Mapping[str, str]) -> str:
    return "\n\n".join(texts.get(chunk_id, "") for chunk_id in row.chunk_ids)


def retrieval_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Retrieval as a Markdown table; empty where no relevant document is known."""
    known = [row for row in rows if row["n"]]
    lines = [f"| {row['metric']} | {row['value']:.3f} | {row['n']} |" for row in known]
    return "\n".join(["| retrieval | value | questions |", "|---|---|---|", *lines]) if lines else ""
