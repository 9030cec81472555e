"""The file of refused records: one a line, readable whatever they hold."""

import json

import pytest

from corag.quarantine import LONGEST_EXCERPT, Rejected, write_quarantine


def test_every_refused_record_is_a_line(tmp_path):
    """In their order, with source, line, reason and record; a whole file has no line."""
    refused = [Rejected("a.jsonl", 2, "empty", "{}"), Rejected("b.md", None, "cannot be read")]
    path = write_quarantine(tmp_path, "ingest", refused)
    assert path == tmp_path / "ingest.jsonl"
    assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == [
        {"source": "a.jsonl", "line": 2, "reason": "empty", "record": "{}"},
        {"source": "b.md", "line": None, "reason": "cannot be read", "record": ""},
    ]


@pytest.mark.parametrize("record", ["two\nlines", "\u2028", "lone \ud83d", "夜🚀", "\x00"])
def test_any_record_takes_one_line_of_utf8(tmp_path, record):
    """What cannot be written is replaced, and nothing breaks the line."""
    path = write_quarantine(tmp_path, "x", [Rejected("a", 1, "odd", record)])
    (line,) = path.read_bytes().removesuffix(b"\n").split(b"\n")
    assert json.loads(line.decode("utf-8"))["record"] == record.replace("\ud83d", "?")


def test_a_long_record_is_cut(tmp_path):
    """A document of megabytes does not make the file as large."""
    path = write_quarantine(tmp_path, "x", [Rejected("a", 1, "odd", "y" * (LONGEST_EXCERPT + 1))])
    assert json.loads(path.read_text())["record"] == "y" * LONGEST_EXCERPT


def test_a_later_run_replaces_the_file(tmp_path):
    """It holds the last run only, is gone once nothing is refused, and leaves no other file behind."""
    assert write_quarantine(tmp_path, "x", []) is None
    write_quarantine(tmp_path, "x", [Rejected("a", 1, "old")] * 3)
    path = write_quarantine(tmp_path, "x", [Rejected("a", 1, "new")])
    assert [json.loads(line)["reason"] for line in path.read_text().splitlines()] == ["new"]
    assert list(tmp_path.iterdir()) == [path]
    assert write_quarantine(tmp_path, "x", []) is None
    assert not list(tmp_path.iterdir())
