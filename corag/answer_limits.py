"""When a run stops answering: a deadline, a token limit, a server that is gone, a generator that hangs."""

import math
import re
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from datetime import time as clock_time
from typing import Annotated

from pydantic import AfterValidator

DEADLINE = "deadline"
TOKEN_LIMIT = "token_limit"  # noqa: S105 - language model tokens
SERVER_GONE = "not tried: the generator's server is down and did not come back in time"
HANGING = "not tried: the generator hangs"


def checked_deadline(deadline: float | str) -> float | str:
    """`deadline` if it is a positive number of seconds, or a time of day as HH:MM.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(deadline, str):
        if not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", deadline):
            raise ValueError(f"a deadline is a number of seconds or a time such as 06:30, not {deadline!r}")
    elif not (math.isfinite(deadline) and deadline > 0):
        raise ValueError("a deadline in seconds is more than 0")
    return deadline


Deadline = Annotated[float | str, AfterValidator(checked_deadline)]
"""A setting: seconds from the start of the run, or a time of day."""


class Limits:
    """Says whether a run may go on. Several threads share one.

    `deadline` is a moment of `clock`, in seconds. `token_limit` bounds prompt and answer tokens of the whole run:
    each call reserves the most that it may take before it is sent, and gives back what it did not take, so that the
    limit is never exceeded as long as the reservations are upper bounds. `given_up()` says that the generator's
    server is gone for good. `ends` says whether the run may end before its questions do.
    """

    def __init__(
        self,
        *,
        deadline: float | None = None,
        token_limit: int | None = None,
        given_up: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.token_limit = token_limit
        self.ends = deadline is not None or token_limit is not None
        self._deadline = deadline
        self._given_up = given_up
        self._clock = clock
        self._tokens = 0
        self._reason: str | None = None
        self._lock = threading.Lock()

    def share(self, part: float) -> float:
        """The moment of the clock at which `part` of the time to the deadline will have passed."""
        now = self._clock()
        return float("inf") if self._deadline is None else now + part * max(0.0, self._deadline - now)

    def reached(self) -> str | None:
        """Why nothing more may be begun; None where the run may go on. Once reached, a limit stays reached."""
        if self._reason is None:
            if self._deadline is not None and self._clock() >= self._deadline:
                self.stop(DEADLINE)
            elif self._given_up():
                self.stop(SERVER_GONE)
        return self._reason

    def stop(self, reason: str) -> None:
        """Let nothing more begin, for `reason`; the first reason stands."""
        with self._lock:
            self._reason = self._reason or reason

    def reserve(self, tokens: int) -> bool:
        """Set `tokens` aside for a call; False, from then on for every call, where they would exceed the limit."""
        with self._lock:
            if self.token_limit is not None and self._tokens + tokens > self.token_limit:
                self._reason = self._reason or TOKEN_LIMIT
                return False
            self._tokens += tokens
            return True

    def settle(self, reserved: int, taken: int) -> None:
        """Replace a reservation by what the call really took."""
        with self._lock:
            self._tokens += taken - reserved

    @property
    def tokens(self) -> int:
        """Tokens taken and reserved so far."""
        with self._lock:
            return self._tokens


def seconds_until(deadline: float | str, now: datetime) -> float:
    """Seconds from `now`, which bears its time zone, to a deadline: a number of seconds, or the next HH:MM there.

    Both are told on the clock of the zone, so that a night in which the clocks change ends at the time that was named.
    """
    if isinstance(deadline, int | float):
        return float(deadline)
    hour, minute = (int(part) for part in deadline.split(":"))
    moment = datetime.combine(now.date(), clock_time(hour, minute), tzinfo=now.tzinfo)
    if moment <= now:
        moment = datetime.combine(now.date() + timedelta(days=1), clock_time(hour, minute), tzinfo=now.tzinfo)
    return moment.timestamp() - now.timestamp()
