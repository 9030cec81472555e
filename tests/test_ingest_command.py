"""`corag ingest` as a user runs it: what it says, what it keeps, and what a killed or crowded run leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from corag.components import Components
from corag.config import load_config
from corag.corpus import ingest_corpus
from corag.errors import ConfigError, StoreError
from corag.retrieval import retrieve
from corag.settings import Config, EmbedderSettings, StoreSettings
from corag.store import ChunkStore
from corag.values import Question
from corag.workspace import Workspace
from tests.conftest import REPO, Project, write_rows

DATA = REPO.parent / "shared" / "data"
STATIC = ("--set", "embedder.kind=static")


def told(result, code: int) -> str:
    """What a command that ended with `code` says in its last line: on stdout, or, when it failed, on stderr."""
    assert result.exit_code == code, (result.output, result.exception)
    return (result.stderr if code else result.stdout).strip().split("\n")[-1]


@pytest.mark.usefixtures("prefect_server")
def test_pruning_keeps_what_cannot_be_read_today(project: Project) -> None:
    """A damaged file is reported and its document stays; a removed one goes; mended, all is as before."""
    assert "6 added" in told(project.run("ingest", *STATIC), 0)
    damaged, removed = project.root / "docs" / "arlen.md", project.root / "docs" / "brock.md"
    text = damaged.read_bytes()
    damaged.write_bytes(b"")
    removed.unlink()
    line = told(project.run("ingest", "--prune", *STATIC), 1)
    assert "1 removed, 1 kept though absent" in line
    assert "arlen.md" in line
    damaged.write_bytes(text)
    line = told(project.run("ingest", "--prune", *STATIC), 0)
    assert "5 documents" in line
    assert "5 unchanged, 0 removed;" in line


@pytest.mark.usefixtures("prefect_server")
def test_cut_texts_are_counted_in_the_summary(project: Project) -> None:
    """ING-10: chunks a little longer than the embedder reads are counted; far longer ones are refused at the start."""
    short = ("--set", "embedder.max_length=16", "--set", "chunking.chunk_tokens=30")
    line = told(project.run("ingest", *short), 0)
    assert "0 of them truncated" not in line
    assert "of them truncated" in line
    long = ("--set", "embedder.max_length=8", "--set", "chunking.chunk_tokens=30")
    assert "chunking.chunk_tokens (30)" in told(project.run("ingest", *long), 2)


@pytest.mark.parametrize("top_k", ["0", "-1"])
def test_a_top_k_below_one_is_refused(top_k: str) -> None:
    """RER-05: when the configuration is loaded, not when the store is asked."""
    with pytest.raises(ConfigError, match=r"retrieval\.top_k"):
        load_config(None, [f"retrieval.top_k={top_k}"])


@pytest.mark.parametrize("overlap", ["24", "30"])
def test_an_overlap_as_large_as_the_chunk_is_refused(overlap: str) -> None:
    """Chunking would never end."""
    with pytest.raises(ConfigError, match="must be smaller than chunk_tokens"):
        load_config(None, ["chunking.chunk_tokens=24", f"chunking.chunk_overlap={overlap}"])


def components(root: Path, corpus: Path, model: Path) -> Components:
    """A workspace below `root` with the static embedder."""
    config = {
        "corpus": {"paths": [str(corpus)]},
        "chunking": {"chunk_tokens": 24},
        "embedder": {"kind": "static"},
        "generator": {"model": str(model)},
    }
    return Components(Config.model_validate(config), Workspace(root / "ws"))


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_ids_stay_strings_all_the_way(tmp_path: Path, smollm2_folder: Path, suffix: str) -> None:
    """Ids such as 007 and 18_19, or SQL, are data: through the store, a second ingest, a filter and a candidate."""
    import pandas as pd

    rows = [
        {"doc_id": one, "text": f"Fact about {one}.", "year": "0042"} for one in ("007", "18_19", "o'x; DROP", "1e5")
    ]
    path = tmp_path / f"docs{suffix}"
    frame = pd.DataFrame(rows)
    {".csv": lambda: frame.to_csv(path, index=False), ".parquet": lambda: frame.to_parquet(path)}.get(
        suffix, lambda: write_rows(path, rows)
    )()
    parts = components(tmp_path, path, smollm2_folder)
    assert ingest_corpus(parts).added == 4
    assert ingest_corpus(parts).unchanged == 4
    for row in rows:
        question = Question(
            "007", "Which fact?", metadata={"filter": json.dumps({"doc_id": row["doc_id"], "year": "0042"})}
        )
        (found,) = retrieve(parts.store, parts.embedder, [question], parts.config.retrieval)
        assert (found.qid, [one.chunk.doc_id for one in found.candidates]) == ("007", [row["doc_id"]])


def test_copies_are_stored_under_each_name_and_embedded_once(tmp_path: Path, smollm2_folder: Path) -> None:
    """ING-06: A and B share a paragraph, C repeats it twice: four rows, each of its own document, one embedding."""
    shared = "The mill of Arlen was built in 1702 by Sefa Dorn."
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in {"a.txt": shared, "b.txt": shared, "c.txt": f"{shared}\n\n{shared}"}.items():
        (docs / name).write_text(text)
    parts = components(tmp_path, docs, smollm2_folder)
    report = ingest_corpus(parts)
    held = [(one.doc_id, one.position) for one in parts.store.all_chunks() if one.text.strip() == shared]
    assert held == [("a.txt", 0), ("b.txt", 0), ("c.txt", 0), ("c.txt", 1)]
    assert report.embedded_texts <= 2  # the paragraph, with and without the blank line after it


def write_documents(folder: Path, count: int) -> None:
    """Documents of four chunks each."""
    folder.mkdir()
    for number in range(count):
        lines = [
            f"Sentence {place} of {number} tells of things that nobody has seen before or since." for place in range(4)
        ]
        (folder / f"{number:05d}.txt").write_text("\n".join(lines))


@contextmanager
def ingest_process(config: Path, home: Path) -> Iterator[subprocess.Popen]:
    """A real `corag ingest`, which writes to home/out; whatever it has started ends with the context."""
    environment = {**os.environ, "HOME": str(home), "PREFECT_HOME": str(home / "prefect")}
    environment.pop("PREFECT_API_URL", None)
    command = [sys.executable, "-m", "flows.cli", "ingest", "-c", str(config)]
    with (home / "out").open("w") as out:
        # A group of its own: the Prefect server that it starts outlives a killed command.
        process = subprocess.Popen(command, cwd=REPO, env=environment, stdout=out, stderr=out, start_new_session=True)
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def whole_documents(where: Path) -> int:
    """How many documents a reader of the table sees, each of them whole."""
    from corag.embedders import load_embedder

    try:
        store = ChunkStore.open(str(where), StoreSettings(), load_embedder(EmbedderSettings(kind="static")))
    except StoreError:
        return 0
    held: dict[str, int] = {}
    for chunk in store.all_chunks():
        held[chunk.doc_id] = held.get(chunk.doc_id, 0) + 1
    assert set(held.values()) <= {4}
    return len(held)


@pytest.mark.slow
def test_a_killed_command_resumes(project: Project, tmp_path: Path) -> None:
    """SIGKILL amid `corag ingest`: readers see whole documents only, and a second run embeds nothing twice."""
    docs, count = tmp_path / "many", 6000
    write_documents(docs, count)
    project.config.write_text(project.config.read_text() + "embedder: {kind: static}\n")
    project.config.write_text(project.config.read_text().replace("- docs", f"- {docs}"))
    store = project.root / "ws" / "lancedb"
    with ingest_process(project.config, tmp_path) as victim:
        seen = 0
        while not seen:
            assert victim.poll() is None, (tmp_path / "out").read_text()
            time.sleep(0.02)
            seen = whole_documents(store)
        victim.kill()
        victim.wait()
    left = whole_documents(store)
    assert seen <= left < count
    with ingest_process(project.config, tmp_path) as again:
        again.wait(300)
    out = (tmp_path / "out").read_text()
    assert again.returncode == 0, out
    assert f"{count - left} added, 0 changed, {left} unchanged" in out
    assert int(out.split(" texts embedded")[0].split()[-1]) <= 4 * (count - left)
    assert whole_documents(store) == count


INGEST = """
import sys
from pathlib import Path
from tests.test_ingest_command import components
from corag.corpus import ingest_corpus
ingest_corpus(components(*(Path(one) for one in sys.argv[1:])))
"""


@pytest.mark.slow
def test_eight_processes_that_ingest_the_same_files(tmp_path: Path, smollm2_folder: Path) -> None:
    """All of them end well, and every chunk is there once."""
    docs = tmp_path / "docs"
    write_documents(docs, 300)
    command = [sys.executable, "-c", INGEST, str(tmp_path), str(docs), str(smollm2_folder)]
    running = [subprocess.Popen(command, cwd=REPO, stderr=subprocess.PIPE, text=True) for _ in range(8)]
    for process in running:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    parts = components(tmp_path, docs, smollm2_folder)
    parts.store.check_unique()
    assert parts.store.count == 1200
    assert whole_documents(parts.workspace.lancedb) == 300


@pytest.mark.slow
@pytest.mark.parametrize("name", ["covidqa", "dureader_zh"])
def test_a_real_corpus_ingests_twice(tmp_path: Path, smollm2_folder: Path, name: str) -> None:
    """Long articles, and messy Chinese pages: the second run does nothing."""
    corpus = DATA / name / "corpus.jsonl"
    if not corpus.is_file():
        pytest.skip("the data set is not here")
    parts = components(tmp_path, corpus, smollm2_folder)
    first = ingest_corpus(parts)
    assert first.added > 90
    second = ingest_corpus(parts)
    assert (second.added, second.changed, second.embedded_texts, second.version) == (0, 0, 0, first.version)
