"""The MLflow edge on one real SQLite database: runs, versions, aliases, the gate at work, and what may go wrong."""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from corag.errors import ConfigError, ModelError, RegistryError
from corag.settings import AgentSettings, PromotionSettings, TrackingSettings
from tests.sweeps import FIXED, hand_made_agent, toy_input
from training.bundle import CARD
from training.registry import (
    connect,
    load_agent,
    load_champion,
    log_evaluation_run,
    log_training_run,
    newest_version,
    promote,
    register,
    rollback,
)
from training.registry.versions import CHALLENGER, version_of
from training.train import train_agent

ROOT = Path(__file__).parents[1]
GATE = PromotionSettings(bootstrap_samples=100)
DATA = toy_input(train=40, held_out=30)
GOOD, FAIR, BAD = (0, 1, 2), (0, 1, 1), (1, 2, 0)
"""Which reranker each direction gets: the rule itself, two of three right, none right."""

_numbers = count()


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """One database for the whole file: making it takes seconds."""
    root = tmp_path_factory.mktemp("tracking")
    return TrackingSettings(uri=f"sqlite:///{root}/db/mlflow.db", artifacts=str(root / "artifacts"))


@pytest.fixture(scope="module")
def tracking(settings):
    """A connection to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        return connect(settings)


@pytest.fixture
def model():
    """A model name of this test's own."""
    return f"agent-{next(_numbers)}"


@pytest.fixture
def add(tracking, model, tmp_path):
    """Registers an agent that follows `names`; `salt` makes its content differ from its like."""

    def added(names: tuple[int, int, int], data=DATA) -> int:
        folder = tmp_path / f"bundle{next(_numbers)}"
        card = hand_made_agent(folder, names, data)
        run_id = tracking.client.create_run(tracking.experiment_id).info.run_id
        tracking.client.log_artifacts(run_id, str(folder), "bundle")
        return register(tracking, model, run_id, card).version

    return added


@pytest.fixture
def judge(tracking, model):
    """Promotes by the default gate."""

    def judged(version=None, data=DATA, **options):
        return promote(tracking, data, GATE, model_name=model, fixed=FIXED, seed=0, version=version, **options)

    return judged


def artifact(tracking, model: str, version: int) -> Path:
    """The folder of a version's files."""
    uri = tracking.client.get_model_version_download_uri(model, str(version))
    return Path(uri.removeprefix("file://"))


def tags(tracking, model: str, version: int) -> dict[str, str]:
    """A version's tags."""
    return tracking.client.get_model_version(model, str(version)).tags


def test_one_run_holds_the_whole_training(tracking, model, tmp_path):
    """Parameters, curves, split, tables, plots, the config as a file, the model with its signature."""
    training = AgentSettings(hidden=(16, 12, 8), epochs=3, seeds=2, model_name=model)
    result = train_agent(DATA, training, configured=FIXED, seed=0, work=tmp_path / "work")
    grid = ", ".join(str(number) for number in range(2000))
    run_id = log_training_run(tracking, result, training, config_yaml=f"grid: [{grid}]\n", name="train")
    run = tracking.client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert {"epochs", "state", "train_questions", "data_fingerprint", "tracking_uri"} <= set(run.data.params)
    assert all(len(value) <= 500 for value in run.data.params.values())
    assert {"final_held_out_rouge_l agent", "final_held_out_rouge_l oracle", "final_val_majority_baseline"} <= set(
        run.data.metrics
    )
    assert len(tracking.client.get_metric_history(run_id, "val_loss")) == 3
    root = Path(run.info.artifact_uri.removeprefix("file://"))
    assert grid in (root / "config.yaml").read_text()
    assert {"replay.csv", "slices.csv", "split.csv", "replay_questions.csv"} == {
        p.name for p in (root / "tables").iterdir()
    }
    plots = {"learning_curve.png", "feature_map.png", "confusion_matrix.png", "regret.png"}
    assert plots == {path.name for path in (root / "plots").iterdir()}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (root / "plots").iterdir())
    assert "signature" in (root / "bundle" / "MLmodel").read_text()
    nested = tracking.client.search_runs([tracking.experiment_id], f"tags.`mlflow.parentRunId` = '{run_id}'")
    assert len(nested) == 2

    first = register(tracking, model, run_id, result.card)
    assert (first.version, first.created) == (1, True)
    assert version_of(tracking, model, CHALLENGER) == 1
    loaded = load_agent(tracking, model, 1, fixed=FIXED)
    assert result.agent.choose(DATA.vectors) == loaded.choose(DATA.vectors)
    assert (loaded.version, loaded.embedder, loaded.dimension) == ("1", "toy", 12)

    # REG-10: a retry makes its own run. TRN-06: the same content makes no new version, and says so.
    retry = log_training_run(tracking, result, training, config_yaml="other: 1\n", name="train")
    assert retry != run_id
    again = register(tracking, model, retry, result.card)
    assert (again.version, again.created) == (1, False)


