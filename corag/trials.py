"""The trials of questions: order → prompt → answer → ROUGE-L; each distinct prompt is answered and scored once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from corag.generation_memo import GenerationMemo
from corag.metrics import best_rouge
from corag.prompts import build_prompt
from corag.retrieval import Retrieval
from corag.selection import Chosen, Selection
from corag.settings import MetricSettings, PromptSettings
from corag.values import Configuration, Generation, Prompt, Question, Trial


@dataclass(frozen=True, slots=True)
class SweepParts:
    """What a sweep needs, loaded at the edge."""

    retrieve: Callable[[Sequence[Question]], list[Retrieval]]
    search: Callable[[Sequence[Selection]], list[Chosen]]
    generations: GenerationMemo
    prompt: PromptSettings
    metrics: MetricSettings


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to try on one question: its candidates, the configurations, what matters most first, and a limit.

    most_prompts: the most distinct prompts, None for any number; a configuration whose order would be one too many is
    left out. known: the orders (chunk ids) whose prompts an earlier stage has asked already, part of the limit.
    """

    question: Question
    retrieval: Retrieval
    configurations: Sequence[Configuration]
    most_prompts: int | None = None
    known: frozenset[tuple[str, ...]] = field(default_factory=frozenset)


def try_all(wanted: Sequence[Wanted], parts: SweepParts) -> list[list[Trial]]:
    """The trials of each question, in the order of its configurations."""
    pairs = _searched(wanted, parts.search)
    generated = iter(parts.generations.generate(_prompts(pairs, parts.prompt)))
    trials: dict[str, list[Trial]] = {one.question.qid: [] for one in wanted}
    references = {one.question.qid: one.question.answers for one in wanted}
    scores = _Scores(parts.metrics)
    for selection, chosen in pairs:
        generation = next(generated) if chosen.error is None else None
        score = scores.of(references[selection.qid], generation)
        trials[selection.qid].append(_trial(selection, chosen, generation, score))
    for one in wanted:
        if one.retrieval.error is not None:
            trials[one.question.qid] = failed_trials(
                one.question.qid, one.configurations, one.retrieval.error, "retrieve"
            )
    return [trials[one.question.qid] for one in wanted]


def prompts_of(
    wanted: Sequence[Wanted], search: Callable[[Sequence[Selection]], list[Chosen]], prompt: PromptSettings
) -> list[Prompt]:
    """The prompts that `try_all` would send to the generator, duplicates among them: searches only."""
    return _prompts(_searched(wanted, search), prompt)


def orders_asked(trials: Sequence[Trial]) -> frozenset[tuple[str, ...]]:
    """The distinct orders whose prompts these trials of one question have sent to the generator."""
    return frozenset(trial.chunk_ids for trial in trials if trial.failed_stage in (None, "generate"))


def failed_trials(qid: str, configurations: Sequence[Configuration], error: str, stage: str) -> list[Trial]:
    """A failed trial a configuration, with the reason and the stage."""
    return [_failed(qid, configuration, error, stage) for configuration in configurations]


def _searched(
    wanted: Sequence[Wanted], search: Callable[[Sequence[Selection]], list[Chosen]]
) -> list[tuple[Selection, Chosen]]:
    selections = [
        Selection(one.question.qid, one.question.question, one.retrieval.candidates, configuration)
        for one in wanted
        if one.retrieval.error is None
        for configuration in one.configurations
    ]
    return _within_limits(wanted, list(zip(selections, search(selections), strict=True)))


def _prompts(pairs: Sequence[tuple[Selection, Chosen]], prompt: PromptSettings) -> list[Prompt]:
    return [
        build_prompt(selection.query, [chunk.text for chunk in chosen.chunks], prompt)
        for selection, chosen in pairs
        if chosen.error is None
    ]


def _within_limits(
    wanted: Sequence[Wanted], pairs: Sequence[tuple[Selection, Chosen]]
) -> list[tuple[Selection, Chosen]]:
    """The searches whose prompts stay within their question's limit."""
    limits = {one.question.qid: one.most_prompts for one in wanted if one.most_prompts is not None}
    asked = {one.question.qid: set(one.known) for one in wanted}
    kept = []
    for selection, chosen in pairs:
        own, most = asked[selection.qid], limits.get(selection.qid)
        order = tuple(chunk.chunk_id for chunk in chosen.chunks)
        if chosen.error is None and order not in own:
            if most is not None and len(own) >= most:
                continue
            own.add(order)
        kept.append((selection, chosen))
    return kept


class _Scores:
    """ROUGE-L of each distinct (references, answer), computed once."""

    def __init__(self, metrics: MetricSettings) -> None:
        self._metrics = metrics
        self._known: dict[tuple[tuple[str, ...], str], float | None] = {}

    def of(self, references: tuple[str, ...], generation: Generation | None) -> float | None:
        if generation is None or generation.error is not None:
            return None
        name = (references, generation.text)
        if name not in self._known:
            score = best_rouge(references, generation.text, self._metrics)
            self._known[name] = score.rouge_l if score else None
        return self._known[name]


def _trial(selection: Selection, chosen: Chosen, generation: Generation | None, score: float | None) -> Trial:
    if chosen.error is not None:
        return _failed(selection.qid, selection.configuration, chosen.error, "search", chosen.scored)
    assert generation is not None
    failed = generation.error is not None
    return Trial(
        qid=selection.qid,
        configuration=selection.configuration,
        chunk_ids=tuple(chunk.chunk_id for chunk in chosen.chunks),
        context_tokens=sum(chunk.tokens for chunk in chosen.chunks),
        benefit=chosen.benefit,
        answer=None if failed else generation.text,
        rouge_l=score,
        scored=chosen.scored,
        error=generation.error,
        failed_stage="generate" if failed else None,
    )


def _failed(qid: str, configuration: Configuration, error: str, stage: str, scored: int = 0) -> Trial:
    return Trial(qid, configuration, (), 0, 0.0, None, None, scored, error, stage)
