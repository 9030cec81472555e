"""Ingest: read → chunk → embed → index, doing only what is new."""

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from corag.corpus import ingest_corpus
from corag.errors import IncompleteError
from corag.ingest import IngestReport
from corag.progress import progress
from flows.embedding import embedder_on_runner
from flows.questions import rejected_note
from flows.runtime import open_components, open_config


@flow(name="ingest", validate_parameters=True)
def ingest_flow(
    config_file: str | None, overrides: list[str], paths: list[str] | None = None, prune: bool = False
) -> str:
    """Bring the store up to the corpus; what was done as one line.

    Raises:
        IncompleteError: some records or documents were rejected; the others are stored.
    """
    report = store_corpus(config_file, overrides, paths or [], prune)
    summary = summarise(report)
    if report.rejected:
        _, workspace = open_config(config_file, overrides, "ingest")
        raise IncompleteError(f"{summary}; {rejected_note(report.rejected, workspace)}")
    return summary


@task(cache_policy=NO_CACHE, persist_result=False)
def store_corpus(config_file: str | None, overrides: list[str], paths: list[str], prune: bool) -> IngestReport:
    """Read what has changed, chunk, embed and store what is new, and quarantine what was rejected.

    It takes what can travel: the pieces that it sends to a cluster carry the parameters of their parent task.
    """
    parts = open_components(config_file, overrides, "ingest")
    with embedder_on_runner(parts) as embedder, progress("ingest (documents)") as advance:
        return ingest_corpus(parts, paths, prune, advance, embedder)


def summarise(report: IngestReport) -> str:
    """The report as one line."""
    kept = f", {report.kept} kept though absent: what held them cannot be read" if report.kept else ""
    return (
        f"ingest: {report.documents} documents, {report.chunks} chunks in the store "
        f"({report.added} added, {report.changed} changed, {report.unchanged} unchanged, "
        f"{report.removed} removed{kept}; "
        f"{report.embedded_texts} texts embedded, {report.truncated} of them truncated) in {report.seconds:.1f} s"
    )
