"""A whole folder of awkward files, ingested once: what became of each, and that none cost another anything."""

import json
from collections import Counter
from pathlib import Path

import pytest

from corag.components import Components
from corag.corpus import ingest_corpus
from corag.ingest import IngestReport
from corag.settings import Config
from corag.values import Chunk
from corag.workspace import Workspace
from tests.awkward_files import AWKWARD, Awkward

CHUNK_TOKENS = 64


class Ingested:
    """The folder after two ingests: the reports, the chunks by document, the quarantine by file."""

    def __init__(self, root: Path, model: Path) -> None:
        self.folder = root / "docs"
        for case in AWKWARD:
            case.make(self.folder)
        config = Config.model_validate(
            {
                "corpus": {"paths": [str(self.folder)]},
                "chunking": {"chunk_tokens": CHUNK_TOKENS},
                "embedder": {"kind": "static"},
                "generator": {"model": str(model)},
            }
        )
        self.parts = Components(config, Workspace(root / "workspace"))
        self.reports: list[IngestReport] = [ingest_corpus(self.parts) for _ in range(2)]
        self.chunks: dict[str, list[Chunk]] = {}
        for chunk in self.parts.store.all_chunks():
            self.chunks.setdefault(chunk.doc_id, []).append(chunk)
        quarantine = (self.parts.workspace.quarantine / "corpus.jsonl").read_text("utf-8")
        self.refused = [json.loads(line) for line in quarantine.split("\n") if line]

    def text(self, doc_id: str) -> str:
        """The document's chunks, put together."""
        return "".join(one.text for one in sorted(self.chunks[doc_id], key=lambda chunk: chunk.position))

    def refusals(self, name: str) -> list[tuple[int | None, str]]:
        """Line and reason of what was refused of a file; an equal record is named by its place."""
        path = str(self.folder / name)
        own = [one for one in self.refused if one["source"] == path or one["source"].startswith(f"{path}:")]
        return [(one["line"], one["reason"]) for one in own]


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory, smollm2_folder: Path) -> Ingested:
    """The folder, ingested once for all tests here."""
    return Ingested(tmp_path_factory.mktemp("awkward"), smollm2_folder)


@pytest.mark.parametrize("case", AWKWARD, ids=[case.name[:40] for case in AWKWARD])
def test_each_file_is_read_properly_or_reported(ingested: Ingested, case: Awkward) -> None:
    """Its texts are stored under their ids, and what could not be read is in the quarantine with line and reason."""
    for doc_id, text in case.texts.items():
        assert text in ingested.text(doc_id)
    refusals = ingested.refusals(case.name)
    assert [line for line, _ in case.refused] == [line for line, _ in refusals]
    for (_, wanted), (_, reason) in zip(case.refused, refusals, strict=True):
        assert wanted in reason


def test_nothing_is_lost_or_made_up(ingested: Ingested) -> None:
    """Stored and refused are what the table says, no more: a file of 301 records brings 301 documents."""
    wanted = {doc_id for case in AWKWARD for doc_id in case.texts} | {f"n{number}" for number in range(300)}
    assert set(ingested.chunks) == wanted
    assert len(ingested.refused) == sum(len(case.refused) for case in AWKWARD)
    assert len(AWKWARD) >= 40


def test_a_second_ingest_finds_nothing_to_do(ingested: Ingested) -> None:
    """It adds no version, embeds nothing, and reports the same refusals again."""
    first, second = ingested.reports
    assert (second.added, second.changed, second.embedded_texts, second.version) == (0, 0, 0, first.version)
    assert second.unchanged == first.documents
    assert Counter(second.rejected) == Counter(first.rejected)


def test_every_chunk_keeps_the_limit(ingested: Ingested) -> None:
    """No chunk is empty or takes more tokens than configured, by the tokenizer itself, whatever it was cut from."""
    chunks = [one for own in ingested.chunks.values() for one in own]
    assert max(ingested.parts.tokenizer.counts([one.text for one in chunks])) <= CHUNK_TOKENS
    assert all(one.text.strip() for one in chunks)
    assert len({one.chunk_id for one in chunks}) == len(chunks)
