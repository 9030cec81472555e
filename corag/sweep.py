"""Tries every configuration on every question (paper §5.2): order, answer, ROUGE-L; then labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from corag.generation_memo import GenerationMemo
from corag.labels import label_question
from corag.metrics import best_rouge
from corag.prompts import build_prompt
from corag.retrieval import Retrieval
from corag.selection import Chosen, Selection
from corag.settings import MetricSettings, PromptSettings, SweepSettings
from corag.sweep_plan import refinement
from corag.values import Configuration, Generation, Label, Question, Trial

NO_REFERENCE = "no reference answer"


@dataclass(frozen=True, slots=True)
class SweepParts:
    """What a sweep needs, loaded at the edge."""

    retrieve: Callable[[Sequence[Question]], list[Retrieval]]
    search: Callable[[Sequence[Selection]], list[Chosen]]
    generations: GenerationMemo
    prompt: PromptSettings
    metrics: MetricSettings


@dataclass(frozen=True, slots=True)
class Stages:
    """The first stage of a sweep in two: its grid, whose questions it serves, and their budget in tokens."""

    coarse: Sequence[Configuration]
    qids: frozenset[str]
    budget: int


@dataclass
class SweepOutcome:
    """Trials and labels, in the order of the questions; `asked` counts what every trial alone would have cost."""

    trials: list[Trial] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    pairs_alone: int = 0
    calls_alone: int = 0


def sweep(
    questions: Sequence[Question],
    configurations: Sequence[Configuration],
    parts: SweepParts,
    settings: SweepSettings,
    progress: Callable[[int], None] = lambda done: None,
    two_stage: Stages | None = None,
) -> SweepOutcome:
    """The trials of every question with every configuration, and each question's label.

    `two_stage` names the questions that try a coarse grid first and then only what lies around each reranker's best.
    Work is done `batch_questions` at a time; all that costs is remembered by the parts, so that a killed sweep goes
    on where its last batch of scores or generations was committed, and ends with the same trials.
    """
    outcome = SweepOutcome()
    for start in range(0, len(questions), settings.batch_questions):
        batch = questions[start : start + settings.batch_questions]
        by_question = _sweep_batch(batch, configurations, parts, settings, two_stage)
        for question, trials in zip(batch, by_question, strict=True):
            outcome.trials += trials
            outcome.pairs_alone += sum(trial.scored for trial in trials)
            outcome.calls_alone += sum(trial.failed_stage in (None, "generate") for trial in trials)
            usable = bool(question.answers)
            label = label_question(question.qid, trials, settings)
            outcome.labels.append(label if usable else Label(question.qid, kept=False, reason=NO_REFERENCE))
        progress(len(batch))
    return outcome


def _sweep_batch(
    questions: Sequence[Question],
    configurations: Sequence[Configuration],
    parts: SweepParts,
    settings: SweepSettings,
    two_stage: Stages | None,
) -> list[list[Trial]]:
    cases = list(zip(questions, parts.retrieve(questions), strict=True))
    if two_stage is None:
        return _try_all(cases, [configurations] * len(cases), parts)
    first = [two_stage.coarse if question.qid in two_stage.qids else configurations for question in questions]
    tried = _try_all(cases, first, parts)
    more = [
        refinement(trials, configurations, settings, [one.cost for one in retrieval.candidates], two_stage.budget)
        if question.qid in two_stage.qids and retrieval.error is None
        else []
        for (question, retrieval), trials in zip(cases, tried, strict=True)
    ]
    # A label breaks ties by the order of the list: it is that of the whole grid, whichever stage tried what.
    place = {configuration: index for index, configuration in enumerate(configurations)}
    return [
        sorted([*before, *after], key=lambda trial: place[trial.configuration])
        for before, after in zip(tried, _try_all(cases, more, parts), strict=True)
    ]


def _try_all(
    cases: Sequence[tuple[Question, Retrieval]], wanted: Sequence[Sequence[Configuration]], parts: SweepParts
) -> list[list[Trial]]:
    """The trials of each question with the configurations wanted for it."""
    selections = [
        Selection(question.qid, question.question, retrieval.candidates, configuration)
        for (question, retrieval), configurations in zip(cases, wanted, strict=True)
        if retrieval.error is None
        for configuration in configurations
    ]
    found = parts.search(selections)
    prompts = [
        build_prompt(selection.query, [chunk.text for chunk in chosen.chunks], parts.prompt)
        for selection, chosen in zip(selections, found, strict=True)
        if chosen.error is None
    ]
    generated = iter(parts.generations.generate(prompts))
    answers = [next(generated) if chosen.error is None else None for chosen in found]
    trials: dict[str, list[Trial]] = {question.qid: [] for question, _ in cases}
    references = {question.qid: question.answers for question, _ in cases}
    scores = _Scores(parts.metrics)
    for selection, chosen, generation in zip(selections, found, answers, strict=True):
        score = scores.of(references[selection.qid], generation)
        trials[selection.qid].append(_trial(selection, chosen, generation, score))
    for (question, retrieval), configurations in zip(cases, wanted, strict=True):
        if retrieval.error is not None:
            trials[question.qid] = [
                _failed(question.qid, configuration, retrieval.error, "retrieve") for configuration in configurations
            ]
    return [trials[question.qid] for question, _ in cases]


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
