"""`corag answer` as a process of its own, killed and started again, against a server that fails three times in ten."""

import json
import random
import signal

import pytest

from benchmarks.faulty_proxy import FAULTS, FaultyProxy
from benchmarks.stand_in_server import StandInServer, serving
from tests.conftest import QUESTIONS
from tests.night_processes import COUNT, WAITED_SECONDS, Nightly, ended, kill, prefect_processes, wait_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def prefect_api(tmp_path_factory):
    """The environment of commands that share one Prefect server."""
    with prefect_processes(tmp_path_factory.mktemp("prefect")) as environment:
        yield environment


@pytest.fixture(scope="module")
def nightly(tmp_path_factory, smollm2_folder, prefect_api):
    """The project with its corpus indexed."""
    project = Nightly(tmp_path_factory.mktemp("nightly"), smollm2_folder, prefect_api)
    with serving(StandInServer()) as server:
        project.configure(server)
        ended(project.start("ingest"))
    return project


def lines(project, out):
    """The rows of an answers file without what differs from run to run, after checking that each question has one."""
    rows = project.rows(out)
    assert [row["qid"] for row in rows] == project.qids
    assert all(row["status"] in ("answered", "no_context", "failed") for row in rows)
    assert all((row["answer"] is None) == (row["status"] != "answered") for row in rows)
    assert all(row["error"] for row in rows if row["status"] == "failed")
    assert all(row["context_tokens"] <= row["budget"] for row in rows)
    return [{name: value for name, value in row.items() if name not in ("latency_ms",)} for row in rows]


def test_faults_lose_and_double_nothing(nightly):
    """300 questions while 30 % of the requests end in 500, 429, a hang, half a body or a reset: one line each."""
    with serving(StandInServer()) as server, serving(FaultyProxy(server.base_url, faulty=0.3, seed=1)) as proxy:
        nightly.configure(proxy, timeout_seconds=0.7)
        process = nightly.answer("faulty.jsonl")
        process.communicate(timeout=WAITED_SECONDS)
        rows = lines(nightly, "faulty.jsonl")
        failed = sum(row["status"] == "failed" for row in rows)
        assert process.returncode == (1 if failed else 0)
        assert failed < 0.05 * COUNT
        assert set(proxy.faults) == set(FAULTS)
        assert proxy.faults.total() > 0.2 * proxy.requests
        # Another run takes up what failed, and only that.
        delivered = proxy.delivered.total()
        proxy.faulty = 0.0
        ended(nightly.answer("faulty.jsonl"))
        assert {row["status"] for row in lines(nightly, "faulty.jsonl")} == {"answered"}
        assert proxy.delivered.total() - delivered == failed
        assert set(proxy.delivered.values()) == {1}


def test_ten_kills_at_random_moments_change_nothing(nightly):
    """SIGKILL after a random number of requests, ten times, under the same faults: the lines of a run left in peace."""
    moments = random.Random(7)
    with (
        serving(StandInServer(seconds=0.02)) as server,
        serving(FaultyProxy(server.base_url, faulty=0.3, seed=2)) as proxy,
    ):
        nightly.configure(proxy, timeout_seconds=0.7)
        for _ in range(10):
            process = nightly.answer("killed.jsonl")
            target = proxy.requests + moments.randrange(1, 40)
            wait_for(lambda: proxy.requests >= target, process)  # noqa: B023
            kill(process)
            assert process.returncode == -signal.SIGKILL
            assert not (nightly.root / "killed.jsonl").exists()
        proxy.faulty = 0.0
        ended(nightly.answer("killed.jsonl"))
        rows = lines(nightly, "killed.jsonl")
        assert {row["status"] for row in rows} == {"answered"}
        # What was committed is never asked for again; the eight requests on their way at a kill may be.
        assert sum(count - 1 for count in proxy.delivered.values()) <= 10 * 8
        assert not list(nightly.root.glob(".killed.jsonl*"))
        delivered = proxy.delivered.total()
        ended(nightly.answer("again.jsonl"))
        assert lines(nightly, "again.jsonl") == rows
        assert proxy.delivered.total() == delivered
    with serving(StandInServer()) as fresh:
        nightly.configure(fresh)
        ended(nightly.answer("whole.jsonl"))
        assert lines(nightly, "whole.jsonl") == rows


