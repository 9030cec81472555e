"""The plan of a sweep: how many reranker pairs and LLM calls it takes at most, as if nothing were remembered."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corag.components import Components
from corag.contexts import group_by_document, random_context, relevant_context
from corag.headroom import HeadroomCase, headroom_prompts
from corag.memo import MemoTable, Value
from corag.order_scorer import OrderScorer, ScoreTable
from corag.references import reference_prompts
from corag.retrieval import Retrieval, retrieve
from corag.selection import Chosen, Selection, select
from corag.sweep_bounds import Work, most_work
from corag.sweep_files import Part
from corag.sweep_plan import coarse_grid, grid
from corag.trials import Wanted, prompts_of
from corag.values import Chunk, Configuration, Prompt, Question

SEARCHED_PAIRS = 20_000
"""A sweep of at most so many pairs is planned by doing its searches: only these tell what trees and trials share."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The most work, and how its calls were told."""

    work: Work
    how: str


def planned_work(
    parts: Components,
    questions: list[Question],
    sides: Mapping[str, Part],
    relevant: Mapping[str, list[Chunk]],
    table: MemoTable,
) -> Plan:
    """The most reranker pairs and language model calls of the whole sweep, references and headroom included.

    A small sweep's are counted by doing its searches, with their scores in `table`; those of a large one, or of one in
    two stages, are bounded from the candidates' tokens.
    """
    config, (whole, coarse) = parts.config, grids(parts)
    found = retrieve(parts.store, parts.embedder, questions, config.retrieval)
    trials = Work(0, 0)
    for question, retrieval in zip(questions, found, strict=True):
        costs = [candidate.cost for candidate in retrieval.candidates]
        trials += most_work(whole, config.sweep, costs, config.search, limited=sides[question.qid] == "train")
    before = _prompts_before(parts, [one for one in questions if sides[one.qid] == "train"], questions, relevant)
    if coarse is not None or trials.pairs > SEARCHED_PAIRS:
        return Plan(trials + Work(0, len(before)), "bounds from the tokens of the candidates")
    noted = _NotedTable(table)
    asked = before | _trial_prompts(parts, questions, found, whole, noted)
    return Plan(Work(len(noted.keys), len(asked)), "counted by doing the searches")


class _NotedTable:
    """A table of scores that notes which were asked for."""

    def __init__(self, inner: MemoTable) -> None:
        self._inner = inner
        self.keys: set[str] = set()

    def get_many(self, keys: Sequence[str]) -> dict[str, Value]:
        self.keys.update(keys)
        return self._inner.get_many(keys)

    def put_many(self, items: Mapping[str, Value]) -> None:
        self._inner.put_many(items)


def grids(parts: Components) -> tuple[list[Configuration], list[Configuration] | None]:
    """The whole grid, and the first stage's where the sweep has two."""
    names, settings = [reranker.name for reranker in parts.config.rerankers], parts.config.sweep
    return grid(names, settings), coarse_grid(names, settings) if settings.plan == "two-stage" else None


def relevant_chunks(parts: Components, questions: Sequence[Question]) -> dict[str, list[Chunk]]:
    """By qid the chunks of the relevant documents that a perfect retrieval would find, within the budget."""
    chunks = group_by_document(parts.chunks)
    return {
        question.qid: relevant_context(chunks, question.relevant_ids, question.answers, parts.config.search.budget)
        for question in questions
    }


def headroom_cases(
    parts: Components, train: Sequence[Question], relevant: Mapping[str, list[Chunk]]
) -> list[HeadroomCase]:
    """A sample of the questions that have relevant chunks, drawn with the seed, each with random chunks beside them."""
    config = parts.config
    usable = [question for question in train if relevant.get(question.qid)]
    sample = random.Random(config.seed).sample(usable, min(config.sweep.headroom_sample, len(usable)))  # noqa: S311
    return [
        HeadroomCase(
            question,
            question.answers,
            relevant[question.qid],
            random_context(parts.chunks, question.relevant_ids, config.search.budget, config.seed + place),
        )
        for place, question in enumerate(sample)
    ]


def _prompts_before(
    parts: Components, train: Sequence[Question], questions: Sequence[Question], relevant: Mapping[str, list[Chunk]]
) -> set[Prompt]:
    """The distinct prompts of the references and of the headroom check."""
    prompt, given = parts.config.prompt, parts.config.sweep.references == "given"
    usable = [question for question in train if question.answers or not given]
    asked = set(headroom_prompts(headroom_cases(parts, usable, relevant), prompt))
    if not given:
        ready = [question for question in questions if relevant.get(question.qid)]
        asked |= set(reference_prompts(ready, relevant, prompt))
    return asked


def _trial_prompts(
    parts: Components,
    questions: Sequence[Question],
    found: Sequence[Retrieval],
    configurations: Sequence[Configuration],
    table: ScoreTable,
) -> set[Prompt]:
    """The distinct prompts of all trials, a batch of questions at a time."""
    config, asked = parts.config, set()

    def search(selections: Sequence[Selection]) -> list[Chosen]:
        scorers = {
            one.name: OrderScorer(parts.reranker(one.name), table, config.search.normalize) for one in config.rerankers
        }
        return select(selections, scorers, config.search, config.seed)

    wanted = [Wanted(*case, configurations) for case in zip(questions, found, strict=True)]
    for start in range(0, len(wanted), config.sweep.batch_questions):
        asked |= set(prompts_of(wanted[start : start + config.sweep.batch_questions], search, config.prompt))
    return asked
