"""Safe filters for the vector store: whatever a value holds (quotes, SQL, other scripts), it is data."""

from collections.abc import Iterable, Mapping

COLUMN_FILTERS = ("doc_id", "title")
"""Filter keys that name a column; every other key names a field of the metadata."""


def literal(text: str) -> str:
    """`text` as a single-quoted literal of the store's filter language."""
    return "'" + text.encode("utf-8", "replace").decode("utf-8").replace("'", "''") + "'"


def one_of(column: str, values: Iterable[str]) -> str:
    """The condition that `column` holds one of `values`."""
    return f"{column} IN ({', '.join(literal(value) for value in values)})"


def tag(field: str, value: str) -> str:
    """How a metadata field and its value stand in the column `tags`: no two pairs share a tag."""
    return field.replace("\\", "\\\\").replace("=", "\\=") + "=" + value


def tags(metadata: Mapping[str, str]) -> list[str]:
    """The tags of a chunk, in the order of the field names."""
    return [tag(field, str(value)) for field, value in sorted(metadata.items())]


def condition(wanted: Mapping[str, str]) -> str | None:
    """The condition that every field of `wanted` has its value; None where nothing is wanted."""
    parts = [
        f"{field} = {literal(value)}" if field in COLUMN_FILTERS else f"array_has(tags, {literal(tag(field, value))})"
        for field, value in sorted(wanted.items())
    ]
    return " AND ".join(parts) or None
