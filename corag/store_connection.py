"""The way to LanceDB, and its errors in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from corag.errors import StoreError


def connect(uri: str, where: str) -> Any:
    """The database at `uri`; a handle that sees what other processes write.

    Raises:
        StoreError: it cannot be reached.
    """
    import lancedb

    with told(where):
        # Zero: every read looks for newer versions, so that a long-lived process sees what others ingest.
        return lancedb.connect(uri, read_consistency_interval=timedelta(0))


def open_table(database: Any, name: str, where: str) -> Any | None:
    """The table `name`, or None where there is none."""
    with told(where):
        try:
            return database.open_table(name)
        except ValueError as error:
            if "not found" in str(error):
                return None
            raise


@contextmanager
def told(where: str) -> Iterator[None]:
    """Turns the store's own errors into one line."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StoreError(
            f"{where}: the vector store failed ({reason}); check the folder, its rights and the disk"
        ) from error
