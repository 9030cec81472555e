"""Overlapping stages: the same rows as one after the other, bounded, and ended by their limits."""

import threading
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corag.answer_limits import DEADLINE, HANGING, SERVER_GONE, TOKEN_LIMIT, Limits
from corag.answer_order import batches, most_promising
from corag.answer_rows import Latency
from corag.answer_stream import Overlap, answer_stream
from corag.answering import answer_batch
from corag.errors import ModelError, StoreError
from corag.retrieval import Retrieval
from corag.selection import Chosen
from corag.values import Candidate, Question
from tests.test_answering import parts, retrieve, search, without_latency
from tests.test_sweep import EchoGenerator, chunk

SERVER = Overlap(callers=3, prompts_per_call=1, waiting=4)
IN_PROCESS = Overlap(callers=1, prompts_per_call=8, waiting=1, in_turn=True)


def questions(count):
    """So many questions."""
    return [Question(f"q{number:04d}", f"question {number:04d}?") for number in range(count)]


def streamed(asked, answering, limits=None, overlap=SERVER, size=4):
    """All rows of a stream, in the order of `asked`."""
    place = {one.qid: index for index, one in enumerate(asked)}
    rows = [
        row for part in answer_stream(batches(asked, (), size), answering, limits or Limits(), overlap) for row in part
    ]
    assert sorted(place[row.qid] for row in rows) == list(range(len(asked)))
    return sorted(rows, key=lambda row: place[row.qid])


class SlowEcho(EchoGenerator):
    """Later prompts answer sooner, so that rows are finished in another order than they were asked."""

    def generate(self, prompts):
        time.sleep(0.004 if "0" in prompts[0].user else 0.001)
        return super().generate(prompts)


class Raising(EchoGenerator):
    """Raises for the prompts of one question."""

    def generate(self, prompts):
        if any("poison" in prompt.user for prompt in prompts):
            raise RuntimeError("the engine\nis gone")
        return super().generate(prompts)


ODD = ("unsearchable", "poor", "broken")


@settings(max_examples=25, deadline=None)
@given(
    kinds=st.lists(st.sampled_from(["plain", "twin", *ODD]), max_size=24),
    callers=st.integers(1, 4),
    per_call=st.integers(1, 5),
    waiting=st.integers(1, 5),
    size=st.integers(1, 7),
    in_turn=st.booleans(),
)
def test_overlapping_gives_what_one_after_the_other_gives(kinds, callers, per_call, waiting, size, in_turn):
    """BAT-02: each answer belongs to its question, whatever the order in which the calls end."""
    asked = [
        Question(f"{number}", "the same?" if kind == "twin" else f"{kind} {number}?")
        for number, kind in enumerate(kinds)
    ]
    odd = {one.qid: kind for one, kind in zip(asked, kinds, strict=True) if kind in ODD}

    def renamed(items):
        return [Question(odd.get(one.qid, one.qid), one.question) for one in items]

    def retrieve_odd(items):
        found = retrieve(renamed(items))
        return [
            Retrieval(one.qid, had.candidates, had.vector, had.error) for one, had in zip(items, found, strict=True)
        ]

    def search_odd(selections):
        return [
            search([type(one)(odd.get(one.qid, one.query), one.query, one.candidates, one.configuration)])[0]
            for one in selections
        ]

    def fresh():
        return parts(SlowEcho(), retrieve=retrieve_odd, search=search_odd)

    plain = answer_batch(asked, fresh())
    overlap = Overlap(callers, per_call, waiting, in_turn=in_turn)
    assert without_latency(streamed(asked, fresh(), overlap=overlap, size=size)) == without_latency(plain)


def test_the_search_goes_on_while_the_generator_works():
    """The next batch is searched before the first is answered; with `in_turn` it is not."""
    for overlap, expected in ((SERVER, True), (IN_PROCESS, False)):
        busy, searched_meanwhile = threading.Event(), threading.Event()

        class Waiting(EchoGenerator):
            def generate(self, prompts, busy=busy, meanwhile=searched_meanwhile):
                busy.set()
                meanwhile.wait(0.5)
                busy.clear()
                return super().generate(prompts)

        def noting(selections, busy=busy, meanwhile=searched_meanwhile):
            if busy.is_set():
                meanwhile.set()
            time.sleep(0.002)
            return search(selections)

        streamed(questions(16), parts(Waiting(), search=noting), overlap=overlap)
        assert searched_meanwhile.is_set() == expected


def test_little_is_held_at_once():
    """10,000 questions: those that were searched and not yet taken stay within the bounds of the queues."""
    state = Counter()
    most = 0

    def counting(selections):
        nonlocal most
        state["searched"] += len(selections)
        most = max(most, state["searched"] - state["taken"])
        return search(selections)

    answering = parts(EchoGenerator(), search=counting)
    overlap = Overlap(callers=4, prompts_per_call=1, waiting=16)
    for rows in answer_stream(batches(questions(10_000), (), 32), answering, Limits(), overlap):
        state["taken"] += len(rows)
    assert state["taken"] == 10_000
    # A batch in preparation, the waiting calls, the finished rows, and what the collector holds.
    assert most <= 32 + 16 + 4 + 16 + 256


