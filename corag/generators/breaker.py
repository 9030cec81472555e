"""Pauses every request while a server is down, and notices when it is back."""

import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

_LONGEST_PAUSE_SECONDS = 30.0


class CircuitBreaker:
    """Opens after `failures` failures in a row; then one thread at a time probes the server and the others wait.

    `probe()` says whether the server answers at all. Between probes it pauses `pause_seconds`, twice as long each
    time, at most 30 s. After `give_up_seconds` without an answer it gives up: every `wait()` is then False at once,
    until `renew()`. `outages` counts the times that a probe found the server down.
    """

    def __init__(
        self,
        probe: Callable[[], bool],
        *,
        failures: int,
        pause_seconds: float,
        give_up_seconds: float,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.outages = 0
        self.given_up = False
        self._probe = probe
        self._failures = failures
        self._pause_seconds = pause_seconds
        self._give_up_seconds = give_up_seconds
        self._sleep = sleep
        self._in_a_row = 0
        self._open = False
        self._counting = threading.Lock()
        self._probing = threading.Lock()

    def succeeded(self) -> None:
        """Note that the server answered."""
        with self._counting:
            self._in_a_row = 0

    def failed(self) -> None:
        """Note that the server did not answer, or with an error of its own."""
        with self._counting:
            self._in_a_row += 1
            if self._in_a_row >= self._failures and not self._open:
                self._open = True
                logger.warning("the server failed %d times in a row: requests pause", self._in_a_row)

    def wait(self) -> bool:
        """True as soon as requests may be sent; False once the server was given up."""
        if not self._open:
            return True
        # Whoever comes first probes; the others find the result when they get the lock.
        with self._probing:
            if not self._open or self.given_up:
                return not self.given_up
            return self._until_it_answers()

    def renew(self) -> None:
        """Look once whether a server that was given up is back."""
        with self._probing:
            if self.given_up and self._probe():
                self._close()

    def _until_it_answers(self) -> bool:
        pause = self._pause_seconds
        end = time.monotonic() + self._give_up_seconds
        down = False
        while True:
            self._sleep(min(pause, max(0.0, end - time.monotonic())))
            if self._probe():
                self._close()
                return True
            if not down:
                down = True
                self.outages += 1
            if time.monotonic() >= end:
                self.given_up = True
                logger.error("the server did not come back within %.0f s", self._give_up_seconds)
                return False
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _close(self) -> None:
        logger.warning("the server answers: requests go on")
        with self._counting:
            self._in_a_row = 0
            self._open = False
            self.given_up = False