def test_a_kill_while_starting_or_writing_leaves_no_trace(nightly):
    """SCH-03: killed before the first request, and right after the last: the next run works at once and is complete."""
    with serving(StandInServer()) as server:
        nightly.configure(server)
        for moment in (lambda: (nightly.root / "ws/locks").exists(), lambda: server.answered.total() >= COUNT):
            process = nightly.answer("early.jsonl")
            wait_for(lambda: moment() or process.poll() is not None)  # noqa: B023
            kill(process)
        ended(nightly.answer("early.jsonl"))
        lines(nightly, "early.jsonl")
        assert server.answered.total() <= COUNT + 8


def test_two_at_once_answer_each_question_once(nightly):
    """SCH-02: of two runs on the same input one works; the other says so, or waits and finds everything done."""
    with serving(StandInServer(seconds=0.3)) as server:
        nightly.configure(server)
        first = nightly.answer("first.jsonl")
        wait_for(lambda: server.answered.total() > 10, first)
        second = nightly.answer("second.jsonl")
        third = nightly.answer("third.jsonl", "--set", "answer.lock_wait_seconds=200")
        ended(second, 2)
        assert "another process is answering these questions" in nightly.told()
        ended(first)
        ended(third)
        assert lines(nightly, "third.jsonl") == lines(nightly, "first.jsonl")
        assert not (nightly.root / "second.jsonl").exists()
        assert set(server.answered.values()) == {1}


def test_an_outage_ends_with_one_and_is_taken_up(nightly):
    """BAT-07: the server goes away for good in mid-run: exit code 1, what was answered is kept, the rest is pending."""
    with serving(StandInServer(seconds=0.3)) as server:
        nightly.configure(server, give_up_seconds=1.0, max_retries=2)
        process = nightly.answer("outage.jsonl")
        wait_for(lambda: server.answered.total() > 40, process)
        port = server.server_address[1]
    process.communicate(timeout=WAITED_SECONDS)
    assert process.returncode == 1
    rows = lines(nightly, "outage.jsonl")
    answered = sum(row["status"] == "answered" for row in rows)
    assert 30 <= answered < COUNT
    assert any("down" in (row["error"] or "") for row in rows)
    # At the same address it is the same generator, and therefore the same run.
    with serving(StandInServer(port=port)) as back:
        ended(nightly.answer("outage.jsonl"))
        assert {row["status"] for row in lines(nightly, "outage.jsonl")} == {"answered"}
        assert back.answered.total() <= COUNT - answered + 8


def test_japanese_text_survives_the_plainest_locale(nightly):
    """CFG-04: with LC_ALL=C and without UTF-8 mode questions and answers are read and written as UTF-8."""
    asked = [
        {"qid": "日本", "question": "アーレンの水車小屋はだれが建てましたか。"},
        {"qid": "b", "question": "odd \ud835?"},
    ]
    path = nightly.root / "japanese.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")
    out = nightly.root / "japanese-out.jsonl"
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with serving(StandInServer()) as server:
        nightly.configure(server)
        ended(nightly.start("answer", "--questions", path, "--out", out, **plain))
    rows = nightly.rows(out.name)
    assert [row["qid"] for row in rows] == ["日本", "b"]
    assert rows[0]["question"] == asked[0]["question"]
    assert rows[1]["question"] == "odd \ufffd?"
    assert all(row["status"] == "answered" for row in rows)
    assert "水車.md" in [cited["doc_id"] for cited in rows[0]["citations"]]


