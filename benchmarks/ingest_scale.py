"""What one corpus size costs, measured in a process of its own: ingest, search, the whole answer, memory, disk."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from benchmarks.ingest_corpus import CHUNK_TOKENS, Topics, write_corpus
from corag.agents import FixedAgent
from corag.answering import AnswerParts, answer_batch
from corag.components import Components
from corag.corpus import ingest_corpus
from corag.retrieval import retrieve
from corag.selection import select
from corag.settings import Config
from corag.values import Question
from corag.workspace import Workspace

if TYPE_CHECKING:
    from lancedb.query import LanceVectorQueryBuilder

SINGLE_QUERIES = 64
RECALL_QUERIES = 100
RECALL_AT = 10
ANSWERED = 16


@dataclass(frozen=True, slots=True)
class Scale:
    """Figures of one size; seconds, milliseconds a question, gigabytes. None where it was not measured."""

    chunks: int
    first_seconds: float
    again_seconds: float
    one_changed_seconds: float
    query_ms: float
    batch_query_ms: float
    answer_ms: dict[str, float] | None
    recall: float | None
    peak_gb: float
    store_gb: float
    cache_gb: float
    corpus_gb: float


def measure(chunks: int, folder: Path, model: str, with_answers: bool, seed: int = 0) -> Scale:
    """Ingest about `chunks` chunks into `folder` and measure what the process and each question cost."""
    topics = Topics(seed)
    corpus = folder / "corpus"
    write_corpus(corpus, chunks, topics)
    # Younger files are read again in any case, as their times tell nothing yet.
    time.sleep(2.5)
    parts = Components(_config(corpus, folder, model), Workspace(folder / "workspace"))
    parts.embedder.embed(["load"])
    parts.tokenizer.count("load")
    first = _timed(lambda: ingest_corpus(parts))
    again = _timed(lambda: ingest_corpus(parts))
    changed = next(corpus.rglob("*.txt"))
    changed.write_text(changed.read_text("utf-8") + "\nOne more sentence stands here.", encoding="utf-8")
    one_changed = _timed(lambda: ingest_corpus(parts))
    peak = peak_memory_gb()
    single, batch = _query_milliseconds(parts, topics)
    return Scale(
        chunks=parts.store.count,
        first_seconds=first,
        again_seconds=again,
        one_changed_seconds=one_changed,
        query_ms=single,
        batch_query_ms=batch,
        answer_ms=_answer_milliseconds(parts, topics) if with_answers else None,
        recall=_recall(parts, topics),
        peak_gb=peak,
        store_gb=_gigabytes(parts.workspace.lancedb),
        cache_gb=_gigabytes(parts.workspace.memo.parent),
        corpus_gb=_gigabytes(corpus),
    )


def peak_memory_gb() -> float:
    """The most memory that this process has held so far, in GB of 10⁹ bytes."""
    for line in Path("/proc/self/status").read_text("utf-8").split("\n"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e9
    raise OSError("/proc/self/status: tells no peak memory")


def _config(corpus: Path, folder: Path, model: str) -> Config:
    return Config.model_validate(
        {
            "workspace": str(folder / "workspace"),
            "corpus": {"paths": [str(corpus)]},
            "chunking": {"chunk_tokens": CHUNK_TOKENS},
            "embedder": {"kind": "static"},
            "generator": {"model": model},
            "rerankers": [{"name": "late-interaction", "kind": "late-interaction"}],
        }
    )


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _query_milliseconds(parts: Components, topics: Topics) -> tuple[float, float]:
    """The median of one question alone, and the mean of all of them in one batch: embed and search."""
    questions = [Question(f"q{place}", text) for place, text in enumerate(topics.questions(2 * SINGLE_QUERIES))]
    alone, together = questions[:SINGLE_QUERIES], questions[SINGLE_QUERIES:]
    ask = partial(retrieve, parts.store, parts.embedder, settings=parts.config.retrieval)
    ask(questions[:2])
    singles = [_timed(partial(ask, [one])) for one in alone]
    batch = _timed(partial(ask, together))
    return 1000 * statistics.median(singles), 1000 * batch / len(together)


def _answer_milliseconds(parts: Components, topics: Topics) -> dict[str, float]:
    """Per stage of the answer path the milliseconds of a question, in a batch, with the fixed configuration."""
    answering = AnswerParts(
        embed=parts.embedder.embed,
        retrieve=lambda batch: retrieve(parts.store, parts.embedder, batch, parts.config.retrieval),
        agent=FixedAgent(parts.fixed),
        search=lambda selections: select(selections, parts.scorers(), parts.config.search),
        generations=parts.generations,
        prompt=parts.config.prompt,
        generator=parts.generations.identity,
        budget=parts.config.search.budget,
        fixed=parts.fixed,
    )
    texts = topics.questions(3 * SINGLE_QUERIES)[-ANSWERED - 1 :]
    questions = [Question(f"a{place}", text) for place, text in enumerate(texts)]
    answer_batch(questions[:1], answering)
    latency = answer_batch(questions[1:], answering)[0].latency_ms
    return {stage: float(getattr(latency, stage)) for stage in ("embed", "retrieve", "search", "generate")}


def _recall(parts: Components, topics: Topics) -> float | None:
    """Which share of the ten truly nearest chunks the index finds; None where the table is searched exactly."""
    import lancedb

    if parts.store.count <= parts.config.store.index_above_rows:
        return None
    vectors = parts.embedder.embed(topics.questions(RECALL_QUERIES))
    found = parts.store.search(vectors, [""] * len(vectors), RECALL_AT)
    table = lancedb.connect(parts.store_uri).open_table(parts.config.store.table)
    shares = []
    for vector, candidates in zip(vectors, found, strict=True):
        exact = (
            cast("LanceVectorQueryBuilder", table.search(np.asarray(vector)))
            .distance_type("cosine")
            .bypass_vector_index()
            .limit(RECALL_AT)
        )
        nearest = set(exact.select(["chunk_id", "_distance"]).to_arrow()["chunk_id"].to_pylist())
        shares.append(len(nearest & {one.chunk.chunk_id for one in candidates}) / len(nearest))
    return statistics.mean(shares)


def _gigabytes(folder: Path) -> float:
    sizes: Sequence[int] = [
        (Path(where) / name).stat().st_size for where, _, names in os.walk(folder) for name in names
    ]
    return sum(sizes) / 1e9
