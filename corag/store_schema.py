"""The columns of the chunk table, and chunks as its rows and back."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from corag.embedders.base import Vectors, valid_rows
from corag.errors import StoreError
from corag.filters import tags
from corag.values import Chunk

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_COLUMNS = ("chunk_id", "doc_id", "position", "start", "end", "text", "tokens", "title", "metadata")

# The store merges rows by this key: without it, two writers of one new key would leave two rows.
_PRIMARY_KEY = {"lance-schema:unenforced-primary-key:position": "1"}


class EmbedderIdentity(Protocol):
    """What the table remembers of the embedder that filled it; every embedder offers it."""

    name: str
    revision: str
    dimension: int


def table_schema(embedder: EmbedderIdentity) -> "pa.Schema":
    """The schema of a table for `embedder`, whose name and revision it carries.

    `doc_hash` is the document's content hash; `tags` holds the metadata as `field=value` for filters, `metadata`
    holds it as JSON.
    """
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("chunk_id", pa.string(), nullable=False, metadata=_PRIMARY_KEY),
            pa.field("doc_id", pa.string(), nullable=False),
            pa.field("doc_hash", pa.string(), nullable=False),
            pa.field("position", pa.int32(), nullable=False),
            pa.field("start", pa.int64(), nullable=False),
            pa.field("end", pa.int64(), nullable=False),
            pa.field("text", pa.string(), nullable=False),
            pa.field("tokens", pa.int32(), nullable=False),
            pa.field("title", pa.string(), nullable=False),
            pa.field("metadata", pa.string(), nullable=False),
            pa.field("tags", pa.list_(pa.string()), nullable=False),
            pa.field("vector", pa.list_(pa.float32(), embedder.dimension), nullable=False),
        ],
        metadata={"corag.embedder": embedder.name, "corag.revision": embedder.revision},
    )


def check_embedder(schema: "pa.Schema", embedder: EmbedderIdentity, where: str) -> None:
    """Nothing, where the table's vectors are those of `embedder`.

    Raises:
        StoreError: another embedder filled it.
    """
    described = schema.metadata or {}
    name = described.get(b"corag.embedder", b"unknown").decode()
    revision = described.get(b"corag.revision", b"unknown").decode()
    width = schema.field("vector").type.list_size
    if (width, revision) != (embedder.dimension, embedder.revision):
        raise StoreError(
            f"{where}: holds vectors of width {width} by {name} ({revision}), but the configured embedder is "
            f"{embedder.name} ({embedder.revision}) with width {embedder.dimension}; set the former embedder again, "
            "or name a new store.table (or delete this one) and run `corag ingest`"
        )


def check_rows(chunks: Sequence[Chunk], vectors: Vectors, schema: "pa.Schema", where: str) -> None:
    """Nothing, where `chunks` with `vectors` [n, d] may be written.

    Raises:
        StoreError: the width differs from the table's, a vector is unusable, or two chunks share an id.
    """
    width = schema.field("vector").type.list_size
    if vectors.shape != (len(chunks), width):
        raise StoreError(
            f"{where}: holds vectors of width {width}, but these {len(chunks)} chunks come with vectors "
            f"of shape {list(vectors.shape)}; use the embedder that filled the table"
        )
    for chunk, usable in zip(chunks, valid_rows(vectors), strict=True):
        if not usable:
            raise StoreError(f"document {chunk.doc_id!r}: chunk {chunk.chunk_id!r} has an unusable vector")
    if len({chunk.chunk_id for chunk in chunks}) != len(chunks):
        raise StoreError(f"{where}: two chunks to be written share an id; nothing was written")


def to_rows(chunks: Sequence[Chunk], doc_hashes: Sequence[str], vectors: Vectors, schema: "pa.Schema") -> "pa.Table":
    """The rows of `chunks` with their documents' hashes and their vectors [n, d]."""
    import pyarrow as pa

    flat = pa.array(vectors.reshape(-1), type=pa.float32())
    columns: dict[str, Any] = {
        "chunk_id": [chunk.chunk_id for chunk in chunks],
        "doc_id": [chunk.doc_id for chunk in chunks],
        "doc_hash": list(doc_hashes),
        "position": [chunk.position for chunk in chunks],
        "start": [chunk.start for chunk in chunks],
        "end": [chunk.end for chunk in chunks],
        "text": [chunk.text for chunk in chunks],
        "tokens": [chunk.tokens for chunk in chunks],
        "title": [chunk.title for chunk in chunks],
        "metadata": [json.dumps(dict(sorted(chunk.metadata.items())), ensure_ascii=False) for chunk in chunks],
        "tags": [tags(chunk.metadata) for chunk in chunks],
        "vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
    }
    return pa.table(columns, schema=schema)


def to_chunks(rows: "pa.Table") -> list[Chunk]:
    """The chunks of `rows`, which hold at least CHUNK_COLUMNS."""
    return [Chunk(**{**row, "metadata": json.loads(row["metadata"])}) for row in rows.select(CHUNK_COLUMNS).to_pylist()]
