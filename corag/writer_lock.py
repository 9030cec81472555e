"""One writer at a time, by a lock that the operating system releases when its owner dies."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corag.errors import StoreError


@contextmanager
def writer_lock(path: Path, wait_seconds: float, who: str = "ingest") -> Iterator[None]:
    """Hold the lock file `path`, waiting at most `wait_seconds` for another holder, which is called `who`.

    Raises:
        StoreError: another process holds it for longer, or the file cannot be made.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=wait_seconds)
    except Timeout:
        raise StoreError(
            f"{path}: another {who} has been writing for more than {wait_seconds:g} s; try again after its end"
        ) from None
    except OSError as error:
        raise StoreError(
            f"{path}: cannot take the writer's lock ({error.strerror}); check the folder's rights"
        ) from None
    try:
        yield
    finally:
        lock.release()
