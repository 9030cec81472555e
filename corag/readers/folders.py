"""Finds the files of a corpus below its folders, in sorted order."""

import logging
import os
import stat
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from corag.quarantine import Rejected

logger = logging.getLogger(__name__)

_SETTLED_SECONDS = 2.0
"""A file that was written less long ago may be written again without its time showing it."""


@dataclass(frozen=True, slots=True)
class Found:
    r"""A file to read: its path or URL, and its path below the given folder in POSIX form.

    Bytes of a name that are not UTF-8 are written `\xNN`. `mark` changes when the file does; it is empty where that
    cannot be told.
    """

    source: str
    name: str
    mark: str = ""

    @property
    def suffix(self) -> str:
        """The ending of the name, in lower case."""
        return PurePosixPath(self.name).suffix.lower()


@dataclass(frozen=True, slots=True)
class Choice:
    """Which files of a folder are read: patterns match the path below the folder, suffixes are in lower case."""

    patterns: Sequence[str]
    ignore: Sequence[str]
    suffixes: Collection[str]

    def takes(self, name: str) -> bool:
        """Whether the patterns choose that path."""
        return any(_matches(name, one) for one in self.patterns) and not any(_matches(name, one) for one in self.ignore)


def files_below(folder: Path, choice: Choice) -> Iterator[Found | Rejected]:
    """The chosen files, sorted by path, and what is there but cannot be read. Hidden names are passed over.

    A link to a folder is followed where that folder is not read anyway, so that a loop of links ends.
    """
    passed_over = 0
    # Where each tree of folders really lies, to tell links that lead back into one.
    trees = [folder.resolve()]
    pending: list[tuple[Path, tuple[str, ...]]] = [(folder, ())]
    while pending:
        path, parts = pending.pop()
        name = readable_name("/".join(parts))
        try:
            if path.is_dir():
                if not parts or not path.is_symlink() or _is_new_tree(path, trees):
                    inside = sorted((one.name for one in path.iterdir() if not one.name.startswith(".")), reverse=True)
                    pending += [(path / one, (*parts, one)) for one in inside]
                continue
            mark = file_mark(path)
        except OSError as error:
            yield Rejected(str(path), None, f"cannot be read ({error.strerror or error})")
            continue
        if not choice.takes(name):
            continue
        if path.suffix.lower() not in choice.suffixes:
            passed_over += 1
        elif mark is not None:
            yield Found(str(path), name, mark)
        else:
            yield Rejected(str(path), None, "a link that leads nowhere" if path.is_symlink() else "no regular file")
    tell_passed_over(str(folder), passed_over, choice)


def tell_passed_over(where: str, count: int, choice: Choice) -> None:
    """Log how many files of other kinds were passed over, if any were."""
    if count:
        logger.info("%s: %d files of other kinds than %s were passed over", where, count, ", ".join(choice.suffixes))


def file_mark(path: Path) -> str | None:
    """What a regular file's size, times and number tell of its content; None where there is no regular file.

    A file that was written just now gets an empty mark.

    Raises:
        OSError: it cannot be looked at.
    """
    try:
        held = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(held.st_mode):
        return None
    if held.st_mtime > time.time() - _SETTLED_SECONDS:
        return ""
    return f"{held.st_size}:{held.st_mtime_ns}:{held.st_ctime_ns}:{held.st_ino}"


def readable_name(name: str) -> str:
    r"""`name` as text that any file can hold: bytes that are not UTF-8 become `\xNN`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _is_new_tree(link: Path, trees: list[Path]) -> bool:
    """Whether the link leads to a folder outside of all trees; it is one of them from then on."""
    target = link.resolve()
    if any(target.is_relative_to(one) or one.is_relative_to(target) for one in trees):
        logger.info("%s: a link to a folder that is read in its own place, or holds it, was passed over", link)
        return False
    trees.append(target)
    return True


def _matches(name: str, pattern: str) -> bool:
    return fnmatch(name, pattern) or (pattern.startswith("**/") and fnmatch(name, pattern[3:]))
