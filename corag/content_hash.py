"""A hash of all that a document's rows depend on: equal hashes mean that there is nothing to do."""

import hashlib
import json
from collections.abc import Sequence

from corag.embedders.base import Embedder
from corag.settings import ChunkingSettings
from corag.tokens import Tokenizer
from corag.values import Document


def content_hashes(
    documents: Sequence[Document],
    tokenizer: Tokenizer,
    chunking: ChunkingSettings,
    embedder: Embedder,
    prepend_title: bool,
) -> dict[str, str]:
    """Per doc_id 32 hex digits: of its text, title and metadata, and of how it is cut and embedded.

    The embedder's weights do not count: a table holds one embedder's vectors and refuses another's.
    """
    settings = [chunking.model_dump(), tokenizer.name, embedder.max_length, prepend_title]
    return {
        document.doc_id: _digest([document.text, document.title, sorted(document.metadata.items()), settings])
        for document in documents
    }


def _digest(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
