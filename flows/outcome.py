"""Turns how a command ended into its exit code and, where it failed, into one clear line."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

EXIT_INCOMPLETE = 1
EXIT_FAILED = 2
EXIT_INTERRUPTED = 130

Call = tuple[str | None, list[str]]
"""What every flow takes first: the configuration file and the overrides."""


@contextmanager
def outcome(command: str, config: Path | None, overrides: Sequence[str] | None, debug: bool) -> Iterator[Call]:
    """Prepare the command's surroundings, yield its call, and map errors to exit codes.

    The configuration is checked before anything heavy is imported, and kept beside the reports. With `debug` an
    error keeps its traceback.
    """
    from corag.errors import CoragError, IncompleteError
    from flows.runtime import open_config, set_up_logging, set_up_prefect

    call: Call = (str(config.absolute()) if config else None, list(overrides or ()))
    set_up_logging(debug)
    _end_tidily_when_terminated()
    try:
        _, workspace = open_config(*call, command)
        set_up_prefect(workspace, debug)
        yield call
    except CoragError as error:
        if debug:
            raise
        code = EXIT_INCOMPLETE if isinstance(error, IncompleteError) else EXIT_FAILED
        # A summary names its stage already.
        _end(f"corag {command}: {str(error).removeprefix(f'{command}: ')}", code)
    except KeyboardInterrupt:
        _end(f"corag {command}: interrupted; run the same command again to resume", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of stdout left (as `head` does); there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end_tidily_when_terminated() -> None:
    """Let SIGTERM end the command as Ctrl-C does: what it started, such as Prefect's embedded server, ends with it."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, interrupt)


def _end(message: str, code: int) -> None:
    import typer

    typer.echo(" ".join(message.split()), err=True)
    raise typer.Exit(code)
