"""Files behind a URL (`s3://…`, `memory://…`, `file://…`), listed and fetched through fsspec."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corag.errors import InputError
from corag.quarantine import Rejected
from corag.readers.folders import Choice, Found, tell_passed_over

_LONGEST_REASON = 200


def is_url(given: str) -> bool:
    """Whether `given` names something behind a URL."""
    return "://" in given


def remote_files(url: str, choice: Choice) -> Iterator[Found | Rejected]:
    """The chosen files below `url`, or the one file that it names, sorted by path. Hidden names are passed over.

    Raises:
        InputError: there is nothing there, it is of no known kind, or it cannot be reached.
    """
    with _told(url):
        files, root = _file_system(url)
        # Object stores know no folders: what lies below a prefix is all that tells of one.
        listed: dict[str, Any] = files.find(root, detail=True)
        single = list(listed) == [root]
        found = [
            Found(files.unstrip_protocol(path), _name(path, root, single), str(files.ukey(path)))
            for path in sorted(listed)
        ]
    if not found:
        raise InputError(f"{url}: no such file or folder, or an empty one; check corpus.paths")
    if single and found[0].suffix not in choice.suffixes:
        raise InputError(f"{url}: files of this kind are not read; convert it to one of {', '.join(choice.suffixes)}")
    passed_over = 0
    for one in found:
        hidden = any(part.startswith(".") for part in one.name.split("/"))
        if not single and (hidden or not choice.takes(one.name)):
            continue
        if one.suffix in choice.suffixes:
            yield one
        else:
            passed_over += 1
    tell_passed_over(url, passed_over, choice)


@contextmanager
def fetched(url: str) -> Iterator[Path]:
    """A copy of the file at `url` on this machine, under its own name, for as long as the context lasts.

    Raises:
        OSError: it cannot be fetched.
    """
    with tempfile.TemporaryDirectory(prefix="corag-") as folder:
        try:
            files, path = _file_system(url)
            copy = Path(folder) / (path.rstrip("/").rsplit("/", 1)[-1] or "file")
            files.get_file(path, str(copy))
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - each protocol's library raises errors of its own
            raise OSError(_reason(error)) from None
        yield copy


def _file_system(url: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    files, path = url_to_fs(url)
    return files, path.rstrip("/") or path


def _name(path: str, root: str, single: bool) -> str:
    return path.rsplit("/", 1)[-1] if single else path.removeprefix(root).lstrip("/")


@contextmanager
def _told(url: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise InputError(f"{url}: needs one more package ({_reason(error)})") from None
    except Exception as error:  # noqa: BLE001 - each protocol's library raises errors of its own
        raise InputError(f"{url}: cannot be reached ({_reason(error)}); check corpus.paths and your access") from None


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_REASON]
