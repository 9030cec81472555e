"""The chunk table in LanceDB: documents come and go whole, readers see each change at their next query."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from corag import store_search, store_upkeep
from corag.embedders.base import Vectors, valid_rows
from corag.errors import StoreError
from corag.filters import condition, one_of
from corag.settings import StoreSettings
from corag.store_connection import connect, open_table, told
from corag.store_schema import (
    CHUNK_COLUMNS,
    EmbedderIdentity,
    check_embedder,
    check_rows,
    table_schema,
    to_chunks,
    to_rows,
)
from corag.values import Candidate, Chunk

Mode = Literal["vector", "full-text", "hybrid"]

_IDS_PER_QUERY = 1000


class ChunkStore:
    """One table of chunks and their vectors. Open it inside each worker process: it must not cross a fork."""

    def __init__(self, table: Any, settings: StoreSettings, where: str) -> None:
        self._table = table
        self._settings = settings
        self._where = where

    @classmethod
    def open(cls, uri: str, settings: StoreSettings, embedder: EmbedderIdentity) -> Self:
        """The table of `settings` at `uri` (a folder or an object store's URL).

        Raises:
            StoreError: there is none, it cannot be read, or another embedder filled it.
        """
        found = cls.find(uri, settings, embedder)
        if found is None:
            raise StoreError(f"{uri}, table {settings.table!r}: there is no such table yet; run `corag ingest`")
        return found

    @classmethod
    def find(cls, uri: str, settings: StoreSettings, embedder: EmbedderIdentity) -> Self | None:
        """As `open`, but None where there is no such table."""
        where = f"{uri}, table {settings.table!r}"
        table = open_table(connect(uri, where), settings.table, where)
        if table is None:
            return None
        check_embedder(table.schema, embedder, where)
        return cls(table, settings, where)

    @classmethod
    def create(cls, uri: str, settings: StoreSettings, embedder: EmbedderIdentity) -> Self:
        """As `open`, but an empty table is made where there is none."""
        where = f"{uri}, table {settings.table!r}"
        database = connect(uri, where)
        table = open_table(database, settings.table, where)
        if table is None:
            with told(where):
                # Of several processes that make it at once, all but one find it made.
                table = database.create_table(settings.table, schema=table_schema(embedder), exist_ok=True)
        check_embedder(table.schema, embedder, where)
        return cls(table, settings, where)

    @property
    def version(self) -> int:
        """The newest version of the table; every write makes a new one."""
        return int(self._table.version)

    @property
    def count(self) -> int:
        """Chunks in the table."""
        return int(self._table.count_rows())

    def documents(self) -> dict[str, str]:
        """The content hash of every document, by doc_id."""
        first = self._table.search().where("position = 0").select(["doc_id", "doc_hash"]).to_arrow()
        return dict(zip(first["doc_id"].to_pylist(), first["doc_hash"].to_pylist(), strict=True))

    def get(self, chunk_ids: Sequence[str]) -> list[Chunk]:
        """The chunks of `chunk_ids`, in that order.

        Raises:
            StoreError: one of them is not in the table.
        """
        wanted = sorted(set(chunk_ids))
        found: dict[str, Chunk] = {}
        for start in range(0, len(wanted), _IDS_PER_QUERY):
            where = one_of("chunk_id", wanted[start : start + _IDS_PER_QUERY])
            rows = self._table.search().where(where).select(list(CHUNK_COLUMNS)).to_arrow()
            found.update({chunk.chunk_id: chunk for chunk in to_chunks(rows)})
        if lost := [one for one in wanted if one not in found]:
            raise StoreError(f"{self._where}: holds no chunk {lost[0]!r} ({len(lost)} are missing); ingest it again")
        return [found[one] for one in chunk_ids]

    def all_chunks(self) -> list[Chunk]:
        """Every chunk of the table, by chunk id."""
        chunks = to_chunks(self._table.search().select(list(CHUNK_COLUMNS)).to_arrow())
        return sorted(chunks, key=lambda chunk: chunk.chunk_id)

    def replace_documents(self, chunks: Sequence[Chunk], doc_hashes: Mapping[str, str], vectors: Vectors) -> None:
        """Make `chunks` with `vectors` [n, d] all that the table holds of their documents, in one version.

        `doc_hashes` gives each document's content hash. A reader sees a document before or after, never half.

        Raises:
            StoreError: two chunks share an id, or a vector is unusable or of another width.
        """
        schema = self._table.schema
        check_rows(chunks, vectors, schema, self._where)
        if not chunks:
            return
        rows = to_rows(chunks, [doc_hashes[chunk.doc_id] for chunk in chunks], vectors, schema)
        merge = self._table.merge_insert("chunk_id").when_matched_update_all().when_not_matched_insert_all()
        replaced = one_of("doc_id", sorted({chunk.doc_id for chunk in chunks}))
        with told(self._where):
            merge.when_not_matched_by_source_delete(replaced).execute(rows)

    def delete_documents(self, doc_ids: Sequence[str]) -> None:
        """Remove the documents `doc_ids`; without any, nothing is written."""
        for start in range(0, len(doc_ids), _IDS_PER_QUERY):
            with told(self._where):
                self._table.delete(one_of("doc_id", doc_ids[start : start + _IDS_PER_QUERY]))

    def search(
        self,
        vectors: Vectors,
        texts: Sequence[str],
        limit: int,
        mode: Mode = "vector",
        wanted: Mapping[str, str] | None = None,
    ) -> list[list[Candidate]]:
        """Per query (its vector [d] and its text) the `limit` best chunks whose metadata has the `wanted` values.

        Vector mode sorts by cosine similarity; full-text by BM25; hybrid fuses both by reciprocal rank. The filter
        is applied before the search, ties break by chunk id, and rows written by others are seen.

        Raises:
            StoreError: a vector is zero or not finite, or words are searched without a full-text index.
        """
        if not valid_rows(vectors).all():
            raise StoreError(f"{self._where}: a query vector is zero or not finite; it has no nearest chunks")
        with told(self._where):
            return self._search(vectors, texts, limit, mode, condition(wanted or {}))

    def _search(
        self, vectors: Vectors, texts: Sequence[str], limit: int, mode: Mode, where: str | None
    ) -> list[list[Candidate]]:
        self._table.checkout_latest()
        by_vector: list[list[Candidate]] = [[] for _ in texts]
        by_words: list[list[Candidate]] = [[] for _ in texts]
        if mode != "full-text" and len(texts):
            indexed = store_upkeep.indexed_rows(self._table)
            by_vector = store_search.by_vector(self._table, vectors, limit, where, indexed)
        if mode != "vector":
            self._check_full_text()
            by_words = [
                store_search.by_words(self._table, text, vector, limit, where)
                for text, vector in zip(texts, vectors, strict=True)
            ]
        if mode == "hybrid":
            return [store_search.fuse(pair, limit) for pair in zip(by_vector, by_words, strict=True)]
        return by_vector if mode == "vector" else by_words

    def maintain(self) -> None:
        """Bring the indexes up to date, and compact the table where that is due. Writes nothing where nothing is."""
        with told(self._where):
            store_upkeep.build_indexes(self._table, self._settings.index_above_rows, self._settings.full_text)
            if store_upkeep.needs_compaction(self._table):
                store_upkeep.compact(self._table, self._settings.keep_versions)

    def optimize(self) -> None:
        """Compact the table, index all rows, and drop versions beyond `store.keep_versions`; for the nightly job."""
        with told(self._where):
            store_upkeep.build_indexes(self._table, self._settings.index_above_rows, self._settings.full_text)
            store_upkeep.compact(self._table, self._settings.keep_versions)

    def check_unique(self) -> None:
        """Nothing, where every chunk id stands once.

        Raises:
            StoreError: some stand twice.
        """
        import pyarrow.compute as pc

        ids = self._table.search().select(["chunk_id"]).to_arrow()["chunk_id"]
        doubled = len(ids) - int(pc.count_distinct(ids).as_py())
        if doubled:
            raise StoreError(f"{self._where}: {doubled} chunk ids stand twice; delete the table and run `corag ingest`")

    def _check_full_text(self) -> None:
        if self._table.index_stats(store_upkeep.TEXT_INDEX) is None and self.count:
            raise StoreError(
                f"{self._where}: has no full-text index; set store.full_text: true and run `corag ingest`, "
                "or set retrieval.mode: vector"
            )
