"""A record of a file, and its values as text."""

import json
from dataclasses import dataclass
from typing import Any

from corag.quarantine import LONGEST_EXCERPT, Rejected


@dataclass(frozen=True, slots=True)
class Record:
    """One record: its fields, and the line (or row) on which it stands, counted from 1."""

    source: str
    line: int
    fields: dict[str, Any]

    def rejected(self, reason: str) -> Rejected:
        """The refusal of this record."""
        excerpt = json.dumps(self.fields, ensure_ascii=False, default=str)[:LONGEST_EXCERPT]
        return Rejected(self.source, self.line, reason, excerpt)


def text_field(value: Any) -> str:
    """A metadata value as text: strings byte for byte, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def scrub(value: Any) -> Any:
    """The value with each lone surrogate, which no file can hold, replaced by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [scrub(item) for item in value]
    if isinstance(value, dict):
        return {str(scrub(name)): scrub(item) for name, item in value.items()}
    return value
