"""Tasks that worker processes import, for the tests of the runners."""

import os
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from corag.errors import ModelError


@task(cache_policy=NO_CACHE, persist_result=False)
def square(number: int) -> int:
    """The square."""
    return number * number


@task(cache_policy=NO_CACHE, persist_result=False)
def die_once(number: int, folder: str) -> int:
    """The square; the first worker that is asked for number 3 dies of it."""
    mark = Path(folder) / "died"
    if number == 3 and not mark.exists():
        mark.touch()
        os._exit(1)
    return number * number


@task(cache_policy=NO_CACHE, persist_result=False)
def fail_once(number: int, folder: str) -> int:
    """The square, but for an error at the first try of number 3."""
    mark = Path(folder) / "failed"
    if number == 3 and not mark.exists():
        mark.touch()
        raise RuntimeError("lost the thread")
    return number * number


@task(cache_policy=NO_CACHE, persist_result=False)
def refuse(number: int) -> int:
    """A user's mistake."""
    raise ModelError(f"model {number}: not there; correct the path")
