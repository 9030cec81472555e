"""Keeps the chunk table fast and small: its indexes, its compaction, its old versions."""

import logging
from datetime import datetime, timedelta
from typing import Any

from corag.store_search import partitions

logger = logging.getLogger(__name__)

VECTOR_INDEX = "vector_idx"
TEXT_INDEX = "text_idx"

_SMALL_FRAGMENTS = 20
_UNINDEXED_SHARE = 0.1
_BITS = 8  # the quantized index needs whole bytes
_FOREVER = timedelta(days=36_500)


def build_indexes(table: Any, index_above_rows: int, full_text: bool) -> bool:
    """Whether an index was built: of words if asked for, of vectors from `index_above_rows` rows on.

    A smaller table is searched exactly. Rows that are added later are found at once, by brute force, until
    `compact` takes them into the index.
    """
    from lancedb.index import FTS, IvfFlat, IvfRq

    present = {index.name for index in table.list_indices()}
    rows = table.count_rows()
    built = False
    if full_text and TEXT_INDEX not in present and rows:
        # Splits words in every script and drops no word: stop words and stems belong to one language.
        config = FTS(base_tokenizer="icu/split", stem=False, remove_stop_words=False)
        table.create_index("text", config=config, name=TEXT_INDEX)
        built = True
    if rows > index_above_rows and VECTOR_INDEX not in present:
        logger.info("store: indexing %d vectors", rows)
        # One bit a dimension is quick to look through; the exact vectors of the best few decide (see `by_vector`).
        width = table.schema.field("vector").type.list_size
        kind = IvfRq if width % _BITS == 0 else IvfFlat
        table.create_index(
            "vector", config=kind(distance_type="cosine", num_partitions=partitions(rows)), name=VECTOR_INDEX
        )
        built = True
    elif rows <= index_above_rows:
        logger.debug("store: %d rows are searched exactly (store.index_above_rows is %d)", rows, index_above_rows)
    return built


def indexed_rows(table: Any) -> int:
    """How many rows the vector index covers; 0 without one."""
    statistics = table.index_stats(VECTOR_INDEX)
    return 0 if statistics is None else int(statistics.num_indexed_rows)


def needs_compaction(table: Any) -> bool:
    """Whether the table has many small files, or many rows that no index covers yet."""
    if table.stats()["fragment_stats"]["num_small_fragments"] > _SMALL_FRAGMENTS:
        return True
    for name in (VECTOR_INDEX, TEXT_INDEX):
        statistics = table.index_stats(name)
        if statistics is not None:
            behind = statistics.num_unindexed_rows
            if behind > _UNINDEXED_SHARE * max(1, statistics.num_indexed_rows):
                return True
    return False


def compact(table: Any, keep_versions: int) -> None:
    """Merge small files, take new rows into the indexes, and drop all but about `keep_versions` former versions.

    Where a version carries a tag nothing is dropped: the owner of the tag still needs it.
    """
    table.optimize(cleanup_older_than=_age_to_drop(table, keep_versions))


def _age_to_drop(table: Any, keep_versions: int) -> timedelta:
    versions = sorted(table.list_versions(), key=lambda one: one["version"])
    if len(versions) <= keep_versions or table.tags.list():
        return _FOREVER
    oldest_kept: datetime = versions[-keep_versions]["timestamp"]
    # The age counts from the end of the compaction, and the version at the edge must stay.
    return datetime.now(oldest_kept.tzinfo) - oldest_kept + timedelta(minutes=1)
