"""The figures of one night of answering, and how they compare with the nights before."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from corag.answer_rows import AnswerRow, Latency
from corag.metrics import best_rouge
from corag.settings import MetricSettings, PricingSettings

Figures = dict[str, float]
"""Name → figure; one that could not be measured is absent. Shares lie in [0, 1], latencies are milliseconds."""

NIGHTS_COMPARED = 7
"""Earlier nights that a night is compared with."""

LEAST_NIGHTS = 3
"""With fewer earlier nights there is no usual band yet."""

BAND_SPREADS = 3.0
SPREAD_OF_DEVIATION = 1.4826
"""The standard deviation of a normal distribution is so many times its median absolute deviation."""

LEAST_BAND: Mapping[str, float] = {
    "share_answered": 0.02,
    "share_no_context": 0.02,
    "share_failed": 0.005,
    "share_agent": 0.05,
    "share_far": 0.05,
    "rouge_l": 0.02,
    "context_tokens_mean": 5.0,
}
"""The figures that are watched, with the least half-width of their band; the others' is a fifth of the median."""

WATCHED = (*LEAST_BAND, "questions_per_minute", "latency_search_p95", "latency_generate_p95", "answer_tokens_mean")


@dataclass(frozen=True, slots=True)
class Warned:
    """A figure outside its usual band."""

    figure: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.figure} is {self.value:.3g}; usually between {self.low:.3g} and {self.high:.3g}"


def night_figures(
    rows: Iterable[AnswerRow],
    references: Mapping[str, Sequence[str]],
    *,
    seconds: float,
    answered_now: int,
    champion: bool,
    metrics: MetricSettings,
    pricing: PricingSettings,
) -> Figures:
    """The figures of a night's rows.

    references: the reference answers by qid, where there are any; a failed question with one scores 0. seconds: the
    wall time in which `answered_now` of the questions were answered. champion: whether an agent chose, so that a
    fixed configuration means a question far from its training.
    """
    held = list(rows)
    count = len(held)
    if not count:
        return {"questions": 0.0}
    by_status = {status: sum(row.status == status for row in held) for status in ("answered", "no_context", "failed")}
    by_agent = sum(row.config_source == "agent" for row in held)
    figures: Figures = {
        "questions": count,
        **by_status,
        **{f"share_{status}": number / count for status, number in by_status.items()},
        "cut": sum(row.finish_reason == "length" for row in held),
        "empty": sum(row.status == "answered" and not row.answer for row in held),
        "reused": sum(row.reused for row in held),
        "share_agent": by_agent / count,
        "share_fixed": 0.0 if champion else 1.0 - by_agent / count,
        "share_far": 1.0 - by_agent / count if champion else 0.0,
        "budget_mean": statistics.fmean(row.budget for row in held),
        "seconds": seconds,
    }
    for kind in ("context", "prompt", "answer"):
        tokens = [getattr(row, f"{kind}_tokens") for row in held]
        figures |= {f"{kind}_tokens_mean": statistics.fmean(tokens), f"{kind}_tokens_total": sum(tokens)}
    if answered_now and seconds > 0:
        figures["questions_per_minute"] = 60 * answered_now / seconds
    figures |= _latencies(held) | _rouge(held, references, metrics) | _cost(figures, pricing)
    return {name: float(value) for name, value in figures.items()}


def usual_band(figure: str, earlier: Sequence[float]) -> tuple[float, float] | None:
    """The band in which a figure usually lies, by its last nights; None with fewer than three.

    The median of the nights, and three spreads to either side; the spread is estimated from the median absolute
    deviation, so that one odd night does not widen the band.
    """
    if len(earlier) < LEAST_NIGHTS:
        return None
    middle = statistics.median(earlier)
    deviation = statistics.median(abs(value - middle) for value in earlier)
    half = max(BAND_SPREADS * SPREAD_OF_DEVIATION * deviation, LEAST_BAND.get(figure, 0.2 * abs(middle)))
    most = 1.0 if figure.startswith(("share_", "rouge_")) else float("inf")
    return max(0.0, middle - half), min(most, middle + half)


def warnings_of(figures: Figures, earlier: Sequence[Figures]) -> list[Warned]:
    """The watched figures of a night that lie outside their usual band, by the nights before it, oldest first."""
    warned = []
    for name in WATCHED:
        band = usual_band(name, [night[name] for night in earlier[-NIGHTS_COMPARED:] if name in night])
        if name in figures and band is not None and not band[0] <= figures[name] <= band[1]:
            warned.append(Warned(name, figures[name], *band))
    return warned


def _latencies(rows: Sequence[AnswerRow]) -> Figures:
    figures: Figures = {}
    fresh = [row for row in rows if not row.reused]
    for stage in Latency.model_fields:
        times = sorted(getattr(row.latency_ms, stage) for row in fresh)
        if times:
            figures[f"latency_{stage}_p50"] = statistics.median(times)
            figures[f"latency_{stage}_p95"] = times[min(len(times) - 1, int(0.95 * len(times)))]
    return figures


def _rouge(rows: Sequence[AnswerRow], references: Mapping[str, Sequence[str]], metrics: MetricSettings) -> Figures:
    scores = [best_rouge(references.get(row.qid, ()), row.answer or "", metrics) for row in rows]
    scored = [score.rouge_l for score in scores if score is not None]
    return {"rouge_l": statistics.fmean(scored), "rouge_l_scored": len(scored)} if scored else {}


def _cost(figures: Figures, pricing: PricingSettings) -> Figures:
    if not pricing.prompt_per_million and not pricing.answer_per_million:
        return {}
    prompt, answer = figures["prompt_tokens_total"], figures["answer_tokens_total"]
    return {"cost": (prompt * pricing.prompt_per_million + answer * pricing.answer_per_million) / 1e6}
