"""Made-up search problems, shared by the tests of the search rooms: scores depend on the seed and the order alone."""

import math
import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from corag.search import Benefit, SearchParameters
from corag.search.lockstep import Request
from corag.values import Candidate, Chunk, ChunkOrder


@dataclass(frozen=True)
class Case:
    """Costs, parameters, the seed of the scores and the share of orders that have none."""

    costs: tuple[int, ...]
    parameters: SearchParameters
    seed: int
    missing: float

    @property
    def places(self) -> list[tuple[str, int]]:
        """Documents and positions that are not in the order of the candidates."""
        return [(f"d{-index % 2}", -index) for index in range(len(self.costs))]

    def benefit(self, orders: Sequence[ChunkOrder]) -> list[float]:
        """W of each order in [0, 1], NaN for some."""
        return [made_up(self.seed, order, self.missing) for order in orders]


def made_up(seed: Hashable, order: ChunkOrder, missing: float = 0.0) -> float:
    """A benefit that looks random and is the same for the same seed and order; one decimal, so that ties occur."""
    draw = random.Random(f"{seed} {order}")
    return math.nan if draw.random() < missing else draw.randint(0, 10) / 10


@st.composite
def cases(draw: st.DrawFn, largest: int = 5, missing: float = 0.3) -> Case:
    """Problems of up to `largest` candidates, some of which fit no budget."""
    parameters = SearchParameters(
        budget=draw(st.integers(1, 200)),
        iterations=draw(st.integers(1, 15)),
        cost_coefficient=draw(st.sampled_from([0.0, 0.1, 0.3, 0.8])),
        exploration_coefficient=draw(st.sampled_from([0.0, 1.0, 2.4])),
        backup=draw(st.sampled_from(["best", "all"])),
        selection=draw(st.sampled_from(["uct", "best-first"])),
        max_chunks=draw(st.integers(1, 4)),
    )
    costs = tuple(draw(st.lists(st.integers(1, 90), max_size=largest)))
    return Case(costs, parameters, draw(st.integers(0, 10_000)), draw(st.sampled_from([0.0, missing])))


def by_table(table: dict[ChunkOrder, float], other: float = 0.0) -> Benefit:
    """The benefits of a table, `other` for the orders that it lacks."""
    return lambda orders: [table.get(order, other) for order in orders]


def by_scope(requests: Sequence[Request], broken: Sequence[Hashable] = ()) -> tuple[list[float], dict[Hashable, str]]:
    """Benefits that depend on scope and order; the `broken` scopes fail at their first order of two chunks."""
    failed = {scope: f"no {scope}" for scope, order in requests if scope in broken and len(order) > 1}
    return [made_up(scope, order) for scope, order in requests], failed


class FakeReranker:
    """Scores a pair by a function of (query, texts) and notes every batch."""

    batch_pairs = 4
    truncated = 0

    def __init__(self, score, name: str = "fake", identity: str = "fake r1") -> None:
        self.name, self.identity, self._score = name, identity, score
        self.batches: list[list] = []

    @property
    def pairs(self) -> list:
        """Every pair that was scored."""
        return [pair for batch in self.batches for pair in batch]

    def score_pairs(self, pairs):
        """Raw scores, in the order of the pairs."""
        scores = [self._score(query, texts) for query, texts in pairs]
        self.batches.append(list(pairs))
        return scores

    def to_unit(self, score: float) -> float:
        """A thousandth of the score."""
        return score / 1000


def candidates(texts: Sequence[str], cost: int = 10, prefix: str = "c") -> list[Candidate]:
    """One candidate per text, each of its own document, the nearest first."""
    return [
        Candidate(Chunk(f"{prefix}{rank}", f"doc-{prefix}{rank}", 0, 0, len(text), text, cost), 1 - rank / 100)
        for rank, text in enumerate(texts)
    ]
