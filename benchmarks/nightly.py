"""A night of answering against a plain sequential loop over the same stages, on the same server, in the same run.

`--base-url` names a server with the OpenAI API (and `--model` what it calls the model). Without one, vLLM is started
from `.venv-vllm` where that exists; else a stand-in serves answers of a fixed service time, which the table says: the
figures then show what the pipeline does around a server, and nothing about a language model.

The last part repeats the night with three requests in ten failing, broken off in the middle and resumed.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.faulty_proxy import FaultyProxy
from benchmarks.figures import emit
from benchmarks.stand_in_server import StandInServer, serving
from benchmarks.vllm_server import vllm_server
from corag.agents import FixedAgent
from corag.answer_limits import Limits
from corag.answer_order import batches
from corag.answer_parts import AnswerParts
from corag.answer_rows import AnswerRow
from corag.answer_store import AnswerStore
from corag.answer_stream import answer_stream
from corag.answering import answer_batch
from corag.components import Components
from corag.config import load_config
from corag.corpus import ingest_corpus
from corag.generation_memo import GenerationMemo
from corag.generators import Generator
from corag.generators.local_model import local_folder
from corag.questions import read_questions
from corag.settings import SAMPLE, Config, GeneratorSettings
from corag.values import Generation, Prompt, Question
from corag.workspace import Workspace
from flows.answer import answer_parts, overlap

SERVICE_SECONDS = 1.0
SLOTS = 16
FAULTY = 0.3


@dataclass(frozen=True)
class Served:
    """A server, and what to say of it."""

    base_url: str
    model: str
    told: str


class Metered:
    """A generator that notes for how long at least one of its calls was on its way."""

    def __init__(self, generator: Generator) -> None:
        self.name, self.identity = generator.name, generator.identity
        self.context_length = generator.context_length
        self.busy = 0.0
        self._generator = generator
        self._on_their_way = 0
        self._since = 0.0
        self._lock = threading.Lock()

    @property
    def given_up(self) -> bool:
        """As the generator's."""
        return self._generator.given_up

    def count_prompt(self, prompt: Prompt) -> int:
        """As the generator's."""
        return self._generator.count_prompt(prompt)

    def generate(self, prompts: Sequence[Prompt]) -> list[Generation]:
        """As the generator's, on the clock."""
        with self._lock:
            self._on_their_way += 1
            if self._on_their_way == 1:
                self._since = time.perf_counter()
        try:
            return self._generator.generate(prompts)
        finally:
            with self._lock:
                self._on_their_way -= 1
                if not self._on_their_way:
                    self.busy += time.perf_counter() - self._since

    def close(self) -> None:
        """As the generator's."""
        self._generator.close()


@dataclass(frozen=True)
class Night:
    """What one way of answering made, in how many seconds, and for how many of them the server was busy."""

    rows: list[AnswerRow]
    seconds: float
    busy: float

    @property
    def idle_share(self) -> float:
        """The share of the time in which the server had nothing to do."""
        return 1.0 - self.busy / self.seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--config", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--data", type=Path, help="folder with corpus.jsonl and questions.jsonl; default: the sample")
    parser.add_argument("--questions", type=int, default=48)
    parser.add_argument("--base-url")
    parser.add_argument("--model")
    arguments = parser.parse_args()
    config = load_config(arguments.config, arguments.overrides)
    models = Workspace(Path(config.workspace).absolute()).models
    with tempfile.TemporaryDirectory() as folder, server(arguments.base_url, arguments.model, config, models) as served:
        config = for_server(config, served, Path(folder), models)
        questions = prepare_store(config, arguments.data, Path(folder), models)[: arguments.questions]
        plain = sequential(questions, config, Path(folder) / "plain")
        ours = overlapping(questions, config, Path(folder) / "ours")
        with serving(FaultyProxy(served.base_url, faulty=FAULTY, seed=config.seed)) as proxy:
            shaken = interrupted(questions, at(config, proxy.base_url), Path(folder) / "shaken")
    report(served, plain, ours, len(questions))
    figures(questions, plain, ours, shaken, config.search.budget)


@contextmanager
def server(base_url: str | None, model: str | None, config: Config, models: Path) -> Iterator[Served]:
    """The server that was named, vLLM, or the stand-in."""
    with ExitStack() as stack:
        if base_url is not None:
            yield Served(base_url, model or "", f"the server at {base_url}")
        elif (url := stack.enter_context(vllm_server(local_folder(GeneratorSettings(), models)))) is not None:
            yield Served(url, "smollm2", "vLLM on this machine, SmolLM2-135M")
        else:
            stand_in = stack.enter_context(serving(StandInServer(seconds=SERVICE_SECONDS, slots=SLOTS)))
            told = f"a stand-in, no language model: {SERVICE_SECONDS:g} s an answer, {SLOTS} at once"
            yield Served(stand_in.base_url, "stand-in", told)


def for_server(config: Config, served: Served, folder: Path, models: Path) -> Config:
    """`config` with the generator at the server, counting tokens as the packaged model does, and a store of its own."""
    settings = config.generator
    if settings.kind != "openai":
        tokenizer = str(local_folder(settings, models))
        settings = settings.model_copy(update={"kind": "openai", "tokenizer": tokenizer, "concurrency": SLOTS})
    settings = settings.model_copy(update={"base_url": served.base_url, "model": served.model or settings.model})
    store = config.store.model_copy(update={"uri": str(folder / "store")})
    return config.model_copy(update={"generator": settings, "store": store})