def test_prompts_that_share_a_beginning_are_sent_next_to_each_other():
    """Two contexts, asked alternately, reach the server one after the other; equal prompts reach it once."""

    def by_parity(selections):
        return [Chosen((chunk("even" if int(one.qid[1:]) % 2 == 0 else "odd"),), 0.5, 1, "end") for one in selections]

    generator = EchoGenerator()
    asked = [*questions(8), Question("q0100", "question 0000?")]
    streamed(asked, parts(generator, search=by_parity), overlap=Overlap(1, 1, 2, in_turn=True), size=9)
    assert [seen.split("\n")[0] for seen in generator.seen] == ["even"] * 4 + ["odd"] * 4


def test_a_part_that_raises_for_one_question_fails_that_question_only():
    """The embedder, the search and the generator each choke on a poison question: the others are answered."""

    def choking(items):
        if any("poison" in str(getattr(one, "question", one)) for one in items):
            raise MemoryError("10 MB")
        return retrieve(items)

    asked = [*questions(5), Question("p", "poison?"), *[Question(f"r{number}", f"r{number}?") for number in range(3)]]
    for answering, reason in (
        (parts(retrieve=choking), "MemoryError: 10 MB"),
        (parts(Raising(), search=search_by_text), "generator: RuntimeError: the engine is gone"),
    ):
        rows = streamed(asked, answering)
        assert [row.qid for row in rows if row.status != "answered"] == ["p"]
        assert rows[5].error == reason
        assert without_latency(answer_batch(asked, answering)) == without_latency(rows)


def search_by_text(selections):
    """A chunk that holds the question."""
    return [Chosen((chunk(one.query),), 0.5, 1, "end") for one in selections]


@pytest.mark.parametrize("overlap", [SERVER, IN_PROCESS])
@pytest.mark.parametrize("error", [StoreError("no store"), ModelError("no model")])
def test_what_is_broken_for_every_question_ends_the_run(overlap, error):
    """A missing store or model is no failure of a question; what was finished before stays good."""

    class Broken(EchoGenerator):
        def generate(self, prompts):
            if self.seen:
                raise error
            return super().generate(prompts)

    kept = []

    def take_all():
        for rows in answer_stream(batches(questions(30), (), 4), parts(Broken()), Limits(), overlap):
            kept.extend(rows)

    with pytest.raises(type(error)):
        take_all()
    assert {row.status for row in kept} <= {"answered"}


def test_an_engine_that_dies_leaves_what_was_answered():
    """BAT-07: after 10 of 30 questions every call raises: each question has one row, ten are answered, and it ends."""

    class Dying(EchoGenerator):
        def generate(self, prompts):
            if len(self.seen) >= 10:
                raise RuntimeError("engine core died")
            return super().generate(prompts)

    rows = streamed(questions(30), parts(Dying(), search=search_by_text), overlap=Overlap(1, 1, 4))
    assert Counter(row.status for row in rows) == {"answered": 10, "failed": 20}
    assert {row.error for row in rows if row.error} == {"generator: RuntimeError: engine core died"}


class Hanging(EchoGenerator):
    """Hangs on one prompt until it is told to go on."""

    def __init__(self):
        super().__init__()
        self.go_on = threading.Event()

    def generate(self, prompts):
        if any("0003" in prompt.user for prompt in prompts):
            self.go_on.wait(60)
        return super().generate(prompts)


def test_a_call_that_hangs_is_not_waited_for():
    """SCH-08: its question is timed out; over a server all others are answered, by a thread that takes its place."""
    generator = Hanging()
    overlap = Overlap(callers=1, prompts_per_call=1, waiting=4, timeout_seconds=0.2)
    rows = streamed(questions(20), parts(generator, search=search_by_text), overlap=overlap)
    generator.go_on.set()
    assert [row.error for row in rows if row.status == "failed"] == ["timed out: no answer within 0.2 s"]
    assert rows[3].status == "failed"
    assert rows[3].citations == ()


def test_a_model_that_hangs_in_this_process_ends_the_run():
    """SCH-08: its batch is timed out; nobody can use the model any more, so the rest is left for the next run."""
    generator = Hanging()
    overlap = Overlap(callers=1, prompts_per_call=4, waiting=1, timeout_seconds=0.2, in_turn=True)
    rows = streamed(questions(40), parts(generator, search=search_by_text), overlap=overlap)
    generator.go_on.set()
    assert [row.status for row in rows] == ["failed"] * 40
    assert Counter(row.error for row in rows) == {"timed out: no answer within 0.2 s": 4, HANGING: 36}


