"""The fixed and the trained agent: batched, clipped, modest far from training, and safe to load."""

import json
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from corag.agents import Choice, FixedAgent, check_fits, fixed_configuration
from corag.errors import ModelError
from corag.settings import FixedConfiguration
from corag.values import Configuration
from tests.sweeps import DIMENSION, FIXED, RERANKERS, hand_made_agent, toy_input
from training.agent import TrainedAgent, far_distance, nearest_distances
from training.bundle import CARD, NEIGHBOURS, WEIGHTS, load_bundle

DATA = toy_input(train=40, held_out=10)


@pytest.fixture
def folder(tmp_path):
    """A bundle whose agent follows the toy sweep's rule."""
    hand_made_agent(tmp_path / "bundle", (0, 1, 2), DATA)
    return tmp_path / "bundle"


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """The agent of such a bundle."""
    path = tmp_path_factory.mktemp("agent")
    hand_made_agent(path, (0, 1, 2), DATA)
    return TrainedAgent(load_bundle(path), FIXED, version="1")


def test_the_fixed_agent_gives_every_question_the_configured_setting():
    """An empty reranker means the first of the list; the source says `fixed`."""
    configuration = fixed_configuration(FixedConfiguration(), RERANKERS)
    assert Configuration("amber", 10, 0.1, 2.4) == configuration
    choices = FixedAgent(configuration).choose(np.zeros((3, 5)))
    assert [Choice(configuration, "fixed", "the fixed configuration")] * 3 == choices


def test_a_question_near_the_training_data_gets_the_prediction(agent):
    """Three directions, three rerankers, with the parameters scaled back."""
    choices = agent.choose(np.eye(DIMENSION, dtype=np.float32)[:3])
    assert [Configuration(name, 10, 0.1, 2.4) for name in RERANKERS] == [one.configuration for one in choices]
    assert {"agent"} == {one.source for one in choices}


def test_a_question_far_from_the_training_data_gets_the_fixed_configuration(agent):
    """It says so, and so does one whose vector is not finite; the neighbours in the batch are untouched."""
    vectors = np.eye(DIMENSION, dtype=np.float32)[[1, 7, 2]]
    vectors[2, 4] = np.nan
    near, far, broken = agent.choose(vectors)
    assert (near.source, near.configuration.reranker) == ("agent", "birch")
    assert (far.source, far.configuration) == ("fixed", FIXED)
    assert "far from the training questions" in far.reason
    assert (broken.source, broken.reason) == ("fixed", "the question's vector is not finite")


@given(arrays(np.float32, (4, DIMENSION), elements=st.floats(-1e6, 1e6, width=32)))
def test_every_choice_is_within_the_swept_ranges(agent, vectors):
    """Whatever the vector: a known reranker, and parameters that a sweep has tried the ends of."""
    for configuration in agent.predict(vectors):
        assert configuration.reranker in RERANKERS
        assert 5 <= configuration.iterations <= 25
        assert 0 <= configuration.cost_coefficient <= 0.3
        assert 0 <= configuration.exploration_coefficient <= 2.4


def test_a_batch_equals_one_at_a_time(agent):
    """Batching changes nothing."""
    singly = [agent.choose(DATA.vectors[row : row + 1])[0] for row in range(len(DATA.vectors))]
    assert singly == agent.choose(DATA.vectors)
    assert agent.choose(np.zeros((0, DIMENSION))) == []


def test_choosing_takes_at_most_two_milliseconds_a_question(agent):
    """Beyond the embedding; in truth it is some microseconds."""
    vectors = np.repeat(DATA.vectors, 20, axis=0)
    start = time.perf_counter()
    agent.choose(vectors)
    assert (time.perf_counter() - start) / len(vectors) < 0.002


def test_distances_to_the_nearest_neighbour():
    """Cosine distance; leaving itself out, a lone vector has none and is never far."""
    square = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=np.float32)
    expected = [1 - np.sqrt(0.5)] * 3
    np.testing.assert_allclose(nearest_distances(square, square, leave_one_out=True), expected, atol=1e-6)
    np.testing.assert_allclose(nearest_distances(square, square), [0, 0, 0], atol=1e-6)
    assert far_distance(square, 1.0) == pytest.approx(1 - np.sqrt(0.5), abs=1e-6)
    assert far_distance(square[:1], 0.9) == 2.0


def test_an_agent_of_another_embedder_is_refused(agent):
    """Name, revision, width or an absent reranker: one line that names both sides."""
    fits = {"embedder": "toy", "revision": "r1", "dimension": DIMENSION, "rerankers": RERANKERS}
    check_fits(agent, **fits)
    check_fits(FixedAgent(FIXED), embedder="any", revision="", dimension=3)
    for change, said in (
        ({"embedder": "other"}, "vectors of 'toy', not of 'other'"),
        ({"dimension": 384}, "vectors of 12 dimensions, 'toy' gives 384"),
        ({"revision": "r2"}, "revision 'r1' of 'toy', not on 'r2'"),
        ({"rerankers": ("amber", "birch")}, r"rerankers \['cedar'\]"),
    ):
        with pytest.raises(ModelError, match=said):
            check_fits(agent, **(fits | change))
    with pytest.raises(ModelError, match=r"reads vectors \[n, 12\], was given \[1, 384\]"):
        agent.choose(np.zeros((1, 384)))


@pytest.mark.parametrize("name", ["model.pkl", "weights.pt", "sub/last.ckpt"])
def test_a_planted_pickle_is_refused_and_never_run(folder, name):
    """A bundle with a pickle beside its files does not load, and the pickle's code does not run."""
    ran = folder.parent / "ran"
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(f"cpathlib\nPath.touch\n(cpathlib\nPath\n(S'{ran}'\ntRtR.".encode())
    with pytest.raises(ModelError, match="could run code"):
        load_bundle(folder)
    assert not ran.exists()


def test_pickled_weights_under_the_right_name_are_refused(folder):
    """The weights' hash is checked before anything reads them."""
    import pickle

    (folder / WEIGHTS).write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ModelError, match=r"differs from what agent\.json recorded"):
        load_bundle(folder)


@pytest.mark.parametrize("classes", [["amber", "birch"], ["cedar", "birch", "amber"], []])
def test_a_tampered_class_list_is_refused(folder, classes):
    """Shorter, in another order or empty: the recorded hash no longer fits."""
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps(card | {"rerankers": classes}))
    with pytest.raises(ModelError, match=r"class list was altered|rerankers"):
        load_bundle(folder)


def test_a_class_list_of_another_length_with_a_fitting_hash_does_not_fit_the_weights(folder):
    """Even with its hash made to fit, a longer class list cannot be loaded into the network."""
    from training.bundle import class_hash

    card = json.loads((folder / CARD).read_text())
    classes = (*RERANKERS, "elm")
    (folder / CARD).write_text(json.dumps(card | {"rerankers": classes, "class_hash": class_hash(classes)}))
    with pytest.raises(ModelError, match=r"does not fit agent\.json"):
        load_bundle(folder)


@pytest.mark.parametrize("name", [CARD, WEIGHTS, NEIGHBOURS])
def test_an_incomplete_bundle_is_refused(folder, name):
    """A missing file is named."""
    (folder / name).unlink()
    with pytest.raises(ModelError, match=f"{name}: cannot read the agent"):
        load_bundle(folder)


def test_an_unknown_format_is_refused(folder):
    """A bundle of a later version says which format is expected."""
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps(card | {"format_version": 2}))
    with pytest.raises(ModelError, match=r"format_version.*format 1 expected"):
        load_bundle(folder)