def at(config: Config, base_url: str) -> Config:
    """`config` with its server behind another address, and little patience for requests that hang."""
    patience = {"base_url": base_url, "timeout_seconds": 30.0 if "stand-in" not in str(config.generator.model) else 2.0}
    return config.model_copy(update={"generator": config.generator.model_copy(update=patience)})


def prepare_store(config: Config, data: Path | None, folder: Path, models: Path) -> list[Question]:
    """The questions, with the corpus in the store."""
    parts = Components(config, Workspace(folder / "ingest"))
    corpus = [str(data / "corpus.jsonl")] if data else list(config.corpus.paths)
    questions = read_questions(str(data / "questions.jsonl") if data else SAMPLE).questions
    ingest_corpus(parts, corpus)
    return list(questions)


def fresh_parts(config: Config, folder: Path) -> tuple[AnswerParts, Metered]:
    """The parts of answering with nothing remembered, every model loaded, and the server's clock."""
    parts = Components(config, Workspace(folder))
    metered = Metered(parts.generator)
    memo = GenerationMemo(metered.identity, lambda: metered, parts.memo.table("generations"))
    answering = replace(answer_parts(parts, FixedAgent(parts.fixed)), generations=memo)
    answer_batch([Question("warm-up", "Is everything loaded?")], answering)
    metered.busy = 0.0
    return answering, metered


def sequential(questions: Sequence[Question], config: Config, folder: Path) -> Night:
    """One question after the other through all stages."""
    answering, metered = fresh_parts(config, folder)
    start = time.perf_counter()
    rows = [row for question in questions for row in answer_batch([question], answering)]
    return Night(rows, time.perf_counter() - start, metered.busy)


def overlapping(questions: Sequence[Question], config: Config, folder: Path) -> Night:
    """As `corag answer` does it, with every row committed."""
    answering, metered = fresh_parts(config, folder)
    store = AnswerStore(Workspace(folder).runs / "run.sqlite")
    start = time.perf_counter()
    work = batches(questions, (), config.answer.batch_questions)
    for rows in answer_stream(work, answering, Limits(), overlap(config)):
        store.put(rows)
    seconds = time.perf_counter() - start
    return Night(list(store.rows([one.qid for one in questions])), seconds, metered.busy)


def interrupted(questions: Sequence[Question], config: Config, folder: Path) -> list[AnswerRow]:
    """The rows after the night was broken off half-way, and resumed until no question was left."""
    store = AnswerStore(Workspace(folder).runs / "run.sqlite")
    for most in (len(questions) // 2, len(questions), len(questions)):
        # Everything anew, as in another process; only what was committed is known.
        answering, _ = fresh_parts(config, folder)
        done = 0
        for rows in answer_stream(
            batches(questions, store.finished(), config.answer.batch_questions),
            answering,
            Limits(),
            overlap(config),
        ):
            store.put(rows)
            done += len(rows)
            if done >= most:
                break
        if len(store.finished()) == len(questions):
            break
    return list(store.rows([one.qid for one in questions]))


def report(served: Served, plain: Night, ours: Night, count: int) -> None:
    """The table: both ways side by side, and the stages of ours."""
    out = sys.stdout.write
    out(f"{count} questions; server: {served.told}\n\n")
    out("| | questions/minute | seconds | server idle | answered |\n|---|---|---|---|---|\n")
    for name, night in (("one after the other", plain), ("overlapping", ours)):
        answered = sum(row.status == "answered" for row in night.rows)
        out(
            f"| {name} | {60 * count / night.seconds:.1f} | {night.seconds:.1f} | {night.idle_share:.0%} "
            f"| {answered} |\n"
        )
    out("\n| stage, ms a question | p50 | p95 |\n|---|---|---|\n")
    for stage in ("embed", "retrieve", "search", "generate"):
        times = sorted(getattr(row.latency_ms, stage) for row in ours.rows)
        out(f"| {stage} | {statistics.median(times):.1f} | {times[int(0.95 * (len(times) - 1))]:.1f} |\n")
    out("\n")


def figures(questions: Sequence[Question], plain: Night, ours: Night, shaken: Sequence[AnswerRow], budget: int) -> None:
    """The figures of both nights."""
    count = len(questions)
    emit("nightly_throughput_ratio", plain.seconds / ours.seconds, 3.0, "higher", count)
    emit("llm_idle_share", ours.idle_share, 0.1, "lower", count)
    rows = [*ours.rows, *shaken]
    seen = [Counter(row.qid for row in night) for night in (ours.rows, shaken)]
    emit("answers_lost", sum(one.qid not in night for night in seen for one in questions), 0, "lower", 2 * count)
    emit("answers_doubled", sum(times - 1 for night in seen for times in night.values()), 0, "lower", 2 * count)
    emit("over_budget", sum(row.context_tokens > min(budget, row.budget) for row in rows), 0, "lower", len(rows))


if __name__ == "__main__":
    main()
