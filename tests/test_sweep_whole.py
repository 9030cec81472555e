"""Sweeps with real searches, scorers and memo; only the models are made up, and note what they are asked."""

from dataclasses import dataclass, field, replace

import pytest

from corag.agents import FixedAgent
from corag.evaluation import EvaluationParts, evaluate
from corag.evaluation_methods import NAIVE
from corag.generation_memo import GenerationMemo
from corag.labels import ALL_ZERO, NOTHING_FINISHED
from corag.memo import Memo
from corag.metrics import rouge
from corag.order_scorer import OrderScorer
from corag.prompts import build_prompt
from corag.retrieval import Retrieval
from corag.selection import select
from corag.settings import MetricSettings, PromptSettings, SearchSettings, SweepSettings
from corag.sweep import Stages, sweep
from corag.sweep_plan import coarse_grid, grid
from corag.trials import SweepParts
from corag.values import Generation, Question
from flows.sweep_record import failed_everywhere
from tests.search_cases import FakeReranker, candidates, made_up

SETTINGS = SweepSettings(
    iterations=(1, 2, 6), cost_coefficients=(0.3,), exploration_coefficients=(2.4,), batch_questions=4
)
NAMES = ("one", "two")
GRID = grid(NAMES, SETTINGS)
SEARCH = SearchSettings(budget=30)
REFERENCE = "mill and map"


def texts_of(question: str) -> list[str]:
    """Five chunk texts about what is asked."""
    return [f"{question} {word}" for word in ("mills", "salt", "bridges", "bells", "maps")]


@dataclass
class Reader:
    """A generator that answers with the first chunk's text, unless told otherwise; stops after so many prompts."""

    stop_after: int | None = None
    says: dict = field(default_factory=dict)
    seen: list = field(default_factory=list)

    def generate(self, prompts):
        """One answer a prompt."""
        if self.stop_after is not None and len(self.seen) >= self.stop_after:
            raise KeyboardInterrupt
        self.seen += [prompt.user for prompt in prompts]
        return [self._answer(prompt.user) for prompt in prompts]

    def _answer(self, user):
        told = next((text for name, text in self.says.items() if name in user), user.split("\n\n")[0])
        return Generation(told, 1, 1, "stop")


@dataclass
class World:
    """Everything that a sweep depends on, and a memory that outlives the models."""

    memo: Memo = field(default_factory=lambda: Memo(None))
    identities: tuple[str, str] = ("one max_length=512", "two max_length=512")
    prompt: PromptSettings = field(default_factory=PromptSettings)
    metrics: MetricSettings = field(default_factory=MetricSettings)
    texts: object = staticmethod(texts_of)

    def parts(self, reader, score=made_up):
        """The parts, and the rerankers that they score with."""
        rerankers = [
            FakeReranker(lambda query, texts, name=name: score(f"{name} {query}", texts), name, identity)
            for name, identity in zip(NAMES, self.identities, strict=True)
        ]
        table = self.memo.table("scores")
        return (
            SweepParts(
                lambda asked: [
                    Retrieval(one.qid, tuple(candidates(self.texts(one.question), prefix=one.qid)), None)
                    for one in asked
                ],
                lambda selections: select(
                    selections, {one.name: OrderScorer(one, table, "per_query") for one in rerankers}, SEARCH
                ),
                GenerationMemo("reader", lambda: reader, self.memo.table("generations"), commit_every=3),
                self.prompt,
                self.metrics,
            ),
            rerankers,
        )


def questions(count, text="what of {}?"):
    """So many questions with a reference; the last two have one text."""
    asked = [Question(f"q{number:02d}", text.format(number), (REFERENCE,)) for number in range(count)]
    return [*asked[:-1], replace(asked[-1], question=asked[-2].question)]


def run(world, asked, reader=None, score=made_up, two_stage=None, settings=SETTINGS):
    """A sweep; its outcome, how many pairs each reranker scored, and what the reader was asked."""
    reader = reader or Reader()
    parts, rerankers = world.parts(reader, score)
    outcome = sweep(asked, GRID, parts, settings, two_stage=two_stage)
    return outcome, [len(one.pairs) for one in rerankers], reader.seen


