"""A hash of all that a document's rows depend on: equal hashes mean that there is nothing to do."""

import hashlib
import json
from dataclasses import dataclass

import corag
from corag.embedders.base import Embedder
from corag.settings import ChunkingSettings
from corag.tokens import Tokenizer
from corag.values import Document


@dataclass(frozen=True, slots=True)
class ContentHash:
    """Called with a document: 32 hex digits of its text, title and metadata, and of how it is cut and embedded.

    The embedder's weights do not count: a table holds one embedder's vectors and refuses another's.
    """

    settings: tuple[object, ...]

    def __call__(self, document: Document) -> str:
        """The document's hash."""
        parts = [document.text, document.title, sorted(document.metadata.items()), list(self.settings)]
        return _digest([*parts, *([document.headings] if document.headings else [])])

    @property
    def mark(self) -> str:
        """A short text that changes whenever hashes of the same files could: with the settings or the readers."""
        return _digest([list(self.settings), corag.__version__])[:12]


def content_hash(
    tokenizer: Tokenizer, chunking: ChunkingSettings, embedder: Embedder, prepend_title: bool
) -> ContentHash:
    """The hash for documents that are cut and embedded this way."""
    return ContentHash((chunking.model_dump(), tokenizer.name, embedder.max_length, prepend_title))


def _digest(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
