"""The corpus of a configuration, brought into its store."""

from collections.abc import Mapping, Sequence

from corag.components import Components
from corag.content_hash import ContentHash
from corag.embedders import CachedEmbedder
from corag.errors import InputError
from corag.file_register import FileRegister
from corag.ingest import COMMIT_CHUNKS, IngestReport, StorePlace, ingest
from corag.progress import Advance
from corag.quarantine import write_quarantine
from corag.spool import Spool
from corag.survey import Survey, all_kinds, survey_files

QUARANTINE = "corpus"
"""The name of the file in the quarantine."""


def ingest_corpus(
    parts: Components,
    paths: Sequence[str] = (),
    prune: bool = False,
    advance: Advance = lambda done: None,
    embedder: CachedEmbedder | None = None,
) -> IngestReport:
    """Bring the store up to `paths`, or to the configured corpus; what was rejected goes to the quarantine.

    `embedder` is another way to run the configured embedder, such as on a cluster.

    Raises:
        InputError: a path cannot be read, two documents share an id, or there is no document at all.
        StoreError: another ingest is at work, or the store fails or holds another embedder's vectors.
    """
    sources = list(paths) or list(parts.config.corpus.paths)
    embedder = embedder or parts.embedder
    spool = Spool(parts.workspace.root)
    try:
        report = ingest(
            lambda stored, contents: _survey(parts, sources, stored, contents, spool),
            parts.tokenizer,
            parts.config.chunking,
            embedder,
            StorePlace(parts.store_uri, parts.config.store),
            lock=parts.workspace.locks / "ingest.lock",
            prepend_title=parts.config.embedder.prepend_title,
            prune=prune,
            commit_chunks=max(COMMIT_CHUNKS, embedder.texts_per_commit),
            advance=advance,
        )
    finally:
        spool.close()
    write_quarantine(parts.workspace.quarantine, QUARANTINE, report.rejected)
    return report


def _survey(
    parts: Components, sources: Sequence[str], stored: Mapping[str, str], contents: ContentHash, spool: Spool
) -> Survey:
    choice = all_kinds(parts.config.corpus.patterns, parts.config.corpus.ignore)
    register = FileRegister(parts.workspace.file_register)
    try:
        survey = survey_files(sources, choice, stored, contents, register, spool, contents.mark)
    finally:
        register.close()
    if not survey.contents:
        write_quarantine(parts.workspace.quarantine, QUARANTINE, survey.rejected)
        raise InputError(
            f"{', '.join(sources)}: holds no readable document ({len(survey.rejected)} rejected); "
            "check corpus.paths and corpus.patterns"
        )
    return survey
