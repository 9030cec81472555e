"""Fitting: same seed same weights, finite checkpoints only, plain checkpoints, and going on after a kill."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from corag.errors import ModelError
from corag.settings import AgentSettings
from tests.sweeps import FIXED, RERANKERS, toy_input
from training.dataset import build_dataset
from training.fit import fit, load_checkpoint
from training.policies import agent_columns
from training.train import train_agent

SETTINGS = AgentSettings(hidden=(16, 12, 8), epochs=5, patience=5, learning_rate=0.01)
ROOT = Path(__file__).parents[1]


class Stopped(BaseException):
    """Stands for the end of the process; nothing between the callback and the test catches it."""


def sides(count: int = 24):
    """The training and the validation side of a small sweep."""
    dataset = build_dataset(toy_input(train=count, held_out=0), SETTINGS)
    split = dataset.split(0.25, seed=0)
    return dataset.take(split.train), dataset.take(split.validation)


def weights(network) -> dict[str, list]:
    """A network's weights as comparable values."""
    return {name: value.tolist() for name, value in network.state_dict().items()}


def test_the_same_seed_gives_the_same_weights_and_another_does_not(tmp_path):
    """Training is a function of data, settings and seed; the global generator is neither read nor moved."""
    train, validation = sides()
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = fit(train, validation, SETTINGS, seed=0, work=tmp_path)
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(2)
    assert weights(first.network) == weights(fit(train, validation, SETTINGS, seed=0, work=tmp_path).network)
    assert weights(first.network) != weights(fit(train, validation, SETTINGS, seed=1, work=tmp_path).network)
    assert first.state == "fresh"


def test_one_batch_can_be_overfitted_and_collapse_would_show(tmp_path):
    """The three losses fall, and the figures that reveal a collapse are logged every epoch under the same names."""
    train, _ = sides()
    settings = SETTINGS.model_copy(update={"epochs": 30, "patience": 30, "batch_size": 64})
    result = fit(train, train.take((0, 1, 2)), settings, seed=0, work=tmp_path)
    assert result.history[-1]["train_loss"] < 0.3 * result.history[0]["train_loss"]
    for name in ("train_contrastive", "train_classification", "train_regression"):
        assert result.history[-1][name] < result.history[0][name]
    named = {"val_accuracy", "val_majority_baseline", "val_pair_cosine", "val_feature_variance", "val_loss"}
    assert all(named <= set(row) for row in result.history)
    present = {f"val_accuracy_{RERANKERS[index]}" for index in train.classes[:3]}
    assert present <= set(result.history[0])


def test_a_validation_side_of_one_question_has_a_finite_monitored_loss(tmp_path):
    """TRN-03: no pair can be drawn from it, and still every epoch has its key and the best epoch is finite."""
    train, validation = sides()
    result = fit(train, validation.take((0,)), SETTINGS, seed=0, work=tmp_path)
    losses = [row["val_loss"] for row in result.history]
    assert np.isfinite(losses).all()
    assert min(losses) == losses[result.best_epoch]


def test_an_empty_validation_side_validates_on_the_training_questions(tmp_path):
    """The documented fallback of the split trains to the end."""
    train, _ = sides()
    assert fit(train, train.take(()), SETTINGS, seed=0, work=tmp_path).epochs == 5


