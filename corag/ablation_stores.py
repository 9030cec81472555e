"""Stores of their own for the ablations that change the corpus: other chunks, or a part of the documents."""

import random
from collections.abc import Sequence

from corag.ablations import CHUNK_TOKENS, CORPUS_SIZE, Cell
from corag.components import Components
from corag.corpus import ingest_corpus
from corag.ingest_writer import embedded_text
from corag.store import ChunkStore
from corag.values import Question
from corag.workspace import Workspace


def cell_parts(parts: Components, cell: Cell, questions: Sequence[Question]) -> Components:
    """The parts of one cell; what it needs a store of its own for is under `workspace/evaluation/`, and kept there."""
    if cell.ablation == CHUNK_TOKENS and cell.config.chunking != parts.config.chunking:
        return _rechunked(parts, cell)
    if cell.ablation == CORPUS_SIZE and cell.share < 1:
        return _part_of_corpus(parts, cell, questions)
    return parts.sibling(cell.config)


def _rechunked(parts: Components, cell: Cell) -> Components:
    """The configured corpus in other chunks; a second time only what changed is ingested."""
    chunking = cell.config.chunking
    other = _apart(parts, cell, f"chunks-{chunking.chunk_tokens}-{chunking.chunk_overlap}")
    ingest_corpus(other, prune=True)
    return other


def _part_of_corpus(parts: Components, cell: Cell, questions: Sequence[Question]) -> Components:
    """A part of the stored documents: those relevant to the questions, and others drawn by the seed."""
    other = _apart(parts, cell, f"corpus-{cell.share:g}")
    contents = parts.store.documents()
    wanted = documents_of_share(contents, cell.share, questions, parts.config.seed)
    store = ChunkStore.create(other.store_uri, other.config.store, parts.embedder)
    held = store.documents()
    store.delete_documents([doc_id for doc_id in held if doc_id not in wanted])
    missing = {doc_id for doc_id in wanted if held.get(doc_id) != contents[doc_id]}
    chunks = [chunk for chunk in parts.chunks if chunk.doc_id in missing]
    texts = [embedded_text(chunk, parts.config.embedder.prepend_title) for chunk in chunks]
    store.replace_documents(chunks, contents, parts.embedder.embed(texts))
    store.maintain()
    return other


def documents_of_share(
    doc_ids: Sequence[str] | dict[str, str], share: float, questions: Sequence[Question], seed: int
) -> set[str]:
    """`share` of the documents: every one that is relevant to a question, then others in an order drawn by the seed.

    A smaller share is a part of a larger one.
    """
    relevant = {doc_id for question in questions for doc_id in question.relevant_ids}
    others = sorted(doc_id for doc_id in doc_ids if doc_id not in relevant)
    random.Random(seed).shuffle(others)  # noqa: S311 - a sample, not a secret
    kept = [*sorted(relevant & set(doc_ids)), *others]
    return set(kept[: max(len(kept) - len(others), round(share * len(kept)), 1)])


def _apart(parts: Components, cell: Cell, name: str) -> Components:
    config = cell.config.model_copy(update={"store": cell.config.store.model_copy(update={"uri": None})})
    return parts.sibling(config, Workspace(parts.workspace.folder("evaluation", name)))
