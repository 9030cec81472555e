"""The sweep: every trial once, errors never scores, and the same end after an interruption."""

import pytest

from corag.contexts import random_context, relevant_context
from corag.errors import HeadroomError, InputError
from corag.generation_memo import GenerationMemo
from corag.headroom import HeadroomCase, measure_headroom, require_headroom
from corag.labels import GENERATION_FAILED
from corag.memo import Memo
from corag.references import generated_references
from corag.retrieval import Retrieval
from corag.selection import Chosen
from corag.settings import MetricSettings, PromptSettings, SearchSettings, SweepSettings
from corag.sweep import NO_REFERENCE, Stages, SweepParts, sweep
from corag.sweep_files import read_sweep, write_sweep
from corag.sweep_plan import coarse_grid, grid
from corag.values import Chunk, Generation, Prompt, Question

SETTINGS = SweepSettings(
    iterations=(2, 5), cost_coefficients=(0.0, 0.3), exploration_coefficients=(2.4,), batch_questions=2
)
CONFIGURATIONS = grid(["good", "bad"], SETTINGS)


def chunk(text, doc_id="d", position=0, tokens=10):
    """A chunk with that text."""
    return Chunk(f"{doc_id}#{position}", doc_id, position, 0, len(text), text, tokens)


class EchoGenerator:
    """Answers with the context of the prompt; fails or stops where it is told to."""

    name = identity = "echo"
    context_length = 100
    given_up = False

    def __init__(self, fail_on="", stop_after=None):
        self.fail_on, self.stop_after, self.seen = fail_on, stop_after, []

    def count_prompt(self, prompt):
        return len(prompt.user)

    def generate(self, prompts):
        if self.stop_after is not None and len(self.seen) >= self.stop_after:
            raise KeyboardInterrupt
        self.seen += [prompt.user for prompt in prompts]
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt):
        if self.fail_on and self.fail_on in prompt.user:
            return Generation("", 1, 0, "error", "server gone")
        return Generation(prompt.user.split("\n\n")[0], 1, 1, "stop")

    def close(self):
        pass


def memoised(generator, memo=None, commit_every=2):
    """The generator behind a memo."""
    return GenerationMemo("echo", lambda: generator, (memo or Memo(None)).table("generations"), commit_every)


def find(questions):
    """No candidates are needed: the fake search invents its chunks."""
    return [Retrieval(question.qid, (), None) for question in questions]


def choose(selections):
    """The good reranker finds the answer, the bad one something else."""
    return [
        Chosen((chunk(f"the answer of {one.qid}" if one.configuration.reranker == "good" else "noise"),), 0.5, 3, "end")
        for one in selections
    ]


def parts(generations, search=choose, retrieve=find):
    """The parts of a sweep."""
    return SweepParts(retrieve, search, generations, PromptSettings(), MetricSettings())


def questions(count, text="what is it"):
    """Questions with the reference that the good reranker finds."""
    return [Question(f"q{number}", f"{text}?", (f"the answer of q{number}",)) for number in range(count)]


def run(asked, generator, memo=None, **changes):
    """A sweep of `asked`."""
    settings = SETTINGS.model_copy(update=changes)
    return sweep(asked, CONFIGURATIONS, parts(memoised(generator, memo)), settings)


def test_the_grid_holds_every_configuration_once():
    """Rerankers in their order, then λ, c and iterations in theirs."""
    assert len(set(CONFIGURATIONS)) == len(CONFIGURATIONS) == 8
    assert [one.reranker for one in CONFIGURATIONS] == ["good"] * 4 + ["bad"] * 4
    assert [one.iterations for one in CONFIGURATIONS[:2]] == [2, 5]


def test_every_trial_stands_once_and_twins_are_both_labelled():
    """SWP-03: two qids of one text are two questions; equal prompts are generated once."""
    generator = EchoGenerator()
    outcome = run(questions(3), generator)
    rows = [(trial.qid, trial.configuration) for trial in outcome.trials]
    assert len(set(rows)) == len(rows) == 3 * 8
    assert [(label.qid, label.kept, label.configuration.reranker) for label in outcome.labels] == [
        (f"q{number}", True, "good") for number in range(3)
    ]
    assert len(generator.seen) == len(set(generator.seen)) == 4
    assert (outcome.calls_alone, outcome.pairs_alone) == (24, 72)


