"""What a report says beside its tables: whose references, which questions are left out, and the run that keeps it."""

import pandas as pd
import pytest

from corag.components import Components
from corag.evaluation_methods import AGENT, NAIVE, ORACLE, Asked
from corag.settings import Config
from corag.values import Configuration, Question
from corag.workspace import Workspace
from flows.report_run import notes_on, references_note

ASKED = [Question("a", "who?", ("Sefa",)), Question("b", "when?", ("?!",)), Question("c", "where?")]


def parts(folder, references):
    """Parts of which nothing is loaded."""
    return Components(Config.model_validate({"sweep": {"references": references}}), Workspace(folder))


@pytest.mark.parametrize(("references", "told"), [("given", "own"), ("generated", "by the generator")])
def test_the_report_says_whose_references_it_scores_against(tmp_path, references, told):
    """Two kinds are never mixed silently, and questions without a usable one are counted (EVL-02)."""
    note = references_note(parts(tmp_path, references), ASKED)
    assert note.startswith(f"References {references}")
    assert told in note
    assert "2 of 3 questions have none" in note
    assert "none" not in references_note(parts(tmp_path, references), ASKED[:1])


@pytest.mark.parametrize(("with_trials", "told"), [(0, "left out"), (2, "2 of 3")])
def test_a_method_that_lacks_something_is_told(with_trials, told):
    """No agent, and no trials or trials of some questions only."""
    asked = Asked(ASKED, [], Configuration("one", 10, 0.1, 2.4))
    notes = notes_on([NAIVE, AGENT, ORACLE], asked, None, with_trials)
    assert len(notes) == 2
    assert "no agent" in notes[0]
    assert told in notes[1]
    assert notes_on([NAIVE, AGENT, ORACLE], asked, "3", 3) == []


@pytest.mark.slow
def test_the_oracle_needs_a_sweep_with_the_same_inputs(finished):
    """The project's sweep tried its held-out questions; under another budget these trials say nothing."""
    command = ("evaluate", "--questions", finished.root / "held-out.jsonl", "--methods", "naive,oracle")
    same, other = finished.root / "same", finished.root / "other"
    ended = finished.run(*command, "--out", same)
    assert ended.exit_code == 0, ended.output
    table = pd.read_csv(same / "tables" / "methods.csv").set_index("method")
    assert table.loc["oracle", "n_total"] == 3
    trials = pd.read_parquet(finished.root / "ws" / "sweep" / "trials.parquet")
    best = trials[trials["qid"].str.startswith("held_out")].groupby("qid")["rouge_l"].max()
    assert table.loc["oracle", "rouge_l"] == pytest.approx(best.mean())
    ended = finished.run(*command, "--out", other, "--set", "search.budget=50")
    assert ended.exit_code == 0, ended.output
    assert list(pd.read_csv(other / "tables" / "methods.csv")["method"]) == ["naive"]
    assert "oracle is left out" in (other / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_generated_references_take_the_place_of_the_given_ones(finished):
    """The summary says so, and every method is scored against what the generator wrote from the relevant document."""
    out = finished.root / "generated"
    ended = finished.run(
        "evaluate", "--questions", finished.root / "held-out.jsonl", "--out", out, "--methods", "naive",
        "--set", "sweep.references=generated",
    )  # fmt: skip
    assert ended.exit_code == 0, ended.output
    assert "References generated" in (out / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_report_is_kept_as_a_run(finished):
    """Its figures are metrics, and its files artifacts."""
    from corag.settings import TrackingSettings
    from training.registry import connect

    out = finished.root / "kept"
    ended = finished.run(
        "evaluate", "--questions", finished.root / "held-out.jsonl", "--out", out, "--methods", "naive"
    )
    assert ended.exit_code == 0, ended.output
    root = finished.root / "mlruns"
    tracking = connect(TrackingSettings(uri=f"sqlite:///{root}/mlflow.db", artifacts=str(root / "artifacts")))
    run = next(
        one
        for one in tracking.client.search_runs([tracking.experiment_id], order_by=["start_time DESC"])
        if one.info.run_name == "evaluate"
    )
    table = pd.read_csv(out / "tables" / "methods.csv")
    assert run.data.metrics["rouge_l naive"] == pytest.approx(table["rouge_l"][0])
    assert {one.path for one in tracking.client.list_artifacts(run.info.run_id)} >= {"summary.md", "tables"}
