"""Ingest: read → chunk → embed → index, doing only what is new."""

from collections.abc import Mapping

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from corag.components import Components
from corag.content_hash import ContentHash
from corag.errors import IncompleteError, InputError
from corag.file_register import FileRegister
from corag.ingest import IngestReport, ingest
from corag.progress import progress
from corag.quarantine import write_quarantine
from corag.spool import Spool
from corag.store import ChunkStore
from corag.survey import Survey, all_kinds, survey_files
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
    report = store_corpus(parts, paths or [], prune)
    summary = summarise(report)
    if report.rejected:
        raise IncompleteError(f"{summary}; {rejected_note(report.rejected, parts.workspace)}")
    return summary


@task(cache_policy=NO_CACHE, persist_result=False)
def store_corpus(parts: Components, paths: list[str], prune: bool) -> IngestReport:
    """Read what has changed, chunk, embed and store what is new, and quarantine what was rejected."""
    store = ChunkStore.create(parts.store_uri, parts.config.store, parts.embedder)
    sources = paths or list(parts.config.corpus.paths)
    spool = Spool(parts.workspace.root)
    try:
        with progress("ingest (documents)") as advance:
            report = ingest(
                lambda stored, contents: look_through(parts, sources, stored, contents, spool),
                parts.tokenizer,
                parts.config.chunking,
                parts.embedder,
                store,
                lock=parts.workspace.locks / "ingest.lock",
                prepend_title=parts.config.embedder.prepend_title,
                prune=prune,
                advance=advance,
            )
    finally:
        spool.close()
    write_quarantine(parts.workspace.quarantine, "corpus", report.rejected)
    return report


def look_through(
    parts: Components, sources: list[str], stored: Mapping[str, str], contents: ContentHash, spool: Spool
) -> Survey:
    """The survey of `sources`, with what is new in `spool`.

    Raises:
        InputError: there is no document at all.
    """
    choice = all_kinds(parts.config.corpus.patterns, parts.config.corpus.ignore)
    register = FileRegister(parts.workspace.file_register)
    try:
        survey = survey_files(sources, choice, stored, contents, register, spool, contents.mark)
    finally:
        register.close()
    if not survey.contents:
        write_quarantine(parts.workspace.quarantine, "corpus", survey.rejected)
        raise InputError(
            f"{', '.join(sources)}: holds no readable document ({len(survey.rejected)} rejected); "
            "check corpus.paths and corpus.patterns"
        )
    return survey


def summarise(report: IngestReport) -> str:
    """The report as one line."""
    kept = f", {report.kept} kept though absent: what held them cannot be read" if report.kept else ""
    return (
        f"ingest: {report.documents} documents, {report.chunks} chunks in the store "
        f"({report.added} added, {report.changed} changed, {report.unchanged} unchanged, "
        f"{report.removed} removed{kept}; "
        f"{report.embedded_texts} texts embedded, {report.truncated} of them truncated) in {report.seconds:.1f} s"
    )
