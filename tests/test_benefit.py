import math
import random
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from corag.benefit import EQUAL_WORTH, normalizer
from corag.search import SearchParameters, SearchResult, search
from corag.values import ChunkOrder

# Eighths, so that shifting and scaling are exact.
SCORES = st.lists(st.integers(-800, 800).map(lambda eighth: eighth / 8), min_size=2, max_size=6)


def unit(score: float) -> float:
    """Stands for a reranker's own mapping."""
    return 1 / (1 + math.exp(-score))


@given(SCORES, st.integers(-2000, 2000).map(lambda eighth: eighth / 8))
def test_a_benefit_is_in_the_unit_interval_and_rises_with_the_score(singles, score) -> None:
    """W stays in [0, 1], a higher score never has a lower W, and above the range W still grows."""
    assume(max(singles) > min(singles))
    worth = normalizer(singles, "per_query", unit)
    assert 0.0 <= worth(score) <= 1.0
    assert worth(score) <= worth(score + 1)
    assert worth(max(singles)) == 0.5
    assert worth(max(singles) + 1) > 0.5
    assert worth(min(singles)) == 0.0


@given(SCORES, st.integers(-2000, 2000).map(lambda eighth: eighth / 8))
def test_a_positive_rescale_or_shift_changes_no_benefit(singles, score) -> None:
    """Scores s, 100·s and s − 50 of one reranker mean the same."""
    plain = normalizer(singles, "per_query", unit)(score)
    for change in (lambda raw: 100 * raw, lambda raw: raw - 50):
        assert normalizer([change(raw) for raw in singles], "per_query", unit)(change(score)) == plain


@pytest.mark.parametrize("singles", [[1.0, 1.0, 1.0], [3.0], [], [0.1 + 0.2, 0.3], [math.nan, math.nan]])
def test_where_singles_tell_nothing_every_order_is_worth_the_same(singles) -> None:
    """One candidate, saturated scores, or a span of rounding errors give every finite score the same W."""
    worth = normalizer(singles, "per_query", unit)
    assert worth(1.0) == worth(7.0) == EQUAL_WORTH
    assert math.isnan(worth(math.nan))


@pytest.mark.parametrize("mode", ["per_query", "none"])
@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_no_number_has_no_benefit_and_spoils_no_other(mode, score) -> None:
    """NaN and infinities are NaN, and they do not stretch the range of the query."""
    worth = normalizer([0.0, score, 2.0], mode, unit)
    assert math.isnan(worth(score))
    assert worth(2.0) == (0.5 if mode == "per_query" else pytest.approx(unit(2.0)))


def test_without_normalisation_the_rerankers_own_mapping_counts() -> None:
    """`none` leaves the range of the query out."""
    assert normalizer([5.0, 6.0], "none", unit)(0.0) == 0.5


def found_with(raw: Callable[[ChunkOrder], float], size: int, parameters: SearchParameters) -> SearchResult:
    """What the search finds on the normalised benefits of a reranker."""
    worth = normalizer([raw((index,)) for index in range(size)], "per_query", unit)
    return search([10 + index for index in range(size)], lambda orders: [worth(raw(one)) for one in orders], parameters)


@given(
    st.integers(0, 10_000),
    st.floats(0.01, 1000.0),
    st.floats(-1000.0, 1000.0),
    st.sampled_from(["uct", "best-first"]),
)
@settings(deadline=None, max_examples=150)
def test_any_positive_rescale_and_shift_chooses_the_same_order(seed, scale, shift, selection) -> None:
    """Scale and shift are any floats, whose rounding errors decide nothing; some scores are equal."""

    def raw(order: ChunkOrder) -> float:
        return float(random.Random(f"{seed} {order}").randint(-3, 3))

    parameters = SearchParameters(budget=45, iterations=6, cost_coefficient=0.0, backup="all", selection=selection)
    plain = found_with(raw, 5, parameters)
    changed = found_with(lambda order: scale * raw(order) + shift, 5, parameters)
    assert changed == plain
