"""What a configured path stands for: a folder, a file, a URL, or the bundled sample."""

from collections.abc import Iterator
from pathlib import Path

from corag.errors import InputError
from corag.quarantine import Rejected
from corag.readers.folders import Choice, Found, file_mark, files_below, readable_name
from corag.readers.remote import is_url, remote_files
from corag.settings import SAMPLE

SAMPLE_CORPUS = Path(__file__).parent.parent / "sample" / "corpus"


def corpus_files(given: str, choice: Choice) -> Iterator[Found | Rejected]:
    """The files that `given` stands for, sorted by path; of a folder those that are chosen.

    Raises:
        InputError: there is no such thing, or a file of a kind that is not read.
    """
    if is_url(given) and not given.startswith("file://"):
        yield from remote_files(given, choice)
        return
    path = SAMPLE_CORPUS if given == SAMPLE else Path(_local_path(given))
    try:
        if path.is_dir():
            yield from files_below(path, choice)
            return
        present, mark = path.exists(), file_mark(path)
    except OSError as error:
        raise InputError(f"{given}: cannot be read ({error.strerror}); check its rights") from None
    if not present:
        raise InputError(f"{given}: no such file or folder; check corpus.paths")
    if mark is None:
        raise InputError(f"{given}: is neither a file nor a folder; check corpus.paths")
    if path.suffix.lower() not in choice.suffixes:
        raise InputError(f"{path}: files of this kind are not read; convert it to one of {', '.join(choice.suffixes)}")
    yield Found(str(path), readable_name(path.name), mark)


def _local_path(given: str) -> str:
    if not is_url(given):
        return given
    from fsspec.implementations.local import LocalFileSystem

    return str(LocalFileSystem._strip_protocol(given))