def test_at_the_deadline_nothing_is_begun_and_nothing_is_half_written():
    """What was answered in time is whole; the rest is failed, calls on their way included."""
    now = [0.0]

    class Ticking(EchoGenerator):
        def generate(self, prompts):
            now[0] += 1.0
            return super().generate(prompts)

    limits = Limits(deadline=6.5, clock=lambda: now[0])
    rows = streamed(questions(40), parts(Ticking(), search=search_by_text), limits, Overlap(1, 1, 4))
    assert {row.error for row in rows if row.status == "failed"} == {DEADLINE}
    answered = [row for row in rows if row.status == "answered"]
    assert 5 <= len(answered) <= 7
    assert all(row.answer and row.citations for row in answered)
    assert all(row.answer is None and not row.citations for row in rows if row.status == "failed")


def test_a_hanging_server_does_not_outlive_the_deadline():
    """A call on its way at the deadline is not waited for."""
    generator = Hanging()
    limits = Limits(deadline=time.monotonic() + 0.3)
    rows = streamed(questions(8), parts(generator, search=search_by_text), limits, Overlap(1, 1, 8))
    generator.go_on.set()
    assert [row.qid for row in rows if row.error == DEADLINE] == [f"q{number:04d}" for number in range(3, 8)]


@settings(max_examples=25, deadline=None)
@given(limit=st.integers(1, 80), callers=st.integers(1, 4), most=st.integers(2, 9))
def test_the_token_limit_is_never_exceeded(limit, callers, most):
    """Each call reserves what it may take; what it did not take is given back (the echo takes two tokens)."""
    limits = Limits(token_limit=limit)
    answering = parts(EchoGenerator(), search=search_by_text, most_tokens=lambda prompt: most)
    rows = streamed(questions(30), answering, limits, Overlap(callers, 1, 4))
    taken = sum(row.prompt_tokens + row.answer_tokens for row in rows)
    assert taken == limits.tokens <= limit
    assert {row.error for row in rows if row.status == "failed"} <= {TOKEN_LIMIT}
    if callers == 1:
        # The last one fits as long as its reservation does.
        assert taken == 2 * min(30, max(0, (limit - most) // 2 + 1))


def test_a_server_that_was_given_up_ends_the_run():
    """Nothing is searched any more; what is left says so and is taken up by the next run."""
    searched = []

    def noting(selections):
        searched.extend(selections)
        return search(selections)

    generator = EchoGenerator()
    limits = Limits(given_up=lambda: len(generator.seen) >= 5)
    rows = streamed(questions(60), parts(generator, search=noting), limits, Overlap(1, 1, 4))
    assert Counter(row.error for row in rows)[SERVER_GONE] >= 50
    assert len(searched) < 30


def test_the_most_promising_questions_come_first():
    """By the similarity of the best candidate; equal ones in their order; what nobody looked up comes last."""
    near = {"q0001": 0.9, "q0004": 0.9, "q0002": 0.95}

    def look_up(items):
        return [
            Retrieval(
                one.qid, (Candidate(chunk("x"), near[one.qid]),) if one.qid in near else (), np.ones(2, np.float32)
            )
            for one in items
        ]

    asked = questions(6)
    assert [one.qid[-1] for one in most_promising(asked, look_up, 2)] == ["2", "1", "4", "0", "3", "5"]
    moments = iter([0.0, 0.0, 5.0])
    late = most_promising(asked, look_up, 2, until=1.0, clock=lambda: next(moments))
    assert [one.qid[-1] for one in late] == ["2", "1", "0", "3", "4", "5"]


def test_batches_are_cut_from_all_questions():
    """What is finished is left out of its batch; the others stay in theirs."""
    asked = questions(7)
    found = [[one.qid[-1] for one in part] for part in batches(asked, {"q0001", "q0003", "q0004", "q0005"}, 3)]
    assert found == [["0", "2"], ["6"]]


def test_a_server_that_waits_gets_its_prompts_sooner():
    """Fewer questions are searched at once as long as the server has nothing to do, more again when prompts wait."""
    sizes = []

    def noting(selections):
        sizes.append(len(selections))
        return search(selections)

    slow_search = parts(EchoGenerator(), search=lambda selections: time.sleep(0.02) or noting(selections))
    streamed(questions(64), slow_search, overlap=Overlap(4, 1, 64), size=32)
    assert sizes[:3] == [1, 1, 1]
    sizes.clear()

    class Slow(EchoGenerator):
        def generate(self, prompts):
            time.sleep(0.02)
            return super().generate(prompts)

    streamed(questions(64), parts(Slow(), search=noting), overlap=Overlap(1, 1, 64), size=32)
    assert sizes[0] == 1
    assert max(sizes) >= 16
    sizes.clear()
    streamed(questions(64), parts(EchoGenerator(), search=noting), overlap=IN_PROCESS, size=32)
    assert sizes == [32, 32]


def test_with_a_stub_the_batch_size_changes_no_byte():
    """BAT-08: 20 questions in batches of 1 and 16, twice each: what differs is the time alone."""
    written = {
        "".join(
            row.model_copy(update={"latency_ms": Latency()}).model_dump_json()
            for row in streamed(questions(20), parts(search=search_by_text), overlap=overlap, size=size)
        )
        for size in (1, 16)
        for overlap in (SERVER, IN_PROCESS)
    }
    assert len(written) == 1