def test_a_training_that_is_never_finite_fails(tmp_path):
    """TRN-03: all-NaN ends with one clear error and leaves nothing to go on from."""
    train, validation = sides()
    broken = replace(validation, features=np.full_like(validation.features, np.nan))
    with pytest.raises(ModelError, match="no epoch had a finite val_loss"):
        fit(train, broken, SETTINGS, seed=0, work=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_checkpoints_hold_plain_values_and_a_torn_one_is_not_used(tmp_path):
    """TRN-04: a checkpoint loads with weights_only=True; a torn last one makes training begin anew, and says so."""
    train, validation = sides()

    def stop(epoch: int) -> None:
        if epoch == 3:
            raise Stopped

    with pytest.raises(Stopped):
        fit(train, validation, SETTINGS, seed=0, work=tmp_path, on_epoch=stop)
    (last,) = tmp_path.rglob("last.ckpt")
    options = load_checkpoint(last)["hyper_parameters"]["options"]
    assert tuple(options["hidden"]) == (16, 12, 8)
    last.write_bytes(last.read_bytes()[:200])
    with pytest.raises(ModelError, match="not a usable checkpoint"):
        load_checkpoint(last)
    again = fit(train, validation, SETTINGS, seed=0, work=tmp_path)
    assert (again.state, again.epochs) == ("fresh", 5)


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.test_training import SETTINGS, sides
from training.fit import fit

def kill(epoch):
    if epoch == 2:
        os.kill(os.getpid(), signal.SIGKILL)

train, validation = sides()
fit(train, validation, SETTINGS, seed=0, work=Path(sys.argv[1]), on_epoch=kill)
"""


def test_a_killed_training_goes_on_and_ends_with_the_same_weights(tmp_path):
    """TRN-06: SIGKILL in the third of five epochs; the next run says so, reaches five, and equals a whole one."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    train, validation = sides()
    seen: list[int] = []
    resumed = fit(train, validation, SETTINGS, seed=0, work=tmp_path, on_epoch=seen.append)
    assert (resumed.state, resumed.epochs) == ("resumed", 5)
    assert seen == [2, 3, 4]
    whole = fit(train, validation, SETTINGS, seed=0, work=tmp_path)
    assert (whole.state, whole.epochs) == ("fresh", 5)
    assert weights(whole.network) == weights(resumed.network)
    assert whole.history == resumed.history


LOADED = """
import json, sys
from pathlib import Path
import numpy as np
from training.bundle import load_bundle
from training.agent import TrainedAgent
from tests.sweeps import FIXED
agent = TrainedAgent(load_bundle(Path(sys.argv[1])), FIXED)
print(json.dumps([repr(choice) for choice in agent.choose(np.load(sys.argv[2]))]))
assert "lightning" not in sys.modules
assert "mlflow" not in sys.modules
"""


def test_an_agent_chooses_alike_in_a_new_process(tmp_path):
    """TRN-04: the bundle alone carries the agent to another process, without Lightning and without MLflow."""
    import json

    data = toy_input(train=40, held_out=10)
    result = train_agent(data, SETTINGS, configured=FIXED, seed=0, work=tmp_path)
    np.save(tmp_path / "vectors.npy", data.vectors)
    command = [sys.executable, "-c", LOADED, str(result.folder), str(tmp_path / "vectors.npy")]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120, env=environment)
    assert [repr(choice) for choice in result.agent.choose(data.vectors)] == json.loads(done.stdout)


@pytest.mark.parametrize("objective", ["paper", "expected-rouge"])
def test_a_rule_that_can_be_learnt_is_learnt(tmp_path, objective):
    """On a sweep where the question's direction decides, the agent closes most of the gap to the oracle."""
    settings = SETTINGS.model_copy(update={"objective": objective, "epochs": 25, "patience": 25, "far_quantile": 1.0})
    result = train_agent(toy_input(), settings, configured=FIXED, seed=0, work=tmp_path)
    assert result.held_out.row("agent").gap_closed > 0.7
    assert result.accuracy > 0.8 > result.majority


def test_repeats_over_seeds_keep_the_best_fit(tmp_path):
    """With `seeds: 2` the bundle holds the fit of least validation loss."""
    settings = SETTINGS.model_copy(update={"seeds": 2})
    result = train_agent(toy_input(train=30, held_out=6), settings, configured=FIXED, seed=0, work=tmp_path)
    assert [one.seed for one in result.fits] == [0, 1]
    losses = [one.history[one.best_epoch]["val_loss"] for one in result.fits]
    assert min(losses) == result.best.history[result.best.best_epoch]["val_loss"]


def test_an_agent_may_read_the_candidates_mean_too(tmp_path):
    """Its inputs are twice as wide, its card says so, and vectors of one width are refused where it reads two.

    An agent that reads the question alone can still be judged on the same data.
    """
    plain = toy_input(train=30, held_out=6)
    both = np.concatenate([plain.vectors, plain.vectors[:, ::-1]], axis=1)
    wide = replace(plain, vectors=both, embedding=replace(plain.embedding, dimension=both.shape[1]))
    settings = SETTINGS.model_copy(update={"candidate_mean": True})
    agent = train_agent(wide, settings, configured=FIXED, seed=0, work=tmp_path / "wide").agent
    assert agent.candidate_mean
    assert agent.dimension == both.shape[1]
    with pytest.raises(ModelError, match="reads vectors"):
        agent.choose(plain.vectors)
    narrow = train_agent(plain, SETTINGS, configured=FIXED, seed=0, work=tmp_path / "narrow").agent
    rows = wide.rows("held_out")
    assert agent_columns(narrow, wide, rows).tolist() == agent_columns(narrow, plain, rows).tolist()
