"""Ingest: read → chunk → embed → index, doing only what is new."""

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from corag.components import Components
from corag.errors import IncompleteError, InputError
from corag.ingest import IngestReport, ingest
from corag.progress import progress
from corag.quarantine import write_quarantine
from corag.readers import Reading, read_documents
from corag.store import ChunkStore
from flows.questions import rejected_note
from flows.runtime import open_components


@flow(name="ingest", validate_parameters=True)
def ingest_flow(
    config_file: str | None, overrides: list[str], paths: list[str] | None = None, prune: bool = False
) -> str:
    """Bring the store up to the corpus; what was done as one line.

    Raises:
        IncompleteError: some records or documents were rejected; the others are stored.
    """
    parts = open_components(config_file, overrides, "ingest")
    reading = read_corpus(parts, paths or [])
    report = store_chunks(parts, reading, prune)
    summary = summarise(report)
    if report.rejected:
        raise IncompleteError(f"{summary}; {rejected_note(report.rejected, parts.workspace)}")
    return summary


@task(cache_policy=NO_CACHE, persist_result=False)
def read_corpus(parts: Components, paths: list[str]) -> Reading:
    """The documents of `paths`, or of the configured corpus."""
    settings = parts.config.corpus
    sources = paths or list(settings.paths)
    reading = read_documents(sources, settings.patterns, settings.ignore)
    if not reading.documents:
        raise InputError(
            f"{', '.join(sources)}: holds no readable document ({len(reading.rejected)} rejected); "
            "check corpus.paths and corpus.patterns"
        )
    return reading


@task(cache_policy=NO_CACHE, persist_result=False)
def store_chunks(parts: Components, reading: Reading, prune: bool) -> IngestReport:
    """Chunk, embed and store what is new, and quarantine what was rejected."""
    store = ChunkStore.create(parts.store_uri, parts.config.store, parts.embedder)
    with progress("ingest", len(reading.documents)) as advance:
        report = ingest(
            reading,
            parts.tokenizer,
            parts.config.chunking,
            parts.embedder,
            store,
            lock=parts.workspace.locks / "ingest.lock",
            prepend_title=parts.config.embedder.prepend_title,
            prune=prune,
            progress=advance,
        )
    write_quarantine(parts.workspace.quarantine, "corpus", report.rejected)
    return report


def summarise(report: IngestReport) -> str:
    """The report as one line."""
    return (
        f"ingest: {report.documents} documents, {report.chunks} chunks in the store "
        f"({report.added} added, {report.changed} changed, {report.unchanged} unchanged, {report.removed} removed; "
        f"{report.embedded_texts} texts embedded) in {report.seconds:.1f} s"
    )
