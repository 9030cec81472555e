"""Compares methods on the same questions, candidates, generator and budget."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from corag.agents import Agent
from corag.answer_prepare import question_vectors
from corag.generation_memo import GenerationMemo
from corag.metrics import Interval, best_rouge, bootstrap
from corag.prompts import build_prompt
from corag.retrieval import Retrieval
from corag.search import Strategy
from corag.selection import Chosen, Selection
from corag.settings import MetricSettings, PromptSettings
from corag.values import Configuration, Question

NAIVE = "naive"
FIXED = "corag-fixed"
AGENT = "corag"
STRATEGIES: dict[str, Strategy] = {
    FIXED: "mcts",
    AGENT: "mcts",
    NAIVE: "naive",
    "greedy": "greedy",
    "document-order": "document-order",
    "shuffle": "shuffle",
    "upper": "exhaustive",
}
"""Every method and the search strategy behind it; all but `corag` use the fixed configuration."""

DEFAULT_METHODS = (NAIVE, FIXED, AGENT)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One question answered by one method. `rouge_l` is None where there is no reference; a failure counts 0."""

    qid: str
    method: str
    answer: str | None
    rouge_1: float | None
    rouge_2: float | None
    rouge_l: float | None
    context_tokens: int
    chunk_ids: tuple[str, ...]
    reranker: str
    error: str | None


@dataclass(frozen=True, slots=True)
class MethodSummary:
    """One row of the comparison: headline means over every scored question, failures counted as 0."""

    method: str
    rouge_1: float
    rouge_2: float
    rouge_l: Interval
    gain_over_naive: Interval | None
    context_tokens: float
    n_total: int
    n_scored: int
    n_failed: int


@dataclass(frozen=True, slots=True)
class EvaluationParts:
    """What an evaluation needs, loaded at the edge."""

    retrieve: Callable[[Sequence[Question]], list[Retrieval]]
    search: Callable[[Sequence[Selection]], list[Chosen]]
    generations: GenerationMemo
    agent: Agent
    fixed: Configuration
    prompt: PromptSettings
    metrics: MetricSettings


def evaluate(
    questions: Sequence[Question],
    methods: Sequence[str],
    parts: EvaluationParts,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Evaluated]:
    """Every question answered by every method; equal prompts are generated once."""
    retrievals = parts.retrieve(questions)
    vectors = question_vectors(retrievals, parts.agent.dimension)
    chosen_by_agent = [choice.configuration for choice in parts.agent.choose(vectors)]
    rows: list[Evaluated] = []
    for method in methods:
        configurations = chosen_by_agent if method == AGENT else [parts.fixed] * len(questions)
        rows += _evaluate_method(questions, retrievals, configurations, method, parts)
        progress(len(questions))
    return rows


def _evaluate_method(
    questions: Sequence[Question],
    retrievals: Sequence[Retrieval],
    configurations: Sequence[Configuration],
    method: str,
    parts: EvaluationParts,
) -> list[Evaluated]:
    usable = [index for index, retrieval in enumerate(retrievals) if retrieval.error is None]
    found = parts.search(
        [
            Selection(
                questions[index].qid,
                questions[index].question,
                retrievals[index].candidates,
                configurations[index],
                STRATEGIES[method],
            )
            for index in usable
        ]
    )
    chosen = dict(zip(usable, found, strict=True))
    ready = [index for index in usable if chosen[index].error is None]
    prompts = [
        build_prompt(questions[index].question, [chunk.text for chunk in chosen[index].chunks], parts.prompt)
        for index in ready
    ]
    generated = dict(zip(ready, parts.generations.generate(prompts), strict=True))
    rows = []
    for index, question in enumerate(questions):
        pick, generation = chosen.get(index), generated.get(index)
        error = retrievals[index].error or (pick.error if pick else None) or (generation.error if generation else None)
        answer = generation.text if generation is not None and error is None else None
        score = best_rouge(question.answers, answer or "", parts.metrics)
        chunks = pick.chunks if pick is not None and pick.error is None else ()
        rows.append(
            Evaluated(
                qid=question.qid,
                method=method,
                answer=answer,
                rouge_1=score.rouge_1 if score else None,
                rouge_2=score.rouge_2 if score else None,
                rouge_l=score.rouge_l if score else None,
                context_tokens=sum(chunk.tokens for chunk in chunks),
                chunk_ids=tuple(chunk.chunk_id for chunk in chunks),
                reranker=configurations[index].reranker,
                error=error,
            )
        )
    return rows


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
    gain = None
    if naive is not None and method != NAIVE:
        pairs = [(row.rouge_l, naive[row.qid].rouge_l) for row in scored if row.qid in naive]
        gain = bootstrap(
            [mine - theirs for mine, theirs in pairs if mine is not None and theirs is not None], seed=seed
        )

    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values) if values else float("nan")

    return MethodSummary(
        method=method,
        rouge_1=mean([row.rouge_1 for row in scored if row.rouge_1 is not None]),
        rouge_2=mean([row.rouge_2 for row in scored if row.rouge_2 is not None]),
        rouge_l=bootstrap([row.rouge_l for row in scored if row.rouge_l is not None], seed=seed),
        gain_over_naive=gain,
        context_tokens=mean([row.context_tokens for row in held.values()]),
        n_total=len(held),
        n_scored=len(scored),
        n_failed=sum(row.error is not None for row in held.values()),
    )


def summary_table(summaries: Sequence[MethodSummary]) -> str:
    """The comparison as a Markdown table."""
    lines = [
        "| method | ROUGE-L | gain over naive | ROUGE-1 | ROUGE-2 | context tokens | questions | scored | failed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in summaries:
        gain = str(one.gain_over_naive) if one.gain_over_naive else ""
        lines.append(
            f"| {one.method} | {one.rouge_l} | {gain} | {one.rouge_1:.3f} | {one.rouge_2:.3f} "
            f"| {one.context_tokens:.0f} | {one.n_total} | {one.n_scored} | {one.n_failed} |"
        )
    return "\n".join(lines)
