"""What a night is and how it ends: deadlines, runs that are the same or new, answers that are kept."""

import multiprocessing
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from corag.agents import FixedAgent
from corag.answer_file import write_answers
from corag.answer_limits import Limits, seconds_until
from corag.answer_reuse import KeptAnswers, reuse_scope
from corag.answer_runs import begin, run_record, sole_run
from corag.answer_store import AnswerStore
from corag.answering import answer_batch
from corag.config import load_config
from corag.errors import ConfigError, InputError
from corag.memo import Memo
from corag.retrieval import Retrieval
from corag.settings import Config
from corag.values import Candidate, Question
from tests.test_answering import FIXED, QUESTIONS, parts, retrieve, without_latency
from tests.test_sweep import EchoGenerator, chunk

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("deadline", "now", "hours"),
    [
        (90.0, datetime(2026, 6, 1, 2, tzinfo=BERLIN), 0.025),
        ("06:30", datetime(2026, 6, 1, 2, tzinfo=BERLIN), 4.5),
        ("06:30", datetime(2026, 6, 1, 22, tzinfo=BERLIN), 8.5),
        ("06:30", datetime(2026, 6, 1, 6, 30, tzinfo=BERLIN), 24),
        ("06:30", datetime(2026, 3, 29, 0, tzinfo=BERLIN), 5.5),
        ("06:30", datetime(2026, 10, 25, 0, tzinfo=BERLIN), 7.5),
    ],
    ids=["seconds", "later today", "tomorrow", "just passed", "clocks go forward", "clocks go back"],
)
def test_a_deadline_is_seconds_or_the_next_time_of_day(deadline, now, hours):
    """A time of day is meant by the clock of its zone, also in a night in which the clocks change."""
    assert seconds_until(deadline, now) == hours * 3600


@pytest.mark.parametrize(
    ("written", "kept"),
    [("22:30", "22:30"), ("6:05", "6:05"), ("06:30", "06:30"), ("90", 90.0), ("'7:15'", "7:15"), ("null", None)],
)
def test_a_time_of_day_is_read_as_one(written, kept, tmp_path):
    """YAML takes 22:30 for the number 1350; here it is a time, in a file as in an override."""
    file = tmp_path / "c.yaml"
    file.write_text(f"answer: {{deadline: {written}}}\n" if ":" not in written else f"answer:\n  deadline: {written}\n")
    assert load_config(file).answer.deadline == kept
    assert load_config(file, [f"answer.deadline={written}"]).answer.deadline == kept


@pytest.mark.parametrize("written", ["25:00", "06:60", "soon", "0", "-3", ".nan", ".inf"])
def test_what_is_no_deadline_is_refused(written):
    """The message names the key and shows what is wanted."""
    with pytest.raises(ConfigError, match=r"answer\.deadline.*a deadline.*seconds"):
        load_config(None, [f"answer.deadline={written}"])


def test_the_share_of_the_time_left():
    """A tenth of what is left to the deadline, from now; for ever where there is none."""
    assert Limits(deadline=110.0, clock=lambda: 10.0).share(0.1) == 20.0
    assert Limits().share(0.1) == float("inf")


CONFIG = Config()


def record(config=CONFIG, questions=QUESTIONS, generator="g", corpus="c", agent=None):
    """A run's record."""
    return run_record(config, questions, generator, corpus, 1, agent or FixedAgent(FIXED, version="3"))


def test_a_changed_champion_begins_a_new_run_and_says_so(tmp_path):
    """So does whatever else decides the answers; the same run again has nothing to say."""
    assert begin(record(), tmp_path) is None
    assert begin(record(), tmp_path) is None
    told = begin(record(agent=FixedAgent(FIXED, version="4")), tmp_path)
    assert "the champion was fixed version 3 and is fixed version 4" in told
    changed = CONFIG.model_copy(update={"seed": 1})
    assert "the configuration changed" in begin(record(changed, agent=FixedAgent(FIXED, version="4")), tmp_path)
    assert "the corpus changed" in begin(record(corpus="d"), tmp_path)
    assert "'g'" in begin(record(generator="h"), tmp_path)
    assert begin(record(questions=QUESTIONS[:2]), tmp_path) is None


def test_what_does_not_decide_an_answer_does_not_change_the_run():
    """Batch size, deadline and the reuse of answers leave the run what it is; a question's own filter does not."""
    other = CONFIG.answer.model_copy(update={"batch_questions": 7, "deadline": "06:30", "reuse": "unchanged"})
    assert record(CONFIG.model_copy(update={"answer": other})).identity == record().identity
    filtered = [replace(QUESTIONS[0], metadata={"filter.source": "rare"}), *QUESTIONS[1:]]
    assert record(questions=filtered).identity != record().identity


def test_a_record_of_another_version_is_passed_over(tmp_path):
    """A file that cannot be read is no run to compare with."""
    (tmp_path / "odd.json").write_text("{")
    (tmp_path / "older.json").write_text('{"questions": "x"}')
    assert begin(record(), tmp_path) is None


def test_the_record_tells_what_the_answers_were_made_with():
    """BAT-08: equal bytes are not promised between batch sizes and versions, so both are on record with the seed."""
    made_with = record().made_with
    assert made_with["seed"] == 0
    assert made_with["batch_questions"] == 32
    assert {"batch_size", "store_version", "transformers", "torch", "openai"} <= set(made_with)


