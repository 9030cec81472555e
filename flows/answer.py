"""Answer: questions in, one row each out; committed batch by batch, so that an interrupted run resumes."""

import hashlib
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from corag.agents import Agent, FixedAgent, check_fits
from corag.answer_rows import AnswerRow
from corag.answer_store import AnswerStore, write_answers
from corag.answering import AnswerParts, answer_batch
from corag.components import Components
from corag.errors import IncompleteError, InputError
from corag.progress import progress
from corag.retrieval import retrieve
from corag.selection import select
from corag.values import Question
from flows.questions import load_questions, rejected_note
from flows.runtime import open_components
from flows.sweep_record import corpus_version
from training.registry import connect, load_champion

logger = logging.getLogger(__name__)


@flow(name="answer")
def answer_flow(
    config_file: str | None,
    overrides: list[str],
    questions: str,
    out: str,
    split: str | None = None,
    limit: int | None = None,
) -> str:
    """Answer the questions into `out`; how many ended how, as one line.

    Raises:
        IncompleteError: some questions failed or could not be read; the others are answered and written.
    """
    started = time.monotonic()
    parts = open_components(config_file, overrides, "answer")
    if Path(out).suffix not in (".jsonl", ".parquet"):
        raise InputError(f"{out}: answers are written as .jsonl or .parquet; name the file so")
    asked, rejected = load_questions(questions, parts.workspace, "answer", split, limit)
    agent = load_agent(parts)
    identity = run_identity(parts, asked, agent)
    with sole_run(parts, identity):
        rows = answer_all(parts, asked, agent, identity)
    write_answers(rows, Path(out))
    summary = f"{summarise(rows, time.monotonic() - started)} → {out}"
    failed = [row for row in rows if row.status == "failed"]
    notes = [rejected_note(rejected, parts.workspace), *(f"{row.qid}: {row.error}" for row in failed[:5])]
    if failed or rejected:
        raise IncompleteError("; ".join([summary, *(note for note in notes if note)]))
    return summary


def load_agent(parts: Components) -> Agent:
    """The champion, or the fixed configuration where there is none, which is said.

    Raises:
        ModelError: the champion was trained on another embedder's vectors, or chooses among other rerankers.
    """
    config = parts.config
    tracking = connect(config.tracking)
    champion = load_champion(tracking, config.agent.model_name, config.promotion.alias, fixed=parts.fixed)
    if champion is None:
        logger.warning(
            "no %s@%s at %s: every question takes the fixed configuration; run `corag train` and `corag promote`",
            config.agent.model_name,
            config.promotion.alias,
            tracking.uri,
        )
        return FixedAgent(parts.fixed, "there is no champion")
    embedder = parts.embedder
    check_fits(
        champion,
        embedder=embedder.name,
        revision=embedder.revision,
        dimension=embedder.dimension,
        rerankers=[reranker.name for reranker in config.rerankers],
    )
    return champion


def run_identity(parts: Components, questions: list[Question], agent: Agent) -> str:
    """A hash of what the answers depend on: a change of questions, settings, corpus or champion is a new run."""
    config = parts.config.model_dump(
        mode="json", include={"seed", "retrieval", "rerankers", "search", "prompt", "embedder"}
    )
    told = {
        "config": config,
        "generator": parts.generations.identity,
        "corpus": corpus_version(parts),
        "agent": [agent.name, agent.version],
        "questions": [(question.qid, question.question, dict(question.metadata)) for question in questions],
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode("utf-8", "replace")).hexdigest()[:16]


@contextmanager
def sole_run(parts: Components, identity: str) -> Iterator[None]:
    """Hold this run alone; the lock goes with its owner, so that a killed run leaves none behind.

    Raises:
        InputError: another process is answering the same questions with the same settings.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(parts.workspace.locks / f"answer-{identity}.lock")
    try:
        lock.acquire(timeout=parts.config.answer.lock_wait_seconds)
    except Timeout:
        raise InputError(
            f"another process is answering these questions with these settings (run {identity}); wait for it, or set "
            "answer.lock_wait_seconds to wait here"
        ) from None
    try:
        yield
    finally:
        lock.release()


@task(cache_policy=NO_CACHE, persist_result=False)
def answer_all(parts: Components, questions: list[Question], agent: Agent, identity: str) -> list[AnswerRow]:
    """The rows of all questions, in their order; those of an earlier attempt at this run are kept."""
    config = parts.config
    answer_parts = AnswerParts(
        embed=parts.embedder.embed,
        retrieve=lambda batch: retrieve(parts.store, parts.embedder, batch, config.retrieval),
        agent=agent,
        search=lambda selections: select(selections, parts.scorers(), config.search, config.seed),
        generations=parts.generations,
        prompt=config.prompt,
        generator=config.generator.model or "SmolLM2-135M-Instruct",
        budget=config.search.budget,
    )
    store = AnswerStore(parts.workspace.runs / f"{identity}.sqlite")
    try:
        done = store.finished()
        pending = [question for question in questions if question.qid not in done]
        logger.info("run %s: %d questions, %d answered before", identity, len(questions), len(questions) - len(pending))
        with progress("answer", len(questions)) as advance:
            advance(len(questions) - len(pending))
            for start in range(0, len(pending), config.answer.batch_questions):
                batch = pending[start : start + config.answer.batch_questions]
                store.put(answer_batch(batch, answer_parts))
                advance(len(batch))
        return store.rows([question.qid for question in questions])
    finally:
        store.close()


def summarise(rows: list[AnswerRow], seconds: float) -> str:
    """Counts by status, tokens beside the budget, and the share of agent and fixed configurations."""
    count = {status: sum(row.status == status for row in rows) for status in ("answered", "no_context", "failed")}
    agent = sum(row.config_source == "agent" for row in rows)
    cut = sum(row.finish_reason == "length" for row in rows)
    empty = sum(row.status == "answered" and not row.answer for row in rows)
    tokens = sum(row.context_tokens for row in rows) / max(1, len(rows))
    return (
        f"answer: {len(rows)} questions ({count['answered']} answered, {count['no_context']} without context, "
        f"{count['failed']} failed; {cut} answers cut at the length limit, {empty} empty), configuration by agent "
        f"{agent} / fixed {len(rows) - agent}, mean context {tokens:.0f} tokens, {seconds:.1f} s"
    )