def test_a_run_that_fails_half_way_is_marked_failed(tracking, model, tmp_path):
    """No run stays `RUNNING` after an error, and the error is one line."""
    training = AgentSettings(hidden=(16, 12, 8), epochs=2, model_name=model)
    result = train_agent(DATA, training, configured=FIXED, seed=0, work=tmp_path)
    shutil.rmtree(result.folder)
    with pytest.raises(RegistryError) as caught:
        log_training_run(tracking, result, training, config_yaml="", name=f"broken {model}")
    assert "\n" not in str(caught.value)
    (run,) = tracking.client.search_runs([tracking.experiment_id], f"attributes.run_name = 'broken {model}'")
    assert run.info.status == "FAILED"


def test_there_is_no_champion_on_a_fresh_registry(tracking, model, add):
    """REG-04: no model, no alias: None, so that answering falls back; nothing to roll back to is an error."""
    assert load_champion(tracking, model, "champion", fixed=FIXED) is None
    with pytest.raises(RegistryError, match=r"no version .* is registered; run `corag train`"):
        newest_version(tracking, model)
    add(GOOD)
    assert load_champion(tracking, model, "champion", fixed=FIXED) is None
    with pytest.raises(RegistryError, match="nothing to roll back to"):
        rollback(tracking, GATE, model_name=model, fixed=FIXED)


def test_a_better_version_is_promoted_and_rolled_back(tracking, model, add, judge):
    """The champion moves, the one before keeps `previous`, and rollback swaps them, there and back."""
    fair, good = add(FAIR), add(GOOD)
    first = judge(fair)
    assert (True, False, fair, None) == (first.promoted, first.forced, first.champion, first.before)
    second = judge()
    assert (good, True, good, fair) == (second.version, second.promoted, second.champion, second.before)
    champion = load_champion(tracking, model, "champion", fixed=FIXED)
    assert str(good) == champion.version
    assert fair == version_of(tracking, model, "previous")
    assert fair == rollback(tracking, GATE, model_name=model, fixed=FIXED)
    assert (fair, good) == (version_of(tracking, model, "champion"), version_of(tracking, model, "previous"))
    assert good == rollback(tracking, GATE, model_name=model, fixed=FIXED)
    recorded = tags(tracking, model, good)
    assert ("true", "false", DATA.fingerprint) == (
        recorded["gate.promoted"],
        recorded["gate.forced"],
        recorded["gate.data_fingerprint"],
    )
    assert float(recorded["gate.candidate_rouge_l"]) > float(recorded["gate.champion_rouge_l"])
    assert "over the champion" in recorded["gate.reason"]
    assert json.loads(recorded["gate.figures"])["questions"] == 30
    assert judge(good).decision.reason == "it is the champion already"


def test_a_worse_version_is_refused_unless_forced(tracking, model, add, judge):
    """The reason is recorded; `force` moves the alias and is recorded as such."""
    good, bad = add(GOOD), add(BAD)
    judge(good)
    refused = judge(bad)
    assert not refused.promoted
    assert "gain over the champion" in refused.decision.reason
    assert good == version_of(tracking, model, "champion")
    assert tags(tracking, model, bad)["gate.promoted"] == "false"
    forced = judge(bad, force=True)
    assert (forced.promoted, forced.forced) == (True, True)
    assert bad == version_of(tracking, model, "champion")
    assert tuple(tags(tracking, model, bad)[f"gate.{name}"] for name in ("promoted", "forced")) == ("true", "true")