def test_twenty_questions_by_six_configurations_survive_an_interruption():
    """SWP-03: 120 rows, none twice, twins labelled alike, nothing finished is redone, labels as if uninterrupted."""
    asked = questions(20)
    whole, pairs, prompts = run(World(), asked)
    world, first = World(), Reader(stop_after=len(prompts) // 2)
    scored = []
    with pytest.raises(KeyboardInterrupt):
        run(world, asked, first, lambda query, texts: scored.append((query, texts)) or made_up(query, texts))
    again, more, rest = run(world, asked)
    rows = [(trial.qid, trial.configuration) for trial in again.trials]
    assert len(rows) == len(set(rows)) == 120
    assert again == whole
    assert [replace(label, qid="") for label in again.labels[-2:]] == [replace(again.labels[-1], qid="")] * 2
    assert not set(first.seen) & set(rest)
    assert sorted(first.seen + rest) == sorted(prompts)
    assert len(scored) + sum(more) == sum(pairs)


@dataclass(frozen=True)
class Change:
    """What differs in the second sweep, which rerankers score anew, whether answers are made anew, what stays equal."""

    changes: dict
    scored: tuple[bool, bool] = (False, False)
    answered: bool = False
    equal: bool = True


CHANGES = {
    "nothing": Change({}),
    "max_length": Change({"identities": ("one max_length=64", "two max_length=512")}, scored=(True, False)),
    "prompt": Change({"prompt": PromptSettings(user="{context}\n\nBriefly: {question}")}, answered=True),
    "corpus": Change({"texts": lambda text: texts_of(f"{text} new")}, scored=(True, True), answered=True, equal=False),
    "stemming": Change({"metrics": MetricSettings(stemming=False)}, equal=False),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_each_change_recomputes_what_depends_on_it_and_nothing_else(change):
    """SWP-04: max_length the scores of its reranker, the prompt all answers, the corpus both, ROUGE's words neither."""
    world, asked = World(), questions(5)
    before, _, prompts = run(world, asked)
    after, more, asked_again = run(replace(world, **change.changes), asked)
    assert tuple(count > 0 for count in more) == change.scored
    assert (len(asked_again) > 0) == change.answered
    assert not set(asked_again) & set(prompts)
    assert len(after.trials) == len(before.trials)
    assert (after == before) == change.equal


def test_a_reranker_that_fails_on_one_question_or_on_all_leaves_the_rest_alone():
    """SWP-05: its cells failed, never 0; labels come from what ran; a reranker failing everywhere is named."""

    def one_fails(query, texts):
        if "of 1?" in query:
            raise RuntimeError("out of memory")
        return made_up(query, texts)

    fine = run(World(), questions(5))[0]
    outcome = run(World(), questions(5), score=one_fails)[0]
    failed = [trial for trial in outcome.trials if trial.error]
    assert {(trial.qid, trial.rouge_l, trial.failed_stage) for trial in failed} == {("q01", None, "search")}
    assert len(failed) == len(GRID)
    assert outcome.labels[1].reason.startswith(NOTHING_FINISHED)
    assert outcome.labels[1].configuration is None
    assert [label for label in outcome.labels if label.qid != "q01"] == [
        label for label in fine.labels if label.qid != "q01"
    ]
    assert failed_everywhere(outcome.trials) == []
    only_one = [trial if trial.configuration.reranker == "one" else replace(trial, error="no") for trial in fine.trials]
    assert failed_everywhere(only_one) == ["two"]


def test_what_raises_on_one_question_fails_that_question_only():
    """Whatever it is and wherever: the reason is kept, and the others end as without it."""
    asked = questions(6)
    fine = run(World(), asked)[0]
    parts, _ = World().parts(Reader())

    def explode(selections):
        if any(one.qid == "q02" for one in selections):
            raise ZeroDivisionError("division\nby zero")
        return parts.search(selections)

    outcome = sweep(asked, GRID, replace(parts, search=explode), SETTINGS)
    failed = {(trial.qid, trial.error, trial.failed_stage) for trial in outcome.trials if trial.error}
    assert failed == {("q02", "ZeroDivisionError: division by zero", "trial")}
    assert len(outcome.trials) == len(fine.trials)
    assert not outcome.labels[2].kept
    assert [one for one in outcome.trials if one.qid != "q02"] == [one for one in fine.trials if one.qid != "q02"]


@pytest.mark.parametrize(("stemming", "score"), [(True, 1.0), (False, 0.25)])
def test_sweep_and_evaluation_give_the_same_number(stemming, score):
    """EVL-03: one pair of texts scores alike in both, and as the setting says."""
    metrics = MetricSettings(stemming=stemming)
    asked = [Question("q", "what?", ("the agents activate reranking",))]
    reader = Reader(says={"what": "the agent activates rerankings"})
    parts, _ = replace(World(), metrics=metrics).parts(reader)
    (trial, *_) = sweep(asked, GRID, parts, SETTINGS).trials
    compared = evaluate(
        asked,
        [NAIVE],
        EvaluationParts(
            retrieve=parts.retrieve,
            search=parts.search,
            generations=parts.generations,
            agent=FixedAgent(GRID[0]),
            fixed=GRID[0],
            prompt=parts.prompt,
            metrics=metrics,
        ),
    )
    assert trial.rouge_l == pytest.approx(score)
    assert [row.rouge_l for row in compared] == [trial.rouge_l]


def test_a_runaway_answer_spoils_no_other_question():
    """EVL-05: 50,000 words for one of ten questions are compared by their beginning; the others are as without it."""
    asked = questions(10)
    fine = run(World(), asked)[0]
    runaway = "mills " + "word " * 50_000
    outcome = run(World(), asked, Reader(says={"of 3?": runaway}))[0]
    assert [one for one in outcome.trials if one.qid != "q03"] == [one for one in fine.trials if one.qid != "q03"]
    limit = MetricSettings().max_answer_characters
    expected = rouge(REFERENCE, runaway[:limit], MetricSettings()).rouge_l
    assert {one.rouge_l for one in outcome.trials if one.qid == "q03"} == {expected}
    assert outcome.labels[3].reason != ALL_ZERO


@pytest.mark.parametrize("most", [1, 2, 50])
def test_max_generations_is_the_most_prompts_of_a_question_in_both_stages(most):
    """Distinct prompts are counted, not trials; with room for all of them nothing is left out."""
    settings = SETTINGS.model_copy(update={"plan": "two-stage", "max_generations": most})
    stages = Stages(coarse_grid(NAMES, settings), frozenset({"q00", "q01"}), SEARCH)
    free, _, _ = run(World(), questions(4), two_stage=stages)
    outcome, _, prompts = run(World(), questions(4), two_stage=stages, settings=settings)
    for qid in ("q00", "q01"):
        rows = [trial for trial in outcome.trials if trial.qid == qid]
        assert 1 <= len({trial.chunk_ids for trial in rows}) <= most
        assert sum(f"of {int(qid[1:])}?" in prompt for prompt in prompts) <= most
    whole = [trial for trial in free.trials if trial.qid in ("q02", "q03")]
    assert [trial for trial in outcome.trials if trial.qid in ("q02", "q03")] == whole
    assert (outcome == free) == (most == 50)


def test_the_prompt_of_a_trial_is_that_of_its_order():
    """What the reader saw is built from the chunks of the trials, each distinct prompt once."""
    asked = questions(2, "where is {}?")[:1]
    outcome, _, prompts = run(World(), asked)
    texts = {f"q00{place}": text for place, text in enumerate(texts_of(asked[0].question))}
    built = {
        build_prompt(asked[0].question, [texts[name] for name in trial.chunk_ids], PromptSettings()).user
        for trial in outcome.trials
    }
    assert sorted(prompts) == sorted(built)
