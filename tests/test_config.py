"""The configuration file: what is accepted, what is refused and with which words."""

from pathlib import Path

import pytest
import yaml

from corag.config import load_config
from corag.errors import ConfigError
from corag.settings import Config

REPO = Path(__file__).parent.parent


def write(folder: Path, text: str) -> Path:
    """A configuration file with that text."""
    path = folder / "corag.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", [path.name for path in sorted((REPO / "configs").glob("*.yaml"))])
def test_every_shipped_configuration_loads(name):
    """Each file under configs/ is a valid configuration."""
    assert load_config(REPO / "configs" / name).rerankers


def test_the_default_file_states_the_built_in_defaults():
    """configs/default.yaml and the defaults in code cannot drift apart; only the demo's question limits are its own."""
    written = yaml.safe_load((REPO / "configs" / "default.yaml").read_text(encoding="utf-8"))
    assert written["questions"].pop("train_limit")
    assert written["questions"].pop("held_out_limit")
    assert Config.model_validate(written) == Config()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("chunking: {chunk_overlp: 10}", ["chunk_overlp", "chunk_overlap"]),
        ("rerankrs: []", ["rerankrs", "rerankers"]),
        ("rerankers: []", ["rerankers", "at least one"]),
        ("retrieval: {top_k: 0}", ["retrieval.top_k", "got 0"]),
        ("retrieval: {top_k: -1}", ["retrieval.top_k", "got -1"]),
        ("promotion: {alias: Champion}", ["alias", "Champion"]),
        ("promotion: {alias: latest}", ["alias", "latest"]),
        ("promotion: {alias: v1}", ["alias", "v1"]),
        ("chunking: {chunk_tokens: 32, chunk_overlap: 32}", ["chunk_overlap", "32"]),
        ("chunking: {chunk_tokens: 999}", ["chunk_tokens", "budget"]),
        ("search: {fixed: {reranker: nobody}}", ["nobody", "rerankers"]),
        ("sweep: {iterations: []}", ["sweep.iterations", "empty"]),
        ("prompt: {user: 'no placeholder'}", ["{context}"]),
        ("- a list", ["mapping"]),
        ("a: [", ["YAML"]),
    ],
)
def test_a_bad_configuration_is_refused_in_one_line(tmp_path, text, words):
    """CFG-02, RER-05: the message names the file, the key and the nearest valid name or the limit."""
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as refusal:
        load_config(path)
    message = str(refusal.value)
    assert "\n" not in message
    assert str(path) in message
    assert all(word in message for word in words)


def test_a_missing_file_is_named(tmp_path):
    """The path and the option that mends it are in the message."""
    with pytest.raises(ConfigError, match=r"nowhere\.yaml.*-c FILE"):
        load_config(tmp_path / "nowhere.yaml")


def test_paths_in_the_file_are_relative_to_the_file(tmp_path, monkeypatch):
    """A configuration means the same from whichever folder it is used."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.delenv("CORAG_WORKSPACE", raising=False)
    path = write(tmp_path, "workspace: ws\ncorpus: {paths: [docs, sample]}\nquestions: {train: q.jsonl}\n")
    config = load_config(path)
    assert config.workspace == str(tmp_path / "ws")
    assert config.corpus.paths == (str(tmp_path / "docs"), "sample")
    assert config.questions.train == str(tmp_path / "q.jsonl")


def test_overrides_win_over_the_file_and_the_environment_over_the_workspace(tmp_path, monkeypatch):
    """--set reaches nested keys with YAML values; CORAG_WORKSPACE decides where things are kept."""
    monkeypatch.setenv("CORAG_WORKSPACE", str(tmp_path / "from-env"))
    path = write(tmp_path, "search: {budget: 300, backup: all}\nworkspace: ws\n")
    config = load_config(path, ["search.budget=400", "sweep.iterations=[1, 2]", "agent.learning_rate=1e-4"])
    assert (config.search.budget, config.search.backup) == (400, "all")
    assert config.sweep.iterations == (1, 2)
    assert config.agent.learning_rate == pytest.approx(1e-4)
    assert config.workspace == str(tmp_path / "from-env")


def test_a_filter_key_may_hold_anything(tmp_path):
    """Metadata filters are data: their keys are the user's own."""
    path = write(tmp_path, "retrieval: {filter: {source: rare}}")
    assert load_config(path, ["retrieval.filter.year='2024'"]).retrieval.filter == {"source": "rare", "year": "2024"}
