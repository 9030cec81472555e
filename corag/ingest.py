"""From documents to searchable chunks, doing only what is new: chunk, embed, store, and drop what is gone."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from corag.chunking import chunk_document
from corag.content_hash import content_hashes
from corag.embedders import CachedEmbedder, valid_rows
from corag.errors import ConfigError, InputError
from corag.quarantine import Rejected
from corag.readers import Reading
from corag.settings import ChunkingSettings
from corag.store import ChunkStore
from corag.tokens import Tokenizer
from corag.values import Chunk, Document
from corag.writer_lock import writer_lock

logger = logging.getLogger(__name__)

COMMIT_CHUNKS = 2048
"""Chunks that are written together, at least: one version of the table, a few megabytes of memory."""

# A chunk counts tokens of the generator, the embedder its own; the two rarely differ by more than this.
_LENGTH_LEEWAY = 2


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What one ingest did. `documents` and `chunks` are in the store now; the other counts are of documents.

    `truncated` counts freshly embedded texts that were longer than the embedder reads; `embedded_texts` those that
    the cache did not hold; `version` is the table's.
    """

    documents: int
    chunks: int
    added: int
    changed: int
    unchanged: int
    removed: int
    rejected: tuple[Rejected, ...]
    truncated: int
    embedded_texts: int
    version: int
    seconds: float


def ingest(
    reading: Reading,
    tokenizer: Tokenizer,
    chunking: ChunkingSettings,
    embedder: CachedEmbedder,
    store: ChunkStore,
    *,
    lock: Path,
    lock_wait_seconds: float = 600.0,
    prepend_title: bool = False,
    prune: bool = False,
    commit_chunks: int = COMMIT_CHUNKS,
    progress: Callable[[int], None] = lambda done: None,
) -> IngestReport:
    """Bring `store` up to `reading`: only new and changed documents are chunked and embedded, each stored whole.

    A document whose text cannot be embedded is rejected by name, and the others are stored. `prune` removes documents
    that the reading lacks. `progress` gets the number of documents just finished. A killed ingest goes on where it
    stopped; `lock` is a file that one ingest holds at a time.

    Raises:
        ConfigError: the chunks are far longer than the embedder reads.
        InputError: two documents share an id, or there are none and `prune` would empty the store.
        StoreError: another ingest holds the lock for longer than `lock_wait_seconds`, or the store fails.
    """
    check_chunk_length(chunking, embedder)
    _check_documents(reading.documents, prune)
    started, cut, embedded = time.monotonic(), embedder.truncated, embedder.embedded
    with writer_lock(lock, lock_wait_seconds):
        stored = store.documents()
        hashes = content_hashes(reading.documents, tokenizer, chunking, embedder, prepend_title)
        work = [document for document in reading.documents if stored.get(document.doc_id) != hashes[document.doc_id]]
        progress(len(reading.documents) - len(work))
        writer = _Writer(embedder, store, hashes, stored, prepend_title)
        for batch in _batches(work, tokenizer, chunking, commit_chunks):
            writer.write(batch)
            progress(len(batch))
        gone = sorted(set(stored) - set(hashes)) if prune else []
        store.delete_documents(gone)
        store.maintain()
        if writer.added or writer.changed:
            store.check_unique()
        return IngestReport(
            documents=len(store.documents()),
            chunks=store.count,
            added=writer.added,
            changed=writer.changed,
            unchanged=len(reading.documents) - len(work),
            removed=len(gone),
            rejected=(*reading.rejected, *writer.rejected),
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


def _check_documents(documents: Sequence[Document], prune: bool) -> None:
    seen: set[str] = set()
    for document in documents:
        if document.doc_id in seen:
            raise InputError(f"document id {document.doc_id!r} stands twice in the corpus; give each document its own")
        seen.add(document.doc_id)
    if prune and not documents:
        raise InputError("the corpus holds no document: pruning would empty the store; check corpus.paths")


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


def _batches(
    documents: Sequence[Document], tokenizer: Tokenizer, chunking: ChunkingSettings, commit_chunks: int
) -> Iterator[list[tuple[Document, list[Chunk]]]]:
    """Whole documents with their chunks, at least `commit_chunks` chunks at a time."""
    batch: list[tuple[Document, list[Chunk]]] = []
    size = 0
    for document in documents:
        chunks = chunk_document(document, tokenizer, chunking)
        batch.append((document, chunks))
        size += len(chunks)
        if size >= commit_chunks:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@dataclass
class _Writer:
    """Embeds and stores batches of whole documents, and counts what became of them."""

    embedder: CachedEmbedder
    store: ChunkStore
    hashes: Mapping[str, str]
    stored: Mapping[str, str]
    prepend_title: bool
    added: int = 0
    changed: int = 0
    rejected: list[Rejected] = field(default_factory=list)

    def write(self, batch: Sequence[tuple[Document, list[Chunk]]]) -> None:
        """Store one batch in one version; a document without usable vectors is rejected whole, the others stay."""
        chunks = [chunk for _, own in batch for chunk in own]
        vectors = self.embedder.embed([self._embedded_text(chunk) for chunk in chunks])
        usable = valid_rows(vectors)
        bad = {chunk.doc_id for chunk, good in zip(chunks, usable, strict=True) if not good}
        kept = [index for index, chunk in enumerate(chunks) if chunk.doc_id not in bad]
        self.store.replace_documents([chunks[index] for index in kept], self.hashes, vectors[kept])
        for document, own in batch:
            if document.doc_id in bad or not own:
                reason = "the embedder gives no usable vector for a part of it" if own else "holds no text"
                self.rejected.append(Rejected(document.doc_id, None, reason, ""))
            elif document.doc_id in self.stored:
                self.changed += 1
            else:
                self.added += 1

    def _embedded_text(self, chunk: Chunk) -> str:
        return f"{chunk.title}\n{chunk.text}" if self.prepend_title and chunk.title else chunk.text