def test_the_champion_is_scored_anew_and_a_stale_figure_is_not_believed(tracking, model, add, judge):
    """REG-07: a champion whose stored figure is 0.99 falls to a candidate that is better on today's trials."""
    fair, good = add(FAIR), add(GOOD)
    judge(fair)
    tracking.client.set_model_version_tag(model, str(fair), "gate.candidate_rouge_l", "0.99")
    harder = toy_input(train=40, held_out=30, seed=7, lead=0.2)
    outcome = judge(good, harder)
    assert outcome.promoted
    assert outcome.decision.figures["champion_rouge_l"] < outcome.decision.figures["candidate_rouge_l"] < 0.7
    assert harder.fingerprint == tags(tracking, model, good)["gate.data_fingerprint"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_promotions_at_once_end_with_the_better_one(tracking, model, add, judge, order):
    """REG-08: whichever comes first, the better version is champion in the end, round after round."""
    versions = add(FAIR), add(GOOD)
    for _ in range(3):
        for alias in ("champion", "previous"):
            tracking.client.delete_registered_model_alias(model, alias)
        with ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(judge, [versions[index] for index in order]))
        assert versions[1] == version_of(tracking, model, "champion")
        assert any(outcome.version == versions[1] and outcome.promoted for outcome in outcomes)
        if outcomes[order.index(0)].promoted:
            assert versions[0] == version_of(tracking, model, "previous")


def test_the_newest_version_is_found_by_number(tracking, model, add):
    """REG-09: of eleven versions the eleventh, not the ninth."""
    for number in range(11):
        add(GOOD, toy_input(train=6, held_out=1, seed=number))
    assert newest_version(tracking, model) == 11


def test_a_version_whose_artifact_is_gone_is_never_promoted(tracking, model, add, judge):
    """Not even by force; and registering its content anew makes a new, usable version."""
    gone = add(GOOD)
    shutil.rmtree(artifact(tracking, model, gone))
    for force in (False, True):
        with pytest.raises(RegistryError, match=f"version {gone} of .* is gone"):
            judge(gone, force=force)
    assert version_of(tracking, model, "champion") is None
    assert gone + 1 == add(GOOD)
    with pytest.raises(RegistryError, match=r"version 99 of .* does not exist"):
        judge(99)


def test_a_champion_that_is_gone_stops_answering_and_promotion_with_one_line(tracking, model, add, judge):
    """REG-04: a missing artifact is an error that says what to do; a deleted version is no champion at all."""
    fair, good = add(FAIR), add(GOOD)
    judge(fair)
    shutil.rmtree(artifact(tracking, model, fair))
    with pytest.raises(RegistryError, match="promote another version, or train again"):
        load_champion(tracking, model, "champion", fixed=FIXED)
    with pytest.raises(RegistryError, match=r"the champion cannot be scored.*--force"):
        judge(good)
    assert judge(good, force=True).promoted
    tracking.client.delete_model_version(model, str(good))
    assert load_champion(tracking, model, "champion", fixed=FIXED) is None


def test_a_registered_agent_with_a_planted_pickle_is_refused(tracking, model, add, judge):
    """Loading and promoting both refuse; so does a tampered class list."""
    version = add(GOOD)
    folder = artifact(tracking, model, version)
    (folder / "model.pkl").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ModelError, match="could run code"):
        judge(version)
    (folder / "model.pkl").unlink()
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps(card | {"rerankers": card["rerankers"][::-1]}))
    with pytest.raises(ModelError, match="class list was altered"):
        load_agent(tracking, model, version, fixed=FIXED)


def test_a_candidate_of_another_embedder_is_refused(tracking, model, add, judge):
    """Its vectors would mean nothing to it."""
    from dataclasses import replace

    version = add(GOOD)
    other = replace(DATA, embedding=replace(DATA.embedding, name="bge"))
    with pytest.raises(ModelError, match=r"reads vectors of 'toy' .* the sweep's are of 'bge'"):
        judge(version, other)