def test_the_batch_size_changes_nothing():
    """Trials and labels are those of one question at a time."""
    assert run(questions(5), EchoGenerator(), batch_questions=1) == run(
        questions(5), EchoGenerator(), batch_questions=4
    )


def test_an_interrupted_sweep_ends_like_an_uninterrupted_one():
    """What was finished is not asked again; the labels are the same."""
    memo, whole = Memo(None), run(questions(5), EchoGenerator())
    first = EchoGenerator(stop_after=3)
    with pytest.raises(KeyboardInterrupt):
        run(questions(5), first, memo)
    second = EchoGenerator()
    assert run(questions(5), second, memo) == whole
    assert not set(first.seen) & set(second.seen)


def test_a_failing_reranker_is_no_score():
    """SWP-05: its cells are failed; the label comes from those that ran."""

    def search(selections):
        return [
            Chosen((), 0.0, 0, "failed", "reranker bad: out of memory")
            if one.configuration.reranker == "bad"
            else found
            for one, found in zip(selections, choose(selections), strict=True)
        ]

    outcome = sweep(questions(1), CONFIGURATIONS, parts(memoised(EchoGenerator()), search), SETTINGS)
    failed = [trial for trial in outcome.trials if trial.error]
    assert {(trial.configuration.reranker, trial.rouge_l, trial.failed_stage) for trial in failed} == {
        ("bad", None, "search")
    }
    assert not outcome.labels[0].kept


def test_a_failed_generation_drops_its_question_only():
    """The others keep their labels."""
    outcome = run(questions(2), EchoGenerator(fail_on="answer of q0"))
    assert [label.kept for label in outcome.labels] == [False, True]
    assert outcome.labels[0].reason.startswith(GENERATION_FAILED)


def test_questions_without_reference_or_vector_get_no_label():
    """Both say why."""

    def retrieve(asked):
        return [Retrieval(one.qid, (), None, "no usable vector" if one.qid == "q1" else None) for one in asked]

    asked = [Question("q0", "what?"), *questions(2)[1:]]
    outcome = sweep(asked, CONFIGURATIONS, parts(memoised(EchoGenerator()), retrieve=retrieve), SETTINGS)
    assert outcome.labels[0].reason == NO_REFERENCE
    assert "no usable vector" in outcome.labels[1].reason


def test_a_sweep_is_read_back_as_it_was_written(tmp_path):
    """Line separators inside a text do not tear the files; without a record there is no sweep."""
    with pytest.raises(InputError, match="corag sweep"):
        read_sweep(tmp_path)
    asked = [Question("q0", "odd\u2028question?", ("the answer of q0",), ("d",), {"kind": "one_fact"})]
    outcome = run(asked, EchoGenerator())
    write_sweep(tmp_path, outcome.trials, outcome.labels, asked, {"q0": "train"}, {"fingerprint": "f"})
    swept = read_sweep(tmp_path)
    assert swept.questions == asked
    assert swept.labels == outcome.labels
    assert list(swept.trials["rouge_l"]) == [trial.rouge_l for trial in outcome.trials]
    assert swept.record == {"fingerprint": "f"}


def test_generations_keep_their_order_and_failures_are_not_remembered():
    """BAT-02: answers belong to their prompts whatever order they were made in."""
    memo = Memo(None)
    prompts = [Prompt("", text) for text in ("long long text", "x", "broken", "x")]
    first = EchoGenerator(fail_on="broken")
    told = memoised(first, memo).generate(prompts)
    assert [one.text for one in told] == ["long long text", "x", "", "x"]
    assert sorted(first.seen) == ["broken", "long long text", "x"]
    again = EchoGenerator()
    assert [one.text for one in memoised(again, memo).generate(prompts)][2] == "broken"
    assert again.seen == ["broken"]


