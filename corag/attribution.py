"""Why a method gains over `naive`: which set of chunks it chose, in which order, and when it stopped.

The score of a set is told from that of its order by asking it three times: in the order of the search, in document
order and shuffled. The mean of the two last is the set's *neutral* score, which no choice of an order has part in.
What the cost of tokens did is told by searching with λ and with λ = 0. One change at a time leads from `naive` to the
method; the two ways to get there (order first, or stopping first) are averaged, so that neither part is favoured. The
three parts add up to the gain exactly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corag.evaluation import EvaluationParts, generate_answers
from corag.evaluation_methods import DOCUMENT_ORDER, NAIVE, SHUFFLE, STRATEGIES, Asked, rearranged, searched_contexts
from corag.evaluation_rows import Context
from corag.metrics import Interval, best_rouge, bootstrap

PARTS = ("set", "order", "stopping")

ATTRIBUTION_COLUMNS = ("method", "part", "gain", "low", "high")

REARRANGED = (DOCUMENT_ORDER, SHUFFLE)


@dataclass(frozen=True, slots=True)
class Arranged:
    """The scores of one set of chunks: in the order that was chosen, in document order, and shuffled."""

    chosen: float
    document: float
    shuffled: float

    @property
    def neutral(self) -> float:
        """The score of the set when no order was chosen."""
        return (self.document + self.shuffled) / 2

    @property
    def order(self) -> float:
        """What the chosen order adds."""
        return self.chosen - self.neutral


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain over `naive` on one question, in parts."""

    set: float
    order: float
    stopping: float

    @property
    def total(self) -> float:
        """The whole gain."""
        return self.set + self.order + self.stopping


@dataclass(frozen=True, slots=True)
class Attribution:
    """One part of a method's gain over `naive`: the mean with its paired bootstrap interval."""

    method: str
    part: str
    gain: Interval


def split(naive: Arranged, free: Arranged, found: Arranged) -> Gain:
    """The gain of `found` over `naive` in parts; `free` is what the same search finds with λ = 0.

    set: neutral(free) − neutral(naive). order: what the search's order adds, with λ and without it on average, less
    what that of `naive` adds. stopping: found − free, in the chosen and in the neutral order on average.
    """
    return Gain(
        set=free.neutral - naive.neutral,
        order=(found.order + free.order) / 2 - naive.order,
        stopping=(found.chosen - free.chosen + found.neutral - free.neutral) / 2,
    )


def attributable(methods: Sequence[str]) -> list[str]:
    """Those of `methods` whose gain can be split: each that searches for its own set and order."""
    return [name for name in methods if name in STRATEGIES and name not in (NAIVE, *REARRANGED)]


def attribute(
    asked: Asked,
    methods: Sequence[str],
    parts: EvaluationParts,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Attribution]:
    """The parts of each method's gain over the questions that have a reference; a failed answer counts 0.

    Equal prompts are answered once, so that a set of one chunk costs nothing more.
    """
    places = [place for place, question in enumerate(asked.questions) if _scorable(question.answers, parts)]
    scored = asked.part(places)
    naive = _arranged(scored, searched_contexts(NAIVE, scored, parts.search, parts.seed), parts)
    told: list[Attribution] = []
    for method in attributable(methods):
        free = searched_contexts(method, scored, parts.search, parts.seed, free=True)
        found = searched_contexts(method, scored, parts.search, parts.seed)
        gains = [
            split(*three)
            for three in zip(naive, _arranged(scored, free, parts), _arranged(scored, found, parts), strict=True)
        ]
        told += [
            Attribution(method, part, bootstrap([getattr(gain, part) for gain in gains], seed=parts.seed))
            for part in PARTS
        ]
        progress(len(asked.questions))
    return told


def _scorable(answers: Sequence[str], parts: EvaluationParts) -> bool:
    return best_rouge(answers, "", parts.metrics) is not None


def _arranged(asked: Asked, contexts: Sequence[Context], parts: EvaluationParts) -> list[Arranged]:
    """The scores of each question's set in its three orders."""
    columns = [_scores(asked, contexts, parts)]
    for name in REARRANGED:
        moved = [
            rearranged(context, name, parts.seed, question.qid)
            for question, context in zip(asked.questions, contexts, strict=True)
        ]
        columns.append(_scores(asked, moved, parts))
    return [Arranged(*three) for three in zip(*columns, strict=True)]


def _scores(asked: Asked, contexts: Sequence[Context], parts: EvaluationParts) -> list[float]:
    scores = []
    for question, generation in zip(asked.questions, generate_answers(asked.questions, contexts, parts), strict=True):
        said = generation.text if generation is not None and generation.error is None else ""
        score = best_rouge(question.answers, said, parts.metrics)
        assert score is not None, "only questions with a reference are asked"
        scores.append(score.rouge_l)
    return scores


def attribution_rows(told: Sequence[Attribution]) -> list[dict[str, object]]:
    """The rows of `attribution.csv`."""
    return [
        {"method": one.method, "part": one.part, "gain": one.gain.mean, "low": one.gain.low, "high": one.gain.high}
        for one in told
    ]


def attribution_table(told: Sequence[Attribution]) -> str:
    """Each method's gain in parts as a Markdown table; empty where nothing was split."""
    if not told:
        return ""
    cells = {(one.method, one.part): one.gain for one in told}
    lines = ["| gain over naive from | which set | which order | when it stopped | sum |", "|---|---|---|---|---|"]
    for method in dict.fromkeys(one.method for one in told):
        own = [cells[method, part] for part in PARTS]
        parts = " | ".join(f"{one}{' *' if one.low > 0 or one.high < 0 else ''}" for one in own)
        lines.append(f"| {method} | {parts} | {sum(one.mean for one in own):+.3f} |")
    return "\n".join(lines)
