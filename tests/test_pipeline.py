"""The main job on real models: what it writes, what a second run does, and what each command says of bad input."""

import json
import re

import pytest

from corag.answer_rows import AnswerRow
from tests.conftest import QUESTIONS, TOWNS, write_rows

pytestmark = pytest.mark.usefixtures("prefect_server")


def one_line(result, code):
    """The error line of a command that must have ended with `code` and no traceback."""
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return [line for line in result.stderr.split("\n") if line.startswith("corag ")][-1]


def test_the_whole_job_ends_well_and_says_what_it_did(finished):
    """Documents, labels, agent, comparison, examples and where to look next are in the summary."""
    assert finished.result.exit_code == 0, finished.result.output
    said = finished.result.stdout
    for part in ("6 documents", "labels:", "train:", "naive", "corag-fixed", "Q: ", "mlflow ui", "LLM calls:"):
        assert part in said, said
    assert "Traceback" not in finished.result.output


def test_every_answer_keeps_the_contract(finished):
    """One line a qid in input order; within the budget; citations are distinct spans of the documents."""
    rows = [AnswerRow.model_validate(row) for row in finished.rows("ws/answers/held_out.jsonl")]
    assert [row.qid for row in rows] == [row["qid"] for row in finished.rows("held-out.jsonl")]
    for row in rows:
        assert row.context_tokens <= row.budget == 60
        assert row.status == "answered"
        assert row.answer
        assert row.finish_reason in ("stop", "length")
        assert len({cited.chunk_id for cited in row.citations}) == len(row.citations) > 0
        for cited in row.citations:
            text = (finished.root / "docs" / cited.doc_id).read_text()
            assert text[cited.start : cited.end].strip()


def test_every_answer_cites_the_town_it_was_asked_about(finished):
    """Each question is answered from its own topic's document (RER-10)."""
    for row in finished.rows("ws/answers/held_out.jsonl"):
        assert f"{row['qid'].removeprefix('held_out-')}.md" in [cited["doc_id"] for cited in row["citations"]]


def test_a_second_run_does_nothing_again(finished):
    """No text is embedded, no pair scored and no answer generated twice."""
    again = finished.run("run")
    assert again.exit_code == 0, again.output
    assert "nothing has changed since the last one" in again.stdout
    assert "0 texts embedded" in again.stdout
    assert "loading the generator" not in again.stderr


def test_the_trials_are_complete_and_the_labels_reasoned(finished):
    """Every (question, configuration) stands once; every training question has a label or a reason."""
    import pandas as pd

    trials = pd.read_parquet(finished.root / "ws/sweep/trials.parquet")
    keys = ["qid", "reranker", "iterations", "cost_coefficient", "exploration_coefficient"]
    assert len(trials) == (6 + 3) * 3 * 2 * 2
    assert not trials.duplicated(keys).any()
    labels = finished.rows("ws/sweep/labels.jsonl")
    assert {label["qid"] for label in labels if label["part"] == "train"} == {f"train-{town}" for town in TOWNS}
    assert all(label["reason"] for label in labels)


def test_the_plan_bounds_what_the_sweep_cost(finished):
    """From nothing, a small sweep costs just what its plan counted, and the dry run says the same."""
    said = finished.result.stdout
    (scored, most), (made, planned) = (
        map(int, re.search(rf"{work}: (\d+) (?:scored|made) now, planned at most (\d+)", said).groups())
        for work in ("reranker pairs", "LLM calls")
    )
    assert (scored, made) == (most, planned)
    dry = finished.run("sweep", "--dry-run").stdout
    assert f"reranker pairs: at most {most}\n" in dry
    assert f"LLM calls: at most {planned}\n" in dry


def test_changing_what_a_trial_depends_on_sweeps_again(finished, tmp_path):
    """SWP-04: another prompt or ROUGE setting is a new sweep; an unchanged one is a full hit."""
    project = finished.copied(tmp_path / "own")
    same = project.run("sweep", "--dry-run")
    assert "trials" in same.stdout
    changed = project.run("sweep", "--set", "metrics.stemming=false")
    assert changed.exit_code == 0, changed.output
    assert "nothing has changed" not in changed.stdout
    assert "LLM calls: 0 made now" in changed.stdout
    restored = project.run("sweep")
    assert "nothing has changed" not in restored.stdout
    assert "0 scored now" in restored.stdout


def test_answer_writes_parquet_and_reuses_finished_rows(finished):
    """The format follows the extension; the rows of an earlier run of the same questions are kept."""
    import pandas as pd

    out = finished.root / "answers.parquet"
    result = finished.run("answer", "--questions", finished.root / "held-out.jsonl", "--out", out)
    assert result.exit_code == 0, result.output
    assert list(pd.read_parquet(out)["qid"]) == [row["qid"] for row in finished.rows("held-out.jsonl")]
    assert "loading the generator" not in result.stderr


