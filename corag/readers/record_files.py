"""Many documents a file: records with `text`, and if given `doc_id`, `title` and metadata."""

from collections.abc import Iterator
from pathlib import Path

from corag.errors import InputError
from corag.quarantine import Rejected
from corag.records import Record, read_records, text_field
from corag.values import Document

ID_FIELDS = ("doc_id", "id")


def read_record_file(path: Path, name: str) -> Iterator[tuple[Document | Rejected, int | None]]:
    """Each record's document, or why it has none, with its line; a file without any is refused as a whole."""
    found = False
    try:
        for record in read_records(path):
            found = True
            yield (record if isinstance(record, Rejected) else _document(record, name)), record.line
    except InputError as error:
        found = True
        yield Rejected(str(path), None, str(error)), None
    if not found:
        yield Rejected(str(path), None, "holds no records"), None


def _document(record: Record, name: str) -> Document | Rejected:
    fields = dict(record.fields)
    if "text" not in fields:
        return record.rejected("has no field `text`")
    text = fields.pop("text")
    if not isinstance(text, str):
        return record.rejected(f"`text` is {type(text).__name__}, not a string")
    if not text.strip():
        return record.rejected("`text` is empty")
    doc_id = next((fields[field] for field in ID_FIELDS if fields.get(field) not in (None, "")), None)
    if isinstance(doc_id, bool | list | dict):
        return record.rejected(f"`doc_id` is {type(doc_id).__name__}, not a string")
    fields = {field: value for field, value in fields.items() if field not in ID_FIELDS and value is not None}
    title = fields.pop("title", "")
    return Document(
        doc_id=f"{name}#{record.line}" if doc_id is None else text_field(doc_id),
        title=text_field(title),
        text=text.replace("\x00", "\ufffd"),
        metadata={field: text_field(value) for field, value in sorted(fields.items())},
    )
