"""Answers many questions with the stages overlapping: the next are searched while the language model works."""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from queue import Empty, Full, Queue
from typing import TypeVar

from corag.answer_limits import DEADLINE, HANGING, Limits
from corag.answer_parts import AnswerParts, Prepared, finished_row, unprepared
from corag.answer_prepare import prepare
from corag.answer_rows import AnswerRow
from corag.answering import answer_prepared
from corag.values import Prompt, Question

_POLL_SECONDS = 0.05
_MOST_ROWS = 256

Call = list[Prepared]
"""The questions whose distinct prompts are sent in one call of the generator."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Overlap:
    """How far the stages overlap.

    `callers` threads call the generator at once, with at most `prompts_per_call` prompts each; at most `waiting`
    calls lie ready for them. A call may take `timeout_seconds`. With `in_turn` the search and the generator, which
    then share one device, take turns instead.
    """

    callers: int
    prompts_per_call: int
    waiting: int
    timeout_seconds: float | None = None
    in_turn: bool = False


def answer_stream(
    batches: Iterable[Sequence[Question]], parts: AnswerParts, limits: Limits, overlap: Overlap
) -> Iterator[list[AnswerRow]]:
    """Rows as they are finished, in any order: one a question of `batches`, equal to what `answer_batch` gives.

    Once a limit is reached, the rows of all remaining questions are failed with its reason. Nothing but the batch in
    preparation, the calls that wait and the rows that were not taken yet is held in memory.

    Raises:
        CoragError: a part is missing or broken for every question; rows that were yielded before stay good.
    """
    run = _Run(parts, limits, overlap)
    try:
        yield from run.rows(batches)
    finally:
        run.stopped.set()


class _Run:
    """One thread prepares, `callers` threads call the generator, and the caller's own thread collects rows.

    The threads are daemons: one that hangs in a model must not keep the process from ending.
    """

    def __init__(self, parts: AnswerParts, limits: Limits, overlap: Overlap) -> None:
        self.stopped = threading.Event()
        self._parts = parts
        self._limits = limits
        self._overlap = overlap
        self._ready: Queue[Call] = Queue(max(1, overlap.waiting))
        self._done: Queue[list[AnswerRow] | BaseException] = Queue(max(1, overlap.waiting))
        self._device = threading.Lock() if overlap.in_turn else None
        self._begun: dict[int, tuple[float, Call]] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._asked = 0
        self._all_asked = False
        self._portion = 1
        self._broken: BaseException | None = None

    def rows(self, batches: Iterable[Sequence[Question]]) -> Iterator[list[AnswerRow]]:
        """Start the threads and yield rows until every question has one."""
        self._start(lambda: self._prepare_all(batches))
        for _ in range(self._overlap.callers):
            self._start(self._call_on_and_on)
        answered = 0
        while not (self._all_asked and answered == self._asked):
            for rows in (self._collected(), self._abandoned()):
                answered += len(rows)
                if rows:
                    yield rows

    def _start(self, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - it is raised again in the collecting thread
                self._put(self._done, error)

        threading.Thread(target=guarded, daemon=True).start()

    def _prepare_all(self, batches: Iterable[Sequence[Question]]) -> None:
        for batch in batches:
            self._asked += len(batch)
            start = 0
            while start < len(batch) and not self.stopped.is_set():
                portion = batch[start : start + (len(batch) if self._overlap.in_turn else self._portion)]
                prepared = self._prepared(portion)
                self._fit_portion(len(batch))
                self._put(self._done, [finished_row(one, self._parts) for one in prepared if one.prompt is None])
                for call in _calls(prepared, self._overlap.prompts_per_call):
                    self._put(self._ready, call)
                start += len(portion)
        self._all_asked = not self.stopped.is_set()

    def _fit_portion(self, most: int) -> None:
        """Search fewer questions at once where the server waits for them, more where prompts wait for the server.

        Many at once share the reranker's batches; few come sooner.
        """
        if not self._ready.empty():
            self._portion = min(most, 2 * self._portion)
        elif not self._begun:
            self._portion = max(1, self._portion // 2)

    def _prepared(self, batch: Sequence[Question]) -> list[Prepared]:
        while (reason := self._limits.reached()) is None and not self.stopped.is_set():
            if self._device is None:
                return prepare(batch, self._parts)
            # A generator that hangs keeps the device for ever: look up now and then whether it was given up.
            if self._device.acquire(timeout=_POLL_SECONDS):
                try:
                    return prepare(batch, self._parts)
                finally:
                    self._device.release()
        return [unprepared(question, reason or "interrupted", self._parts) for question in batch]

    def _call_on_and_on(self) -> None:
        while not self.stopped.is_set():
            try:
                call = self._ready.get(timeout=_POLL_SECONDS)
            except Empty:
                continue
            rows = self._answered(call)
            if rows is None:
                # Given up on meanwhile: another thread has taken this one's place.
                return
            self._put(self._done, rows)

    def _answered(self, call: Call) -> list[AnswerRow] | None:
        reserved = self._most_tokens(call)
        if self._limits.reached() is not None or not self._limits.reserve(reserved):
            return self._failed(call, str(self._limits.reached()))
        with self._device or nullcontext():
            number = next(self._numbers)
            with self._lock:
                self._begun[number] = (time.monotonic(), call)
            rows = answer_prepared(call, self._parts)
        distinct = {one.prompt: row.prompt_tokens + row.answer_tokens for one, row in zip(call, rows, strict=True)}
        self._limits.settle(reserved, sum(distinct.values()))
        with self._lock:
            return rows if self._begun.pop(number, None) else None

    def _most_tokens(self, call: Call) -> int:
        if self._limits.token_limit is None:
            return 0
        return sum(self._parts.most_tokens(prompt) for prompt in {one.prompt for one in call} if prompt is not None)

    def _collected(self) -> list[AnswerRow]:
        """What was finished meanwhile; waits a moment for the first of it."""
        if self._broken is not None:
            raise self._broken
        rows: list[AnswerRow] = []
        try:
            item = self._done.get(timeout=_POLL_SECONDS)
            while not isinstance(item, BaseException):
                rows += item
                if len(rows) >= _MOST_ROWS:
                    return rows
                item = self._done.get_nowait()
            # What was finished before is yielded first.
            self._broken = item
        except Empty:
            pass
        return rows

    def _abandoned(self) -> list[AnswerRow]:
        """The rows of calls that took too long, or that the end of the run found waiting or on their way."""
        rows: list[AnswerRow] = []
        for call in self._overdue():
            rows += self._failed(call, f"timed out: no answer within {self._overlap.timeout_seconds:g} s")
            if self._device is not None:
                self._limits.stop(HANGING)
            else:
                self._start(self._call_on_and_on)
        reason = self._limits.reached()
        if reason is not None:
            # A call to a model in this process cannot be broken off: at the deadline it is waited for.
            cut = reason == HANGING or (reason == DEADLINE and not self._overlap.in_turn)
            for call in [*(self._overdue(0.0) if cut else ()), *_drained(self._ready)]:
                rows += self._failed(call, reason)
        return rows

    def _overdue(self, seconds: float | None = None) -> list[Call]:
        """The calls that began at least so long ago, taken from their threads."""
        allowed = self._overlap.timeout_seconds if seconds is None else seconds
        if allowed is None:
            return []
        now = time.monotonic()
        with self._lock:
            late = [number for number, (start, _) in self._begun.items() if now - start >= allowed]
            return [self._begun.pop(number)[1] for number in late]

    def _failed(self, call: Call, reason: str) -> list[AnswerRow]:
        ended = [replace(one, prompt=None, chosen=None, error=reason) for one in call]
        return [finished_row(one, self._parts) for one in ended]

    def _put(self, queue: "Queue[_Item]", item: _Item) -> None:
        while not self.stopped.is_set():
            try:
                return queue.put(item, timeout=_POLL_SECONDS)
            except Full:
                continue


def _calls(prepared: Sequence[Prepared], prompts_per_call: int) -> Iterator[Call]:
    """The prompts of `prepared` in calls: those that share a beginning side by side, equal ones in one call."""
    by_prompt: dict[Prompt, Call] = {}
    for one in prepared:
        if one.prompt is not None:
            by_prompt.setdefault(one.prompt, []).append(one)
    ordered = sorted(by_prompt, key=lambda prompt: (prompt.system, prompt.user))
    for start in range(0, len(ordered), prompts_per_call):
        yield [one for prompt in ordered[start : start + prompts_per_call] for one in by_prompt[prompt]]


def _drained(queue: "Queue[_Item]") -> list[_Item]:
    items = []
    while True:
        try:
            items.append(queue.get_nowait())
        except Empty:
            return items
