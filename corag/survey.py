"""Looks through a corpus for what the store does not hold yet: only files that have changed are read."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from corag.errors import InputError
from corag.file_register import Entry, FileRecord, FileRegister
from corag.quarantine import Rejected
from corag.readers import SUFFIXES, Choice, Found, Reading, corpus_files, place, read_file, two_texts
from corag.spool import Spool
from corag.values import Document

Fingerprint = Callable[[Document], str]
"""The content hash of a document: of all that its rows in the store depend on."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The corpus as it is now.

    `documents` are those that the store lacks; `contents` holds the content hash of every document, by id.
    `unreadable` are documents that may still stand where something could not be read: pruning leaves them alone.
    `read` counts records and files.
    """

    documents: Sequence[Document] | Spool
    contents: Mapping[str, str]
    rejected: Sequence[Rejected]
    read: int
    unreadable: Collection[str] = ()


def survey_documents(reading: Reading, stored: Mapping[str, str], fingerprint: Fingerprint) -> Survey:
    """The survey of documents that are at hand.

    Raises:
        InputError: two of them share an id.
    """
    contents: dict[str, str] = {}
    for document in reading.documents:
        if document.doc_id in contents:
            raise InputError(f"document id {document.doc_id!r} stands twice in the corpus; give each document its own")
        contents[document.doc_id] = fingerprint(document)
    new = [one for one in reading.documents if stored.get(one.doc_id) != contents[one.doc_id]]
    return Survey(new, contents, reading.rejected, reading.read)


def survey_files(
    paths: Sequence[str],
    choice: Choice,
    stored: Mapping[str, str],
    fingerprint: Fingerprint,
    register: FileRegister,
    keep: Spool,
    settings_mark: str,
) -> Survey:
    """The survey of files, folders and URLs, in sorted order; `stored` is the content hash of every stored document.

    A file costs a look at its size and times where `register` knows it and `stored` holds what was in it; else it is
    read, and what is new goes to `keep`. `settings_mark` must change whenever content hashes could.

    Raises:
        InputError: a path does not exist, or two documents share an id; nothing is remembered then.
    """
    run = _Run(stored, fingerprint, register, keep, settings_mark)
    for given in paths:
        for found in corpus_files(given, choice):
            run.take(found)
    register.put(run.records)
    contents = {one: content for one, (content, _) in run.seen.items()}
    return Survey(keep, contents, run.rejected, run.read, run.unreadable)


def all_kinds(patterns: Sequence[str], ignore: Sequence[str]) -> Choice:
    """The choice of files of every kind that is read."""
    return Choice(patterns, ignore, SUFFIXES)


@dataclass
class _Run:
    """A survey on its way."""

    stored: Mapping[str, str]
    fingerprint: Fingerprint
    register: FileRegister
    keep: Spool
    settings_mark: str
    seen: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Per id the content hash, and where the document stands."""
    rejected: list[Rejected] = field(default_factory=list)
    records: list[FileRecord] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)
    read: int = 0

    def take(self, found: Found | Rejected) -> None:
        """One more file, or something that cannot be read."""
        if isinstance(found, Rejected):
            self._refuse(found)
            self.unreadable.update(one for record in self.register.below(found.source) for one in record.doc_ids)
            return
        known = self.register.get(found.source)
        mark = f"{self.settings_mark}|{found.name}|{found.mark}" if found.mark else ""
        if known is not None and mark and known.mark == mark and self._holds(known):
            for entry in known.entries:
                self._see(entry, found.source)
            for one in known.rejected:
                self._refuse(one)
            self.unreadable.update(known.former)
        else:
            self._read(found, mark, known)

    def _holds(self, known: FileRecord) -> bool:
        return all(self.stored.get(entry.doc_id) == entry.content for entry in known.entries)

    def _read(self, found: Found, mark: str, known: FileRecord | None) -> None:
        entries: list[Entry] = []
        rejected: list[Rejected] = []
        for one, line in read_file(found):
            if isinstance(one, Rejected):
                rejected.append(one)
                self._refuse(one)
                continue
            entry = Entry(one.doc_id, self.fingerprint(one), line)
            entries.append(entry)
            if self._see(entry, found.source) and self.stored.get(entry.doc_id) != entry.content:
                self.keep.add(one)
        former: set[str] = set()
        if rejected:
            former = (known.doc_ids if known else {found.name}) - {entry.doc_id for entry in entries}
            self.unreadable |= former
        self.records.append(FileRecord(found.source, mark, tuple(entries), tuple(rejected), tuple(sorted(former))))

    def _see(self, entry: Entry, source: str) -> bool:
        """Whether the document is met for the first time; the same one elsewhere is refused there."""
        where = place(source, entry.line)
        if entry.doc_id not in self.seen:
            self.seen[entry.doc_id] = (entry.content, where)
            self.read += 1
            return True
        content, first = self.seen[entry.doc_id]
        if content != entry.content:
            raise two_texts(entry.doc_id, first, where)
        self._refuse(Rejected(where, None, f"the same record as {first}", entry.doc_id))
        return False

    def _refuse(self, rejected: Rejected) -> None:
        self.rejected.append(rejected)
        self.read += 1