def test_headroom_is_the_gain_of_the_right_context():
    """ROUGE-L with the relevant chunks minus ROUGE-L without any, question by question."""
    cases = [
        HeadroomCase(one, one.answers, [chunk(one.answers[0])], [chunk("noise")]) for one in questions(4, "unrelated")
    ]
    headroom = measure_headroom(cases, memoised(EchoGenerator()), PromptSettings(), MetricSettings(), seed=0)
    assert (headroom.relevant, headroom.none) == (1.0, 0.0)
    assert headroom.over_none.low == 1.0
    require_headroom(headroom, 0.05)
    blind = [HeadroomCase(case.question, case.references, [chunk("noise")], case.random) for case in cases]
    flat = measure_headroom(blind, memoised(EchoGenerator()), PromptSettings(), MetricSettings(), seed=0)
    with pytest.raises(HeadroomError, match=r"min_headroom.*references=generated.*--force"):
        require_headroom(flat, 0.05)


def test_headroom_without_any_case_is_an_error():
    """A failed generation is left out; with nothing left there is nothing to say."""
    case = HeadroomCase(questions(1)[0], ("the answer of q0",), [chunk("broken")], [chunk("noise")])
    with pytest.raises(HeadroomError, match="could not be measured"):
        measure_headroom([case], memoised(EchoGenerator("broken")), PromptSettings(), MetricSettings(), seed=0)


def test_generated_references_replace_the_given_ones_altogether():
    """A question whose reference could not be written has none: the kinds are never mixed."""
    asked = questions(2)
    written = generated_references(asked, {"q0": [chunk("from the text")]}, memoised(EchoGenerator()), PromptSettings())
    assert [one.answers for one in written] == [("from the text",), ()]


def test_contexts_keep_the_budget():
    """The relevant chunk is the one that says most of the reference; random ones are of other documents."""
    chunks = {"d": [chunk("nothing here"), chunk("the answer is here", position=1)], "e": [chunk("more", "e")]}
    assert [one.position for one in relevant_context(chunks, ["d", "gone"], ["the answer"], 10)] == [1]
    assert relevant_context(chunks, ["d"], ["the answer"], 9) == []
    everything = [one for held in chunks.values() for one in held]
    assert [one.doc_id for one in random_context(everything, ["d"], 100, seed=0)] == ["e"]
    assert random_context(everything, [], 9, seed=0) == []


def test_two_stages_try_less_and_label_no_worse_than_the_first():
    """Held-out questions try the whole grid; a label never falls below the coarse grid's best; all is in grid order."""
    settings = SweepSettings(
        iterations=(1, 2, 3), cost_coefficients=(0.0, 0.1, 0.2, 0.3, 0.4), exploration_coefficients=(2.4,)
    )
    whole, coarse = grid(["good", "bad"], settings), coarse_grid(["good", "bad"], settings)

    def by_cost(selections):
        """The good reranker finds more of the answer the nearer λ is to 0.3."""
        words = ["the", "answer", "of", "it", "now"]
        return [
            Chosen(
                (chunk(" ".join(words[: 5 - round(abs(one.configuration.cost_coefficient - 0.3) * 10)])),), 0.5, 3, ""
            )
            if one.configuration.reranker == "good"
            else Chosen((chunk("noise"),), 0.5, 3, "")
            for one in selections
        ]

    asked = [Question(f"q{number}", "what?", ("the answer of it now",)) for number in range(2)]
    made = parts(memoised(EchoGenerator()), search=by_cost)
    outcome = sweep(
        asked, whole, made, settings, two_stage=Stages(coarse, frozenset({"q0"}), SearchSettings(budget=100))
    )
    rows = {qid: [one.configuration for one in outcome.trials if one.qid == qid] for qid in ("q0", "q1")}
    assert rows["q1"] == whole
    assert set(coarse) < set(rows["q0"]) < set(whole)
    assert rows["q0"] == [one for one in whole if one in set(rows["q0"])]
    assert [label.configuration.cost_coefficient for label in outcome.labels] == [0.3, 0.3]
    assert 0.3 not in {one.cost_coefficient for one in coarse}