def test_a_budget_too_small_for_any_chunk_gives_no_context(finished):
    """Nothing fits: the row says so, and the command is no failure."""
    out = finished.root / "tiny.jsonl"
    result = finished.run(
        "answer", "--questions", finished.root / "held-out.jsonl", "--out", out,
        "--set", "chunking.chunk_tokens=1", "--budget", "1",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = finished.rows("tiny.jsonl")
    assert {row["status"] for row in rows} == {"no_context"}
    assert all(row["answer"] is None and row["error"] and row["context_tokens"] == 0 for row in rows)


def test_bad_questions_are_listed_and_the_rest_is_answered(finished):
    """A torn line, an empty question and a conflicting qid each fail alone: exit code 1, quarantine, no loss."""
    path = finished.root / "mixed.jsonl"
    good = {"qid": "007", "question": QUESTIONS["arlen"]}
    write_rows(path, [good, {"qid": "empty", "question": "  "}, {"qid": "007", "question": "Another?"}, good])
    with path.open("a") as file:
        file.write('{"qid": "torn", "quest')
    result = finished.run("answer", "--questions", path, "--out", finished.root / "mixed-out.jsonl")
    line = one_line(result, 1)
    assert "3 records rejected" in line
    assert f"{path}:2" in line
    assert [row["qid"] for row in finished.rows("mixed-out.jsonl")] == ["007"]
    kept = finished.rows("ws/quarantine/questions-answer.jsonl")
    assert [row["line"] for row in kept] == [2, 3, 5]


def test_evaluate_compares_methods_and_explain_shows_one_question(finished):
    """The table has a row a method; the explanation shows candidates, orders, prompt and answer."""
    out = finished.root / "report"
    result = finished.run(
        "evaluate",
        *("--questions", finished.root / "held-out.jsonl", "--out", out),
        *("--methods", "naive,greedy,raptor,oracle", "--ablations", "exploration"),
    )
    assert result.exit_code == 0, result.output
    summary = (out / "summary.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in summary for name in ("naive", "greedy", "raptor", "oracle", "embed", "which set"))
    tables = {path.stem: path.read_text(encoding="utf-8").splitlines() for path in (out / "tables").glob("*.csv")}
    assert {"methods", "attribution", "retrieval", "cases", "ablations"} == set(tables)
    assert [line.split(",")[0] for line in tables["methods"]] == ["method", "naive", "greedy", "raptor", "oracle"]
    assert len(tables["ablations"]) == 1 + 4
    assert "Where the gain comes from" in (out / "report.html").read_text(encoding="utf-8")
    told = finished.run("explain", QUESTIONS["brock"])
    assert told.exit_code == 0, told.output
    for part in ("candidates", "policy tree", "chosen", "prompt (", "answer ("):
        assert part in told.stdout
    page = finished.root / "page.html"
    assert finished.run("explain", "Is 1 < 2 & true?", "--out", page).exit_code == 0
    assert "Is 1 &lt; 2 &amp; true?" in page.read_text(encoding="utf-8")


def test_doctor_finds_all_parts_well(finished):
    """Every check passes on a finished project."""
    result = finished.run("doctor")
    assert result.exit_code == 0, result.output
    assert "PROBLEM" not in result.stdout
    assert "reranker lexical" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ingest", "--set", "chunking.chunk_overlp=1"], ["chunk_overlp", "chunk_overlap"]),
        (["ingest", "nowhere-at-all"], ["nowhere-at-all", "no such file"]),
        (["sweep", "--set", "questions.train=gone.jsonl"], ["gone.jsonl", "no such file"]),
        (["sweep"], ["corag ingest"]),
        (["train"], ["corag sweep"]),
        (["promote"], ["corag sweep"]),
        (["rollback"], ["previous"]),
        (["answer", "--questions", "held-out.jsonl", "--out", "a.jsonl"], ["corag ingest"]),
        (["answer", "--questions", "held-out.jsonl", "--out", "a.txt"], ["a.txt", ".parquet"]),
        (["evaluate", "--questions", "held-out.jsonl", "--out", "r", "--methods", "magic"], ["magic", "naive"]),
        (["explain", "  "], ["empty"]),
        (["doctor", "--set", "embedder.kind=flag", "--set", "embedder.model=./no-model"], ["embedder", "told above"]),
        (["serve", "--set", "schedule.nightly_cron='99 2 * * *'"], ["nightly_cron", "99 2"]),
        (["serve", "--set", "schedule.nightly_cron='0 2 * *'"], ["nightly_cron"]),
        (["serve", "--set", "schedule.timezone=Mars/Base"], ["Mars/Base"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_run_ends_with_two_and_one_clear_line(project, monkeypatch, arguments, words):
    """Exit code 2, no traceback, and a line that names the thing and the remedy (CFG-02, CFG-03)."""
    monkeypatch.chdir(project.root)
    line = one_line(project.run(*arguments), 2)
    assert all(word in line for word in words), line


def test_an_empty_corpus_is_refused(project):
    """Nothing to read is an error, not an empty store."""
    empty = project.root / "empty"
    empty.mkdir()
    assert "no readable document" in one_line(project.run("ingest", empty), 2)


def test_a_bad_document_is_rejected_alone(project):
    """ING-05: empty and torn records are named with their line; stored and skipped add up."""
    records = project.root / "records.jsonl"
    texts = ["One fact.", "", "   \n", None, "Another fact."]
    lines = [json.dumps({"doc_id": f"d{number}", "text": text}) for number, text in enumerate(texts)]
    records.write_text("\n".join([*lines, json.dumps({"doc_id": "no-text"}), '{"doc_id": "torn']), encoding="utf-8")
    line = one_line(project.run("ingest", records), 1)
    assert "2 documents" in line
    assert "5 records rejected" in line
    rejected = project.rows("ws/quarantine/corpus.jsonl")
    assert [row["line"] for row in rejected] == [2, 3, 4, 6, 7]


def test_two_documents_of_one_id_are_refused_before_any_write(project):
    """ING-09: both places are named, and nothing is stored, the first time and the second."""
    records = project.root / "twice.jsonl"
    write_rows(records, [{"doc_id": "d1", "text": "alpha"}, {"doc_id": "d1", "text": "beta"}])
    for _ in range(2):
        line = one_line(project.run("ingest", records), 2)
        assert f"{records}:1" in line
        assert f"{records}:2" in line
    assert not (project.root / "ws" / "lancedb" / "chunks.lance").exists()
