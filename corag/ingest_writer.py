"""Embeds and stores batches of whole documents, and counts what became of them."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from corag.chunking import HEADING, chunk_document
from corag.embedders import CachedEmbedder, valid_rows
from corag.quarantine import Rejected
from corag.settings import ChunkingSettings
from corag.store import ChunkStore
from corag.tokens import Tokenizer
from corag.values import Chunk, Document

Chunked = tuple[Document, list[Chunk]]

_QUICK_SECONDS = 5.0
_MOST_CHUNKS = 16_384


def chunked_batches(
    documents: Iterable[Document], tokenizer: Tokenizer, chunking: ChunkingSettings, commit_chunks: int
) -> Iterator[list[Chunked]]:
    """Whole documents with their chunks, at least `commit_chunks` chunks at a time.

    Where a batch is done within seconds the next one is twice as large: each write looks at every row of the table,
    so that a large corpus wants few of them, while a slow embedder shows its progress.
    """
    batch: list[Chunked] = []
    size = 0
    started = time.monotonic()
    for document in documents:
        chunks = chunk_document(document, tokenizer, chunking)
        batch.append((document, chunks))
        size += len(chunks)
        if size >= commit_chunks:
            yield batch
            if time.monotonic() - started < _QUICK_SECONDS:
                commit_chunks = max(commit_chunks, min(2 * commit_chunks, _MOST_CHUNKS))
            batch, size, started = [], 0, time.monotonic()
    if batch:
        yield batch


def embedded_text(chunk: Chunk, prepend_title: bool) -> str:
    """What the embedder reads of a chunk: its text, below its title and heading where that is wanted."""
    above = [chunk.title, chunk.metadata.get(HEADING, "")] if prepend_title else []
    return "\n".join([*(one for one in above if one), chunk.text])


@dataclass
class DocumentWriter:
    """Stores batches; `contents` is each document's content hash, `stored` what the store held before."""

    embedder: CachedEmbedder
    store: ChunkStore
    contents: Mapping[str, str]
    stored: Mapping[str, str]
    prepend_title: bool
    added: int = 0
    changed: int = 0
    rejected: list[Rejected] = field(default_factory=list)

    def write(self, batch: Sequence[Chunked]) -> None:
        """Store one batch in one version; a document without usable vectors is rejected whole, the others stay."""
        chunks = [chunk for _, own in batch for chunk in own]
        vectors = self.embedder.embed([embedded_text(chunk, self.prepend_title) for chunk in chunks])
        usable = valid_rows(vectors)
        bad = {chunk.doc_id for chunk, good in zip(chunks, usable, strict=True) if not good}
        kept = [index for index, chunk in enumerate(chunks) if chunk.doc_id not in bad]
        self.store.replace_documents([chunks[index] for index in kept], self.contents, vectors[kept])
        for document, own in batch:
            if document.doc_id in bad or not own:
                reason = "the embedder gives no usable vector for a part of it" if own else "holds no text"
                self.rejected.append(Rejected(document.doc_id, None, reason, ""))
            elif document.doc_id in self.stored:
                self.changed += 1
            else:
                self.added += 1
