"""Answer: questions in, one row each out; committed as they are finished, so that an interrupted run resumes."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from corag.agents import Agent, FixedAgent, check_fits
from corag.answer_file import write_answers
from corag.answer_limits import Limits, seconds_until
from corag.answer_order import batches, most_promising
from corag.answer_parts import AnswerParts
from corag.answer_reuse import KeptAnswers, reuse_scope
from corag.answer_rows import AnswerRow
from corag.answer_runs import RunRecord, begin, run_record, sole_run
from corag.answer_store import AnswerStore
from corag.answer_stream import Overlap, answer_stream
from corag.components import Components
from corag.errors import IncompleteError, InputError
from corag.progress import progress
from corag.retrieval import retrieve
from corag.selection import select
from corag.settings import Config
from corag.values import Prompt, Question
from flows.questions import load_questions, rejected_note
from flows.runtime import open_components
from flows.sweep_record import corpus_version
from training.registry import connect, load_champion

logger = logging.getLogger(__name__)

_TEMPLATE_TOKENS = 64
"""More than a chat template adds around two messages."""

_ORDERING_SHARE = 0.1
"""The part of the time to the deadline that may go into finding the most promising questions."""


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
    answered = answer_questions(open_components(config_file, overrides, "answer"), questions, out, split, limit)
    if answered.problems:
        raise IncompleteError("; ".join([answered.summary, *answered.problems]))
    return answered.summary


@dataclass(frozen=True, slots=True)
class Answered:
    """How a batch ended: every question has a row in `store` and a line in `out`.

    problems: what was rejected or failed, a line each, some of many. seconds: of this attempt; `before` questions
    had been answered by earlier ones. champion: the version of the agent that chose; None where there is none.
    """

    out: str
    store: Path
    questions: list[Question]
    record: RunRecord
    summary: str
    problems: list[str]
    seconds: float
    before: int
    champion: str | None


def answer_questions(
    parts: Components, questions: str, out: str, split: str | None = None, limit: int | None = None
) -> Answered:
    """Answer the questions of a file into `out`."""
    started = time.monotonic()
    if Path(out).suffix not in (".jsonl", ".parquet"):
        raise InputError(f"{out}: answers are written as .jsonl or .parquet; name the file so")
    asked, rejected = load_questions(questions, parts.workspace, "answer", split, limit)
    agent = load_agent(parts)
    record = run_record(
        parts.config, asked, parts.generations.identity, corpus_version(parts), parts.store.version, agent
    )
    qids = [question.qid for question in asked]
    path = parts.workspace.runs / f"{record.identity}.sqlite"
    with sole_run(record.identity, parts.workspace.locks, parts.config.answer.lock_wait_seconds):
        store = AnswerStore(path)
        try:
            before = answer_all(parts, asked, agent, record, store, started)
            write_answers(store.rows(qids), Path(out))
            store.set_complete()
            seconds = time.monotonic() - started
            summary = f"{summarise(store.rows(qids), seconds)} → {out}"
            failed = [f"{row.qid}: {row.error}" for row in store.rows(qids) if row.status == "failed"]
        finally:
            store.close()
    problems = [rejected_note(rejected, parts.workspace), *failed[:5]] if failed or rejected else []
    return Answered(out, path, asked, record, summary, [one for one in problems if one], seconds, before, agent.version)


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


@task(cache_policy=NO_CACHE, persist_result=False)
def answer_all(
    parts: Components, questions: list[Question], agent: Agent, record: RunRecord, store: AnswerStore, started: float
) -> int:
    """A row in `store` for every question; how many were there already, from an earlier attempt at this run.

    `started` is the monotonic moment from which `answer.deadline` counts.
    """
    config = parts.config
    if news := begin(record, parts.workspace.runs):
        logger.warning("%s", news)
    if store.complete and config.answer.reuse == "unchanged":
        # Another night of the same questions: each answer is looked at again, and kept where its grounds still hold.
        store.begin_again()
    finished = store.finished()
    logger.info("run %s: %d questions, %d answered before", record.identity, len(questions), len(finished))
    pending = [question for question in questions if question.qid not in finished]
    answering = answer_parts(parts, agent)
    limits = run_limits(parts, started)
    size = config.answer.batch_questions
    with progress("answer", len(questions)) as advance:
        advance(len(questions) - len(pending))
        if limits.ends:
            ordered = most_promising(pending, answering.retrieve, size, limits.share(_ORDERING_SHARE))
            work = batches(ordered, (), size)
        else:
            work = batches(questions, finished, size)
        for rows in answer_stream(work, answering, limits, overlap(config)):
            store.put(rows)
            advance(len(rows))
    return len(questions) - len(pending)


def answer_parts(parts: Components, agent: Agent) -> AnswerParts:
    """The parts of a configuration as answering takes them."""
    config = parts.config
    kept = None
    if config.answer.reuse == "unchanged":
        kept = KeptAnswers(parts.memo.table("answers"), reuse_scope(config, parts.generations.identity))
    return AnswerParts(
        embed=parts.embedder.embed,
        retrieve=lambda batch: retrieve(parts.store, parts.embedder, batch, config.retrieval, agent.candidate_mean),
        agent=agent,
        search=lambda selections: select(selections, parts.scorers(), config.search, config.seed),
        generations=parts.generations,
        prompt=config.prompt,
        generator=config.generator.model or "SmolLM2-135M-Instruct",
        budget=config.search.budget,
        fixed=parts.fixed,
        kept=kept,
        most_tokens=_most_tokens(parts),
    )


def run_limits(parts: Components, started: float) -> Limits:
    """The limits of a run that began at that monotonic moment."""
    answer = parts.config.answer
    deadline = None
    if answer.deadline is not None:
        now = datetime.now(ZoneInfo(parts.config.schedule.timezone))
        passed = time.monotonic() - started if isinstance(answer.deadline, float) else 0.0
        deadline = time.monotonic() + seconds_until(answer.deadline, now) - passed
    generations = parts.generations
    return Limits(deadline=deadline, token_limit=answer.token_limit, given_up=lambda: generations.given_up)


def overlap(config: Config) -> Overlap:
    """How the stages overlap: a server is kept busy with single prompts, a model in this process with whole batches."""
    answer, generator = config.answer, config.generator
    if generator.kind == "openai":
        return Overlap(generator.concurrency, 1, answer.batch_questions, answer.timeout_seconds)
    return Overlap(1, answer.batch_questions, 1, answer.timeout_seconds, in_turn=True)


def _most_tokens(parts: Components) -> Callable[[Prompt], int]:
    def most(prompt: Prompt) -> int:
        texts = sum(parts.tokenizer.counts([prompt.system, prompt.user]))
        return texts + _TEMPLATE_TOKENS + parts.config.generator.max_answer_tokens

    return most


def summarise(rows: Iterable[AnswerRow], seconds: float) -> str:
    """Counts by status, tokens beside the budget, and the share of agent and fixed configurations."""
    count: Counter[str] = Counter()
    for row in rows:
        count["all"] += 1
        count[row.status] += 1
        count[row.config_source] += 1
        count["cut"] += row.finish_reason == "length"
        count["empty"] += row.status == "answered" and not row.answer
        count["reused"] += row.reused
        count["tokens"] += row.context_tokens
    reused = f", {count['reused']} kept from an earlier night" if count["reused"] else ""
    return (
        f"answer: {count['all']} questions ({count['answered']} answered, {count['no_context']} without context, "
        f"{count['failed']} failed; {count['cut']} answers cut at the length limit, {count['empty']} empty{reused}), "
        f"configuration by agent {count['agent']} / fixed {count['fixed']}, "
        f"mean context {count['tokens'] / max(1, count['all']):.0f} tokens, {seconds:.1f} s"
    )