@pytest.mark.parametrize("uri", ["file:./mlruns", "file:///tmp/mlruns", "./mlruns", "mlruns"])
def test_a_file_store_is_refused_with_what_to_use(monkeypatch, settings, uri):
    """REG-01: from the environment, which wins, or from the configuration; nothing is written."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with pytest.raises(RegistryError, match=r"MLFLOW_TRACKING_URI is .*sqlite:///mlruns/mlflow\.db"):
        connect(settings)
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    with pytest.raises(RegistryError, match=r"tracking\.uri is"):
        connect(TrackingSettings(uri=uri))


def test_every_connection_names_the_same_absolute_uri(monkeypatch, settings, tracking, tmp_path):
    """REG-01: the environment wins; a relative path and an old ./mlruns in the folder change nothing."""
    (tmp_path / "mlruns").mkdir()
    (tmp_path / "mlruns" / "0").write_text("old")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", settings.uri)
    assert tracking.uri == connect(TrackingSettings()).uri == settings.uri
    assert [path.name for path in (tmp_path / "mlruns").iterdir()] == ["0"]
    assert [path.name for path in tmp_path.iterdir()] == ["mlruns"]


@pytest.mark.parametrize("alias", ["Champion", "latest", "v1", "challenger", "previous", ""])
def test_an_unusable_alias_is_refused_when_the_configuration_loads(alias):
    """REG-04: reserved, differing in case only, or one that promotion itself moves."""
    from corag.config import load_config

    with pytest.raises(ConfigError, match="promotion"):
        load_config(None, [f"promotion.alias='{alias}'"])


CONNECT = """
import sys
from corag.settings import TrackingSettings
from training.registry import connect
root = sys.argv[1]
print(connect(TrackingSettings(uri=f"sqlite:///{root}/new/mlflow.db", artifacts=f"{root}/artifacts")).experiment_id)
"""


@pytest.mark.slow
def test_a_command_killed_while_it_makes_the_database_leaves_no_broken_one(tmp_path):
    """Half-made tables lie aside, never under the database's name; the next command starts them anew."""
    code = (
        "from training.registry import connect; from corag.settings import TrackingSettings\n"
        f"connect(TrackingSettings(uri='sqlite:///{tmp_path}/db/mlflow.db', artifacts='{tmp_path}/artifacts'))"
    )
    command = [sys.executable, "-c", code]
    made = tmp_path / "db" / ".mlflow.db.new"
    process = subprocess.Popen(command, cwd=ROOT)
    while process.poll() is None and not (made.exists() and made.stat().st_size):
        pass
    process.kill()
    process.wait()
    assert made.exists()
    assert not (tmp_path / "db" / "mlflow.db").exists()
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def test_several_commands_make_a_fresh_database_at_once(tmp_path):
    """Three processes on no database yet: all succeed, silently, with the same experiment."""
    command = [sys.executable, "-W", "ignore", "-c", CONNECT, str(tmp_path)]
    running = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    outputs = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], outputs
    assert len({out for out, _ in outputs}) == 1
    assert [err for _, err in outputs] == [""] * 3


def test_an_evaluation_is_a_run_with_its_report(tracking, tmp_path):
    """Figures, settings and every file of the folder; what is no number is left out rather than refused."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "methods.csv").write_text("method\nnaive\n")
    run_id = log_evaluation_run(
        tracking,
        {"rouge_l naive": 0.25, "recall naive": float("nan")},
        {"references": "given", "questions": 3},
        tmp_path,
        note="compared",
        config_yaml="seed: 0\n",
    )
    run = tracking.client.get_run(run_id)
    assert (run.data.metrics, run.info.status) == ({"rouge_l naive": 0.25}, "FINISHED")
    assert run.data.params == {"references": "given", "questions": "3"}
    assert {one.path for one in tracking.client.list_artifacts(run_id)} == {"tables", "config.yaml"}
