"""What an answering run is: the same questions, configuration, corpus and champion resume it; another begins anew."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from corag.agents import Agent
from corag.errors import InputError
from corag.settings import Config
from corag.values import Question

_RECORDED_PACKAGES = ("torch", "transformers", "openai", "lancedb")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What decides a run's answers, as hashes or names; `made_with` is told beside it and decides nothing."""

    questions: str
    config: str
    corpus: str
    generator: str
    agent: str
    made_with: dict[str, str | int] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """16 hex digits, the same for the same questions, configuration, corpus, generator and agent."""
        return _digest([self.questions, self.config, self.corpus, self.generator, self.agent])


def run_record(
    config: Config, questions: Sequence[Question], generator: str, corpus: str, store_version: int, agent: Agent
) -> RunRecord:
    """The record of a run. `generator` is its identity, `corpus` a hash of what the store holds."""
    decisive = config.model_dump(
        mode="json", include={"seed", "retrieval", "rerankers", "search", "prompt", "embedder"}
    )
    made_with: dict[str, str | int] = {
        "seed": config.seed,
        "batch_questions": config.answer.batch_questions,
        "batch_size": config.generator.batch_size,
        "store_version": store_version,
        **{name: version(name) for name in _RECORDED_PACKAGES},
    }
    return RunRecord(
        questions=_digest([(one.qid, one.question, sorted(one.metadata.items())) for one in questions]),
        config=_digest(decisive),
        corpus=corpus,
        generator=generator,
        agent=agent.name if agent.version is None else f"{agent.name} version {agent.version}",
        made_with=made_with,
    )


def begin(record: RunRecord, folder: Path) -> str | None:
    """Write the record of a run into `folder`, and what is new since the last run on the same questions.

    None where this run was begun before, or no other was.
    """
    path = folder / f"{record.identity}.json"
    told = None if path.exists() else _told(record, _last(record, folder))
    aside = path.with_suffix(".json.part")
    aside.write_text(json.dumps(asdict(record), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    aside.replace(path)
    return told


@contextmanager
def sole_run(identity: str, folder: Path, wait_seconds: float) -> Iterator[None]:
    """Hold this run alone; the lock goes with its owner, so that a killed run leaves none behind.

    Raises:
        InputError: another process is answering the same questions with the same settings.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / f"answer-{identity}.lock")
    try:
        lock.acquire(timeout=wait_seconds)
    except Timeout:
        raise InputError(
            f"another process is answering these questions with these settings (run {identity}); wait for it, or set "
            "answer.lock_wait_seconds to wait here"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _last(record: RunRecord, folder: Path) -> RunRecord | None:
    """The newest other run on the same questions."""
    paths = sorted(folder.glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)
    for path in paths:
        try:
            other = RunRecord(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            # Written by another version: nothing can be compared.
            continue
        if other.questions == record.questions:
            return other
    return None


def _told(record: RunRecord, last: RunRecord | None) -> str | None:
    if last is None:
        return None
    changes = [
        f"the champion was {last.agent} and is {record.agent}" if record.agent != last.agent else "",
        "the configuration changed" if record.config != last.config else "",
        "the corpus changed" if record.corpus != last.corpus else "",
        f"the generator was {last.generator!r} and is {record.generator!r}"
        if record.generator != last.generator
        else "",
    ]
    return f"a new run begins: {'; '.join(change for change in changes if change)} since run {last.identity}"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("utf-8", "replace")).hexdigest()[:16]
