"""What ingest and search cost as the corpus grows.

    python -m benchmarks.ingest [--largest N] [--data DIR] [--texts N]

Three measurements. The pipeline against the bare embedder (the packaged MiniLM) on the same texts, of the bundled
sample or of DIR/corpus.jsonl. Then corpora of 10,000, 100,000 and 1,000,000 chunks, as far as `--largest` allows
(100,000 by default), made up of the sample's words, with the static embedder: each in a process and a folder of its
own. Last, how much longer the whole answer path takes at 100,000 chunks than at 10,000.
"""

import argparse
import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.figures import emit
from benchmarks.ingest_scale import ANSWERED, RECALL_AT, RECALL_QUERIES, Scale, measure
from corag.chunking import chunk_document
from corag.embedders import CachedEmbedder
from corag.embedders.minilm import MiniLM
from corag.generators.convert import converted_smollm2
from corag.ingest import StorePlace, ingest
from corag.memo import Memo
from corag.readers import Reading, read_documents
from corag.settings import SAMPLE, ChunkingSettings, StoreSettings
from corag.survey import survey_documents
from corag.tokens import Tokenizer, load_tokenizer
from corag.values import Chunk, Document
from corag.workspace import Workspace

SIZES = (10_000, 100_000, 1_000_000)
ROUNDS = 3


def main() -> None:
    """Print the tables, then the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=100_000, help="the most chunks of a corpus (default 100000)")
    parser.add_argument("--data", type=Path, help="a folder with corpus.jsonl; default: the bundled sample")
    parser.add_argument("--texts", type=int, default=320, help="about how many chunks are embedded (default 320)")
    arguments = parser.parse_args()
    model = converted_smollm2(Workspace(Path("workspace").absolute()).models)
    source = SAMPLE if arguments.data is None else str(arguments.data / "corpus.jsonl")
    overhead, texts = pipeline_overhead(source, load_tokenizer(model), arguments.texts)
    print(f"pipeline over bare embedder: {100 * overhead:+.1f} % on {texts} chunks (MiniLM, best of {ROUNDS})\n")
    scales: dict[int, Scale] = {}
    for size in SIZES:
        if size <= arguments.largest:
            scales[size] = _in_own_process(size, str(model))
            print(_row(scales[size]), flush=True)
    print(f"\n{table(list(scales.values()))}\n")
    emit("ingest_overhead", overhead, aim=0.10, better="lower", n=texts)
    _emit_scales(scales)


def pipeline_overhead(source: str, tokenizer: Tokenizer, texts: int) -> tuple[float, int]:
    """What the pipeline takes beyond the bare embedder, as a share of the latter, and the number of texts.

    Both run in turns, each with the model loaded, and the best of each counts: the machine may be busy.
    """
    chunking = ChunkingSettings()
    documents: list[Document] = []
    chunks: list[Chunk] = []
    for document in read_documents([source], ("**/*",), ()).documents:
        if len(chunks) < texts:
            documents.append(document)
            chunks += chunk_document(document, tokenizer, chunking)
    reading = Reading(documents, [], len(documents))
    embedder = MiniLM(None, 512, 32)
    embedder.embed(["load"])
    bare, whole = [], []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        embedder.embed(sorted({chunk.text for chunk in chunks}))
        bare.append(time.perf_counter() - started)
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            cached = CachedEmbedder(embedder, Memo(Path(folder) / "memo.sqlite"))
            ingest(
                lambda stored, contents: survey_documents(reading, stored, contents),
                tokenizer,
                chunking,
                cached,
                StorePlace(str(Path(folder) / "lancedb"), StoreSettings()),
                lock=Path(folder) / "lock",
            )
            whole.append(time.perf_counter() - started)
    return min(whole) / min(bare) - 1, len(chunks)


def _in_own_process(size: int, model: str) -> Scale:
    """The figures of one size; the memory of one process tells nothing of another's."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="corag-bench-") as folder, ProcessPoolExecutor(1, context) as pool:
        return pool.submit(measure, size, Path(folder), model, with_answers=size <= SIZES[1]).result()


def table(scales: list[Scale]) -> str:
    """One row a size."""
    head = [
        "| chunks | first ingest s | again s | one changed s | query ms | in a batch ms | recall@10 "
        "| peak GB | store GB | cache GB | corpus GB |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines = head + [_row(one) for one in scales]
    answered = [one for one in scales if one.answer_ms is not None]
    if answered:
        lines += [
            "",
            "| chunks | embed ms | retrieve ms | search ms | generate ms | whole answer ms |",
            "|---|---|---|---|---|---|",
        ]
        for one in answered:
            stages = one.answer_ms or {}
            cells = " | ".join(f"{value:.1f}" for value in (*stages.values(), sum(stages.values())))
            lines.append(f"| {one.chunks:,} | {cells} |")
    return "\n".join(lines)


def _row(one: Scale) -> str:
    recall = "exact" if one.recall is None else f"{one.recall:.3f}"
    return (
        f"| {one.chunks:,} | {one.first_seconds:.1f} | {one.again_seconds:.2f} | {one.one_changed_seconds:.2f} "
        f"| {one.query_ms:.1f} | {one.batch_query_ms:.1f} | {recall} | {one.peak_gb:.2f} | {one.store_gb:.2f} "
        f"| {one.cache_gb:.2f} | {one.corpus_gb:.2f} |"
    )


def _emit_scales(scales: dict[int, Scale]) -> None:
    ten, hundred, million = (scales.get(size) for size in SIZES)
    if hundred is not None:
        emit(
            "reingest_ratio", hundred.again_seconds / hundred.first_seconds, aim=0.02, better="lower", n=hundred.chunks
        )
    if ten is not None and hundred is not None and ten.answer_ms and hundred.answer_ms:
        growth = path_growth(ten.answer_ms, hundred.answer_ms)
        emit("path_growth_10k_100k", growth, aim=0.10, better="lower", n=ANSWERED)
    recalls = [one.recall for one in scales.values() if one.recall is not None]
    if recalls:
        emit(f"index_recall_at_{RECALL_AT}", min(recalls), aim=0.95, better="higher", n=RECALL_QUERIES)
    if million is not None:
        emit("peak_gb_1m", million.peak_gb, aim=4.0, better="lower", n=million.chunks)


def path_growth(small: dict[str, float], large: dict[str, float]) -> float:
    """By how much the whole answer takes longer with the larger corpus, as a share.

    Generating takes most of the time and knows nothing of the corpus, but its time varies with what is generated:
    the smaller corpus's counts for both.
    """
    grown = {stage: large[stage] if stage != "generate" else small[stage] for stage in small}
    return sum(grown.values()) / sum(small.values()) - 1


if __name__ == "__main__":
    main()
