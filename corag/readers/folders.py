"""Finds the files of a corpus below its folders, in sorted order."""

import logging
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from corag.quarantine import Rejected

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    r"""A file, and its path below the folder in POSIX form; bytes of a name that are not UTF-8 are written `\xNN`."""

    path: Path
    name: str


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
            present = path.is_file()
        except OSError as error:
            yield Rejected(str(path), None, f"cannot be read ({error.strerror or error})")
            continue
        if not choice.takes(name):
            continue
        if path.suffix.lower() not in choice.suffixes:
            passed_over += 1
        elif present:
            yield Found(path, name)
        else:
            yield Rejected(str(path), None, "a link that leads nowhere" if path.is_symlink() else "no regular file")
    if passed_over:
        kinds = ", ".join(sorted(choice.suffixes))
        logger.info("%s: %d files of other kinds than %s were passed over", folder, passed_over, kinds)


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
