"""From documents to searchable chunks, doing only what is new: chunk, embed, store, and drop what is gone."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from corag.content_hash import ContentHash, content_hash
from corag.embedders import CachedEmbedder
from corag.errors import ConfigError, InputError
from corag.ingest_writer import DocumentWriter, chunked_batches
from corag.progress import Advance
from corag.quarantine import Rejected
from corag.settings import ChunkingSettings, StoreSettings
from corag.store import ChunkStore
from corag.survey import Survey
from corag.tokens import Tokenizer
from corag.writer_lock import writer_lock

logger = logging.getLogger(__name__)

COMMIT_CHUNKS = 2048
"""Chunks that are written together, at least: one version of the table, a few megabytes of memory."""

# A chunk counts tokens of the generator, the embedder its own; the two rarely differ by more than this.
_LENGTH_LEEWAY = 2

Look = Callable[[Mapping[str, str], ContentHash], Survey]
"""Looks through the corpus, given the content hash of every stored document and how such a hash is made."""


@dataclass(frozen=True, slots=True)
class StorePlace:
    """Where the store is, or will be: a table is made only when there is something to put into it."""

    uri: str
    settings: StoreSettings

    def documents(self, embedder: CachedEmbedder) -> dict[str, str]:
        """The content hash of every stored document, by id; none before there is a table."""
        found = ChunkStore.find(self.uri, self.settings, embedder)
        return {} if found is None else found.documents()

    def store(self, embedder: CachedEmbedder) -> ChunkStore:
        """The store, made if need be."""
        return ChunkStore.create(self.uri, self.settings, embedder)


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What one ingest did. `documents` and `chunks` are in the store now; the other counts are of documents.

    `kept` counts documents that pruning left alone because what they stood in could not be read; `truncated` freshly
    embedded texts that were longer than the embedder reads; `embedded_texts` those that the cache did not hold;
    `version` is the table's.
    """

    documents: int
    chunks: int
    added: int
    changed: int
    unchanged: int
    removed: int
    kept: int
    rejected: tuple[Rejected, ...]
    truncated: int
    embedded_texts: int
    version: int
    seconds: float


def ingest(
    look: Look,
    tokenizer: Tokenizer,
    chunking: ChunkingSettings,
    embedder: CachedEmbedder,
    place: StorePlace,
    *,
    lock: Path,
    lock_wait_seconds: float = 600.0,
    prepend_title: bool = False,
    prune: bool = False,
    commit_chunks: int = COMMIT_CHUNKS,
    advance: Advance = lambda done: None,
) -> IngestReport:
    """Bring the store up to the corpus that `look` surveys: only what is new is chunked and embedded.

    Each document is stored whole. One whose text cannot be embedded is rejected by name, and the others are stored.
    `prune` removes documents that are gone from the corpus, but none that may stand where something could not be
    read. `advance` gets the number of documents just stored. A killed ingest goes on where it stopped; `lock` is a
    file that one ingest holds at a time.

    Raises:
        ConfigError: the chunks are far longer than the embedder reads.
        InputError: the corpus cannot be read, or holds nothing and `prune` would empty the store.
        StoreError: another ingest holds the lock for longer than `lock_wait_seconds`, or the store fails.
    """
    check_chunk_length(chunking, embedder)
    started, cut, embedded = time.monotonic(), embedder.truncated, embedder.embedded
    with writer_lock(lock, lock_wait_seconds):
        stored = place.documents(embedder)
        survey = look(stored, content_hash(tokenizer, chunking, embedder, prepend_title))
        if prune and not survey.contents:
            raise InputError("the corpus holds no document: pruning would empty the store; check corpus.paths")
        store = place.store(embedder)
        writer = DocumentWriter(embedder, store, survey.contents, stored, prepend_title)
        for batch in chunked_batches(survey.documents, tokenizer, chunking, commit_chunks):
            writer.write(batch)
            advance(len(batch))
        absent = set(stored) - set(survey.contents) if prune else set()
        gone = sorted(absent - set(survey.unreadable))
        store.delete_documents(gone)
        store.maintain()
        if writer.added or writer.changed:
            store.check_unique()
        return IngestReport(
            documents=len(stored) + writer.added - len(gone),
            chunks=store.count,
            added=writer.added,
            changed=writer.changed,
            unchanged=len(survey.contents) - len(survey.documents),
            removed=len(gone),
            kept=len(absent) - len(gone),
            rejected=(*survey.rejected, *writer.rejected),
            truncated=_warn_of_cuts(embedder.truncated - cut, embedder),
            embedded_texts=embedder.embedded - embedded,
            version=store.version,
            seconds=time.monotonic() - started,
        )


def check_chunk_length(chunking: ChunkingSettings, embedder: CachedEmbedder) -> None:
    """Nothing, where a chunk can fit what the embedder reads; a chunk a little too long is cut and counted later.

    Raises:
        ConfigError: `chunk_tokens` is more than twice the embedder's length, so that most of a chunk would be lost.
    """
    if chunking.chunk_tokens > _LENGTH_LEEWAY * embedder.max_length:
        raise ConfigError(
            f"chunking.chunk_tokens ({chunking.chunk_tokens}) is more than twice what the embedder {embedder.name} "
            f"reads ({embedder.max_length} tokens): the rest of each chunk could never be found; lower the former, "
            "or take an embedder that reads more"
        )


def _warn_of_cuts(truncated: int, embedder: CachedEmbedder) -> int:
    if truncated:
        logger.warning(
            "ingest: %d chunks are longer than the %d tokens that %s reads and are found by their beginnings only; "
            "lower chunking.chunk_tokens or raise embedder.max_length",
            truncated,
            embedder.max_length,
            embedder.name,
        )
    return truncated
