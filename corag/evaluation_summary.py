"""The comparison table: headline means with bootstrap intervals, and what each method gains over `naive`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from corag.evaluation_methods import NAIVE
from corag.evaluation_rows import Evaluated
from corag.metrics import Interval, bootstrap


@dataclass(frozen=True, slots=True)
class MethodSummary:
    """One row of the comparison: headline means over every scored question, failures counted as 0.

    Tokens, pairs and calls are means over all its questions, recall over those with relevant documents, latencies over
    those that were timed.
    """

    method: str
    n_total: int
    n_scored: int
    n_failed: int
    rouge_1: float
    rouge_2: float
    rouge_l: Interval
    gain: Interval | None
    exact_match: float
    token_f1: float
    recall: float
    context_tokens: float
    reranker_pairs: float
    llm_calls: float
    latency_embed_ms: float
    latency_retrieve_ms: float
    latency_search_ms: float
    latency_generate_ms: float

    @property
    def significant(self) -> bool:
        """Whether the interval of the gain over `naive` leaves 0 out."""
        return self.gain is not None and (self.gain.low > 0 or self.gain.high < 0)

    @property
    def per_100_tokens(self) -> float:
        """ROUGE-L per 100 context tokens; NaN without any token."""
        return 100 * self.rouge_l.mean / self.context_tokens if self.context_tokens else float("nan")


def summarise(rows: Sequence[Evaluated], seed: int) -> list[MethodSummary]:
    """One summary a method, in the order in which the methods appear.

    Questions without a reference are left out and counted; a failed question counts as 0. The gain is the paired
    bootstrap of the difference to `naive` on the same questions.
    """
    by_method: dict[str, dict[str, Evaluated]] = {}
    for row in rows:
        by_method.setdefault(row.method, {})[row.qid] = row
    return [_summarise_method(name, held, by_method.get(NAIVE), seed) for name, held in by_method.items()]


def _summarise_method(
    method: str, held: Mapping[str, Evaluated], naive: Mapping[str, Evaluated] | None, seed: int
) -> MethodSummary:
    scored = [row for row in held.values() if row.rouge_l is not None]
    fine = [row for row in held.values() if row.error is None]
    gain = None if naive is None or method == NAIVE else bootstrap(_gains(scored, naive), seed=seed)
    return MethodSummary(
        method=method,
        n_total=len(held),
        n_scored=len(scored),
        n_failed=sum(row.error is not None for row in held.values()),
        rouge_1=mean(row.rouge_1 for row in scored),
        rouge_2=mean(row.rouge_2 for row in scored),
        rouge_l=bootstrap([row.rouge_l for row in scored if row.rouge_l is not None], seed=seed),
        gain=gain,
        exact_match=mean(row.exact_match for row in scored),
        token_f1=mean(row.token_f1 for row in scored),
        recall=mean(row.recall for row in fine),
        context_tokens=mean(row.context_tokens for row in fine),
        reranker_pairs=mean(row.reranker_pairs for row in fine),
        llm_calls=mean(row.llm_calls for row in fine),
        latency_embed_ms=mean(row.latency_embed_ms for row in held.values()),
        latency_retrieve_ms=mean(row.latency_retrieve_ms for row in held.values()),
        latency_search_ms=mean(row.latency_search_ms for row in held.values()),
        latency_generate_ms=mean(row.latency_generate_ms for row in held.values()),
    )


def _gains(scored: Sequence[Evaluated], naive: Mapping[str, Evaluated]) -> list[float]:
    pairs = [(row.rouge_l, naive[row.qid].rouge_l) for row in scored if row.qid in naive]
    return [mine - theirs for mine, theirs in pairs if mine is not None and theirs is not None]


def mean(values: Iterable[float | None]) -> float:
    """The mean of the numbers among `values`; NaN where there is none."""
    known = [value for value in values if value is not None and value == value]
    return sum(known) / len(known) if known else float("nan")


def summary_table(summaries: Sequence[MethodSummary]) -> str:
    """The comparison as a Markdown table; a star marks a gain whose interval leaves 0 out."""
    lines = [
        "| method | ROUGE-L | gain over naive | ROUGE-1 | ROUGE-2 | EM | F1 | recall | context tokens "
        "| ROUGE-L / 100 tokens | pairs | questions | scored | failed |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in summaries:
        gain = f"{one.gain}{' *' if one.significant else ''}" if one.gain else ""
        lines.append(
            f"| {one.method} | {one.rouge_l} | {gain} | {one.rouge_1:.3f} | {one.rouge_2:.3f} "
            f"| {_or_dash(one.exact_match, 3)} | {_or_dash(one.token_f1, 3)} | {_or_dash(one.recall, 2)} "
            f"| {_or_dash(one.context_tokens, 0)} | {_or_dash(one.per_100_tokens, 3)} "
            f"| {_or_dash(one.reranker_pairs, 0)} | {one.n_total} | {one.n_scored} | {one.n_failed} |"
        )
    return "\n".join(lines)


def latency_table(summaries: Sequence[MethodSummary], timed: int) -> str:
    """Milliseconds a question and stage as a Markdown table, which says that so many were `timed`; empty for none."""
    if not any(one.latency_search_ms == one.latency_search_ms for one in summaries):
        return ""
    lines = [f"Milliseconds a question, the first {timed} asked one by one without any memory:", ""]
    lines += ["| method | embed | retrieve | search | generate |", "|---|---|---|---|---|"]
    lines += [
        f"| {one.method} | {_or_dash(one.latency_embed_ms, 1)} | {_or_dash(one.latency_retrieve_ms, 1)} "
        f"| {_or_dash(one.latency_search_ms, 1)} | {_or_dash(one.latency_generate_ms, 0)} |"
        for one in summaries
    ]
    return "\n".join(lines)


def _or_dash(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if value == value else "–"
