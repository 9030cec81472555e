"""Why a method gains over `naive`: which set of chunks it chose, in which order, and when it stopped.

One change at a time leads from `naive` to the method, each step a run of its own (R is its ROUGE-L on a question):

    set       R(the set that the method's search finds with λ = 0, in document order) − R(naive)
    order     R(the same set, in the order of that search) − R(it in document order)
    stopping  R(what the method finds with its own λ) − R(what it finds with λ = 0)

The sum is the method's gain, exactly and on every question. With λ = 0 tokens cost nothing, so what λ does beside
stopping earlier (it may also choose cheaper chunks) counts as stopping. Document order is one order among many: as a
check, `order-over-shuffle` is R(the set in the search's order) − R(it shuffled); it is no part of the sum.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from corag.evaluation import EvaluationParts, asked_of, generate_answers
from corag.evaluation_methods import DOCUMENT_ORDER, NAIVE, SHUFFLE, STRATEGIES, Asked, rearranged, searched_contexts
from corag.evaluation_rows import Context
from corag.metrics import Interval, best_rouge, bootstrap

PARTS = ("set", "order", "stopping")
"""What adds up to the gain."""

CHECK = "order-over-shuffle"
ATTRIBUTION_COLUMNS = ("method", "part", "gain", "low", "high")

REARRANGED = (DOCUMENT_ORDER, SHUFFLE)


@dataclass(frozen=True, slots=True)
class Runs:
    """The scores of one question in the runs that tell the parts apart.

    document, shuffled and free are those of the set found with λ = 0: in document order, shuffled, and as found.
    """

    naive: float
    document: float
    shuffled: float
    free: float
    found: float


@dataclass(frozen=True, slots=True)
class Attribution:
    """One part of a method's gain over `naive`, or the check: the mean with its paired bootstrap interval."""

    method: str
    part: str
    gain: Interval


def split(runs: Runs) -> dict[str, float]:
    """The gain of one question by part, and the check."""
    return {
        "set": runs.document - runs.naive,
        "order": runs.free - runs.document,
        "stopping": runs.found - runs.free,
        CHECK: runs.free - runs.shuffled,
    }


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
    contexts = searched_contexts(NAIVE, scored, parts.search, parts.seed)
    qids = [question.qid for question in scored.questions]
    naive = dict(zip(qids, _scores(scored, contexts, parts), strict=True))
    told: list[Attribution] = []
    for method in attributable(methods):
        own = asked_of(method, scored, parts)
        gains = [split(runs) for runs in _runs(method, own, naive, parts)]
        told += [
            Attribution(method, part, bootstrap([gain[part] for gain in gains], seed=parts.seed))
            for part in (*PARTS, CHECK)
            if gains
        ]
        progress(len(asked.questions))
    return told


def _runs(method: str, asked: Asked, naive: Mapping[str, float], parts: EvaluationParts) -> list[Runs]:
    free = searched_contexts(method, asked, parts.search, parts.seed, free=True)
    found = searched_contexts(method, asked, parts.search, parts.seed)
    moved = [_rearranged(asked, free, name, parts.seed) for name in REARRANGED]
    columns = [_scores(asked, contexts, parts) for contexts in (*moved, free, found)]
    return [
        Runs(naive[question.qid], *scores)
        for question, scores in zip(asked.questions, zip(*columns, strict=True), strict=True)
    ]


def _scorable(answers: Sequence[str], parts: EvaluationParts) -> bool:
    return best_rouge(answers, "", parts.metrics) is not None


def _rearranged(asked: Asked, contexts: Sequence[Context], arrangement: str, seed: int) -> list[Context]:
    return [
        rearranged(context, arrangement, seed, question.qid)
        for question, context in zip(asked.questions, contexts, strict=True)
    ]


def _scores(asked: Asked, contexts: Sequence[Context], parts: EvaluationParts) -> list[float]:
    scores = []
    for question, generation in zip(asked.questions, generate_answers(asked.questions, contexts, parts), strict=True):
        said = generation.text if generation is not None and generation.error is None else ""
        score = best_rouge(question.answers, said, parts.metrics)
        assert score is not None, "only questions with a reference are asked"
        scores.append(score.rouge_l)
    return scores


def attribution_rows(told: Sequence[Attribution]) -> list[dict[str, object]]:
    """The rows of `attribution.csv`: the parts that add up, without the check."""
    return [
        {"method": one.method, "part": one.part, "gain": one.gain.mean, "low": one.gain.low, "high": one.gain.high}
        for one in told
        if one.part in PARTS
    ]


def attribution_table(told: Sequence[Attribution]) -> str:
    """Each method's gain in parts as a Markdown table; empty where nothing was split."""
    if not told:
        return ""
    cells = {(one.method, one.part): one.gain for one in told}
    lines = [
        "| gain over naive from | which set | which order | when it stopped | sum | order over shuffle |",
        "|---|---|---|---|---|---|",
    ]
    for method in dict.fromkeys(one.method for one in told):
        own = [_marked(cells[method, part]) for part in PARTS]
        total = sum(cells[method, part].mean for part in PARTS)
        lines.append(f"| {method} | {' | '.join(own)} | {total:+.3f} | {_marked(cells[method, CHECK])} |")
    return "\n".join(lines)


def _marked(gain: Interval) -> str:
    return f"{gain}{' *' if gain.low > 0 or gain.high < 0 else ''}"
