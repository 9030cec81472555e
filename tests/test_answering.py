"""Answering a batch, keeping its rows, and comparing methods."""

import json
from dataclasses import replace

import numpy as np
import pytest

from corag.agents import Choice, FixedAgent
from corag.answer_file import write_answers
from corag.answer_parts import AnswerParts
from corag.answer_rows import AnswerRow
from corag.answer_store import AnswerStore
from corag.answering import answer_batch
from corag.errors import InputError
from corag.evaluation import EvaluationParts, evaluate
from corag.evaluation_methods import NAIVE
from corag.evaluation_summary import summarise, summary_table
from corag.retrieval import Retrieval
from corag.selection import Chosen
from corag.settings import MetricSettings, PromptSettings
from corag.values import Candidate, Configuration, Generation, Question
from flows.answer import summarise as summarise_answers
from tests.test_sweep import EchoGenerator, chunk, memoised

FIXED = Configuration("good", 10, 0.1, 2.4)
BAD = {"unsearchable": "no usable vector", "broken": "reranker good: out of memory"}


def retrieve(questions):
    """A vector and one candidate each, but for the question that cannot be embedded."""
    return [
        Retrieval(one.qid, (), None, BAD["unsearchable"])
        if one.qid == "unsearchable"
        else Retrieval(one.qid, (Candidate(chunk(f"about {one.qid}"), 0.9),), np.ones(2, np.float32))
        for one in questions
    ]


def search(selections):
    """Two chunks for each question; none for the poor one, a failure for the broken one."""
    found = []
    for one in selections:
        if one.qid == "broken":
            found.append(Chosen((), 0.0, 0, "failed", BAD["broken"]))
        elif one.qid == "poor":
            found.append(Chosen((), 0.0, 3, "end"))
        else:
            found.append(Chosen((chunk(f"about {one.qid}"), chunk("more", "e")), 0.7, 3, "end"))
    return found


def parts(generator=None, agent=None, **changes):
    """The parts of answering."""
    given = {
        "embed": lambda texts: None,
        "retrieve": retrieve,
        "agent": agent or FixedAgent(FIXED),
        "search": search,
        "generations": memoised(generator or EchoGenerator()),
        "prompt": PromptSettings(),
        "generator": "echo",
        "budget": 64,
        "fixed": FIXED,
    }
    return AnswerParts(**given | changes)


QUESTIONS = [Question(qid, f"{qid}?") for qid in ("b", "unsearchable", "poor", "a", "broken")]


def without_latency(rows):
    """Rows as they are but for the time they took."""
    return [row.model_dump(exclude={"latency_ms"}) for row in rows]


def test_every_question_gets_one_row_in_order_whatever_happens_to_the_others():
    """Answered, failed before and in the search, and without a worthwhile context."""
    rows = answer_batch(QUESTIONS, parts())
    assert [(row.qid, row.status) for row in rows] == [
        ("b", "answered"),
        ("unsearchable", "failed"),
        ("poor", "no_context"),
        ("a", "answered"),
        ("broken", "failed"),
    ]
    assert [row.error for row in rows if row.status == "failed"] == list(BAD.values())
    assert rows[0].answer == "about b"
    assert [cited.chunk_id for cited in rows[0].citations] == ["d#0", "e#0"]
    assert rows[0].context_tokens == 20
    assert rows[2].answer is None


def test_a_batch_gives_what_single_questions_give():
    """BAT-08: RER-10: nothing of one question reaches another."""
    together = without_latency(answer_batch(QUESTIONS, parts()))
    assert together == [without_latency(answer_batch([one], parts()))[0] for one in QUESTIONS]


def test_a_failed_generation_is_a_failed_row():
    """Its reason is one line, and there is no answer."""
    row, *_ = answer_batch(QUESTIONS, parts(EchoGenerator(fail_on="about b")))
    assert (row.status, row.answer, row.error) == ("failed", None, "server gone")


def test_rows_say_who_chose():
    """The version stands where the agent chose, not where it fell back."""

    class Halfway(FixedAgent):
        def choose(self, vectors):
            assert np.isnan(vectors[1]).all()
            return [Choice(FIXED, "agent" if index % 2 == 0 else "fixed", "") for index in range(len(vectors))]

    rows = answer_batch(QUESTIONS, parts(agent=Halfway(FIXED, version="3", dimension=2)))
    assert [(row.config_source, row.agent_version) for row in rows[:2]] == [("agent", "3"), ("fixed", None)]