def _hold(folder, ready, go_on):
    with sole_run("r", folder, 0.0):
        ready.set()
        go_on.wait(60)


def test_a_run_is_held_by_one_process_and_dies_with_it(tmp_path):
    """SCH-03: a second one is refused while the first lives, and goes ahead when the first was killed."""
    context = multiprocessing.get_context("fork")
    ready, go_on = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(tmp_path, ready, go_on))
    holder.start()
    assert ready.wait(30)
    with pytest.raises(InputError, match="another process is answering"), sole_run("r", tmp_path, 0.0):
        pass
    holder.kill()
    holder.join()
    with sole_run("r", tmp_path, 0.0):
        pass


def kept_by(memo, scope="s"):
    """Answers kept in `memo`."""
    return KeptAnswers(memo.table("answers"), scope)


def test_an_unchanged_question_keeps_its_answer():
    """Neither searched nor generated again, and marked; a failed question is asked again."""
    memo = Memo(None)
    first = answer_batch(QUESTIONS, parts(kept=kept_by(memo)))
    searched, generator = [], EchoGenerator()

    def search_noting(selections):
        searched.extend(one.qid for one in selections)
        return parts().search(selections)

    again = answer_batch(QUESTIONS, parts(generator, search=search_noting, kept=kept_by(memo)))
    assert searched == ["broken"]
    assert generator.seen == []
    assert [row.qid for row in again if row.reused] == ["b", "poor", "a"]
    unmarked = [row.model_copy(update={"reused": False}) for row in again]
    assert without_latency(unmarked) == without_latency(first)


@pytest.mark.parametrize("change", ["text", "chunk", "configuration", "scope", "question"])
def test_an_answer_whose_grounds_changed_is_made_anew(change):
    """Another text under the same chunk id, another chunk, configuration, generator or question."""
    memo = Memo(None)
    answer_batch(QUESTIONS[:1], parts(kept=kept_by(memo)))

    def changed(questions):
        other = chunk("about x") if change == "text" else chunk("about b", "z")
        return [Retrieval(one.qid, (Candidate(other, 0.9),), retrieve([one])[0].vector) for one in questions]

    fixed = replace(FIXED, iterations=5) if change == "configuration" else FIXED
    answering = parts(
        retrieve=changed if change in ("text", "chunk") else retrieve,
        agent=FixedAgent(fixed),
        kept=kept_by(memo, "other" if change == "scope" else "s"),
    )
    asked = Question("b", "another?") if change == "question" else QUESTIONS[0]
    (row,) = answer_batch([asked], answering)
    assert not row.reused


def test_a_kept_answer_belongs_to_tonights_question_and_agent():
    """The qid and who chose are tonight's; the text is last night's."""
    memo = Memo(None)
    answer_batch(QUESTIONS[:1], parts(kept=kept_by(memo)))
    (row,) = answer_batch(
        [Question("new", "b?")], parts(retrieve=lambda asked: retrieve(QUESTIONS[:1]), kept=kept_by(memo))
    )
    assert (row.qid, row.reused, row.answer, row.config_source) == ("new", True, "about b", "fixed")


def test_the_scope_of_kept_answers_is_what_decides_them():
    """The generator, prompt, budget and rerankers belong to it; where answers go does not."""
    scope = reuse_scope(CONFIG, "g")
    assert scope != reuse_scope(CONFIG, "h")
    assert scope != reuse_scope(
        CONFIG.model_copy(update={"prompt": CONFIG.prompt.model_copy(update={"system": "x"})}), "g"
    )
    assert scope == reuse_scope(CONFIG.model_copy(update={"workspace": "elsewhere"}), "g")


def test_a_complete_run_may_begin_again(tmp_path):
    """It is complete only once it was said, and forgets that with its rows."""
    store = AnswerStore(tmp_path / "run.sqlite")
    store.put(answer_batch(QUESTIONS, parts()))
    assert not store.complete
    store.set_complete()
    store.close()
    again = AnswerStore(tmp_path / "run.sqlite")
    assert again.complete
    again.begin_again()
    assert not again.complete
    assert again.finished() == set()


def test_rows_come_in_the_order_asked_for_however_many(tmp_path):
    """More rows than one query of the database takes."""
    store = AnswerStore(tmp_path / "run.sqlite")
    (row,) = answer_batch(QUESTIONS[:1], parts())
    qids = [f"q{number}" for number in range(1203)]
    store.put(row.model_copy(update={"qid": qid}) for qid in reversed(qids))
    assert [one.qid for one in store.rows(qids)] == qids


def test_what_a_killed_writer_left_is_removed(tmp_path):
    """Its process is no more; the unfinished file of a living one stays."""
    context = multiprocessing.get_context("fork")
    process = context.Process(target=int)
    process.start()
    process.join()
    out = tmp_path / "a[1].jsonl"
    dead, alive = (out.with_name(f".{out.name}.{pid}.part") for pid in (process.pid, 1))
    for path in (dead, alive):
        path.write_text("half")
    write_answers(iter(answer_batch(QUESTIONS, parts())), out)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([out.name, alive.name])
