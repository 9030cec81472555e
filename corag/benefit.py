"""Maps a reranker's raw scores to W in [0, 1] (METHOD: scale), so that c and λ mean the same for every reranker."""

import math
from collections.abc import Callable, Sequence
from typing import Literal

EQUAL_WORTH = 0.5
"""W of every order where all single candidates score the same: nothing is known, so the first one is as good as any."""

DECIMALS = 9
"""W is rounded to so many decimals: the rounding errors of a rescaled score must not decide a choice."""


def normalizer(
    single_scores: Sequence[float],
    mode: Literal["per_query", "none"],
    to_unit: Callable[[float], float],
) -> Callable[[float], float]:
    """The mapping from a raw score to W for one query, given the raw scores of its single candidates.

    `per_query`: with x = (s − lo)/(hi − lo) over the range [lo, hi] of the single candidates, W = x/(1 + x), and 0
    below lo. It is strictly increasing above lo: an order that outscores every single chunk is worth more than the
    best of them, never more than 1, and a positive rescale or shift of the scores changes nothing. `none`: the
    reranker's own mapping `to_unit`. NaN stays NaN; an infinite score counts as NaN.
    """
    if mode == "none":
        return lambda score: round(to_unit(score), DECIMALS) if math.isfinite(score) else math.nan
    finite = [score for score in single_scores if math.isfinite(score)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    span = high - low
    # A span at the level of rounding errors tells the candidates apart no more than none does.
    if span <= 1e-12 * max(abs(low), abs(high), 1e-300):
        return lambda score: EQUAL_WORTH if math.isfinite(score) else math.nan

    def to_benefit(score: float) -> float:
        if not math.isfinite(score):
            return math.nan
        x = max(0.0, (score - low) / span)
        return round(x / (1.0 + x), DECIMALS)

    return to_benefit