def test_a_poison_question_fails_alone(nightly):
    """10 MB, white space, control characters, a lone surrogate, a prompt beyond the context: each ends for itself."""
    asked = [
        {"qid": "before", "question": QUESTIONS["arlen"]},
        {"qid": "huge", "question": "x" * 10_000_000},
        {"qid": "blank", "question": " \n\t "},
        {"qid": "control", "question": "How long \x00 is \x07 the bridge of Brock?"},
        {"qid": "surrogate", "question": "Who \ud83d built the mill of Arlen?"},
        {"qid": "overflow", "question": "why " * 20_000},
        {"qid": "after", "question": QUESTIONS["eskel"]},
    ]
    path = nightly.root / "poison.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")
    with serving(StandInServer()) as server:
        nightly.configure(server)
        ended(nightly.start("answer", "--questions", path, "--out", nightly.root / "poison-out.jsonl"), 1)
    rows = {row["qid"]: row for row in nightly.rows("poison-out.jsonl")}
    assert {qid: row["status"] for qid, row in rows.items()} == {
        "before": "answered",
        "control": "answered",
        "surrogate": "answered",
        "overflow": "failed",
        "after": "answered",
    }
    assert "HTTP 400" in rows["overflow"]["error"]
    refused = nightly.rows("ws/quarantine/questions-answer.jsonl")
    assert [one["line"] for one in refused] == [2, 3]
    assert "10000000 characters" in refused[0]["reason"]
    last = nightly.told().rstrip().split("\n")[-1]
    assert "2 records rejected" in last
    assert "overflow: HTTP 400" in last


def test_a_night_with_limits_leaves_the_rest_for_the_next(nightly):
    """The token limit is kept and the deadline ends the run; what was left over is answered by the next run alone."""
    with serving(StandInServer(seconds=0.05)) as server:
        nightly.configure(server)
        ended(nightly.answer("limited.jsonl", "--set", "answer.token_limit=6000"), 1)
        rows = lines(nightly, "limited.jsonl")
        assert {row["error"] for row in rows if row["status"] == "failed"} == {"token_limit"}
        assert 1000 < sum(row["prompt_tokens"] + row["answer_tokens"] for row in rows) <= 6000
        first = server.answered.copy()
        server.seconds = 60
        ended(nightly.answer("limited.jsonl", "--set", "answer.deadline=8"), 1)
        assert {row["error"] for row in lines(nightly, "limited.jsonl") if row["status"] == "failed"} == {"deadline"}
        server.seconds = 0
        ended(nightly.answer("limited.jsonl"))
        assert {row["status"] for row in lines(nightly, "limited.jsonl")} == {"answered"}
        assert not set(first) & set(server.answered - first)


def test_an_unchanged_night_asks_nothing_again(nightly):
    """With `reuse: unchanged` a changed document costs the questions that retrieve it, and the others are marked."""
    reuse = ("--set", "answer.reuse=unchanged", "--set", "retrieval.top_k=2")
    document = nightly.root / "docs" / "eskel.md"
    held = document.read_text(encoding="utf-8")
    with serving(StandInServer()) as server:
        nightly.configure(server)
        ended(nightly.answer("monday.jsonl", *reuse))
        monday = lines(nightly, "monday.jsonl")
        assert not any(row["reused"] for row in monday)
        document.write_text(held.replace("840", "950"), encoding="utf-8")
        try:
            ended(nightly.start("ingest"))
            before = server.answered.copy()
            ended(nightly.answer("tuesday.jsonl", *reuse))
        finally:
            document.write_text(held, encoding="utf-8")
            ended(nightly.start("ingest"))
        tuesday = lines(nightly, "tuesday.jsonl")
        assert "a new run begins: the corpus changed" in nightly.told()
        anew = [row["question"] for row in tuesday if not row["reused"]]
        assert 0 < len(anew) < COUNT / 2
        assert all("Eskel" in question for question in anew)
        assert (server.answered - before).total() <= len(anew)
