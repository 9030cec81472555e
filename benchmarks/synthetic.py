"""Made-up benefits of chunk orders that are neither additive nor monotone and depend on the order: no model needed."""

import itertools
import math
import random
from collections.abc import Callable

from corag.values import ChunkOrder

OrderBenefit = Callable[[ChunkOrder], float]

FADE = 0.8
LENGTH_PENALTY = 0.18
LENGTH_EXPONENT = 1.3
STEEPNESS = 2.0


def synthetic_benefit(seed: int, n: int) -> tuple[OrderBenefit, list[int]]:
    """The benefit in (0, 1) of an order of `n` candidates (0 for the empty one), and each candidate's tokens.

    A candidate's worth fades with its place, each pair of neighbours helps or hurts, and every further chunk is
    charged more than the one before. The same seed gives the same instance.
    """
    # The draws keep this order: published figures of other searches were measured on these very instances.
    draw = random.Random(seed)
    worth = [draw.random() for _ in range(n)]
    beside = {pair: draw.gauss(0, 0.25) for pair in itertools.permutations(range(n), 2)}
    costs = [draw.randint(60, 140) for _ in range(n)]

    def benefit(order: ChunkOrder) -> float:
        if not order:
            return 0.0
        alone = sum(worth[index] * FADE**place for place, index in enumerate(order))
        together = sum(beside[pair] for pair in itertools.pairwise(order))
        charge = LENGTH_PENALTY * len(order) ** LENGTH_EXPONENT
        return 1.0 / (1.0 + math.exp(-STEEPNESS * (alone + together - charge)))

    return benefit, costs