def test_rows_are_kept_until_all_are_there(tmp_path):
    """A second write of a question replaces the first; a failed question is not finished."""
    store = AnswerStore(tmp_path / "run.sqlite")
    rows = answer_batch(QUESTIONS, parts())
    store.put(rows)
    store.put([replaced := rows[0].model_copy(update={"answer": "better"})])
    assert store.finished() == {"b", "poor", "a"}
    assert list(store.rows(["a", "b", "never"])) == [rows[3], replaced]
    store.close()
    assert list(AnswerStore(tmp_path / "run.sqlite").rows(["b"])) == [replaced]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_the_answers_file_is_whole_or_absent(tmp_path, name):
    """CFG-04: an odd answer is written like any other; nothing is left beside the file."""
    import pandas as pd

    rows = answer_batch(QUESTIONS, parts())
    rows[0] = rows[0].model_copy(update={"answer": "日本\u2028語"})
    out = tmp_path / "deep" / name
    write_answers(rows, out)
    assert [path.name for path in out.parent.iterdir()] == [name]
    if name.endswith(".parquet"):
        frame = pd.read_parquet(out)
        assert list(frame["qid"]) == [row.qid for row in rows]
        assert frame["citations"][0][0]["chunk_id"] == "d#0"
    else:
        lines = out.read_text(encoding="utf-8").split("\n")[:-1]
        assert [AnswerRow.model_validate(json.loads(line)) for line in lines] == rows


def test_an_unwritable_place_is_named(tmp_path):
    """The message says which file."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=r"a\.jsonl"):
        write_answers([], tmp_path / "file" / "a.jsonl")


def test_an_odd_answer_is_written_like_any_other(tmp_path):
    """CFG-04: a lone surrogate in a question or an answer is replaced; the other rows survive."""

    class Odd(EchoGenerator):
        def generate(self, prompts):
            return [replace(one, text="x\ud835") for one in super().generate(prompts)]

    rows = answer_batch([Question("b", "b \ud83d?"), *QUESTIONS[1:]], parts(Odd()))
    write_answers(rows, tmp_path / "a.jsonl")
    first, *others = (tmp_path / "a.jsonl").read_text(encoding="utf-8").split("\n")
    assert json.loads(first)["answer"] == "x\ufffd"
    assert json.loads(first)["question"] == "b \ufffd?"
    assert len(others) == len(QUESTIONS)


def test_the_summary_counts_cut_and_empty_answers():
    """BAT-04: each row says why its answer ended; those cut at the limit and the empty ones are counted."""

    class Short(EchoGenerator):
        def _answer(self, prompt):
            return Generation("" if "about a" in prompt.user else "four words and cut", 9, 4, "length")

    rows = answer_batch(QUESTIONS, parts(Short()))
    assert [row.finish_reason for row in rows if row.status == "answered"] == ["length", "length"]
    told = summarise_answers(iter(rows), 2.0)
    assert "5 questions (2 answered, 1 without context, 2 failed; 2 answers cut at the length limit, 1 empty)" in told
    assert "kept from an earlier night" not in told
    kept = summarise_answers([row.model_copy(update={"reused": True}) for row in rows], 2.0)
    assert "5 kept from an earlier night" in kept


def evaluation(generator=None):
    """The parts of an evaluation."""
    return EvaluationParts(
        retrieve=retrieve,
        search=search,
        generations=memoised(generator or EchoGenerator()),
        agent=FixedAgent(FIXED),
        fixed=FIXED,
        prompt=PromptSettings(),
        metrics=MetricSettings(),
    )


def test_failures_count_as_zero_and_missing_references_not_at_all():
    """EVL-02: n_total, n_scored and n_failed are in the table."""
    asked = [replace(one, answers=(f"about {one.qid}",)) for one in QUESTIONS if one.qid != "a"] + [QUESTIONS[3]]
    (summary,) = summarise(evaluate(asked, [NAIVE], evaluation()), seed=0)
    assert (summary.n_total, summary.n_scored, summary.n_failed) == (5, 4, 2)
    # b scores 1, the two failures 0; poor is answered without context: its prompt is the question alone.
    assert summary.rouge_l.mean == pytest.approx((1.0 + 0 + 0 + 2 * 1 * 0.5 / 1.5) / 4)
    assert "| naive | " in summary_table([summary])


def test_gains_are_paired_with_naive():
    """A method that answers the same gains exactly nothing."""
    asked = [replace(one, answers=(f"about {one.qid}",)) for one in QUESTIONS]
    naive, fixed = summarise(evaluate(asked, [NAIVE, "corag-fixed"], evaluation()), seed=0)
    assert naive.gain is None
    assert (fixed.gain.low, fixed.gain.high) == (0.0, 0.0)
