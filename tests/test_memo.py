"""The memo of costly results: one SQLite file, many threads and processes."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corag.errors import StoreError
from corag.memo import Memo, key

parts = st.lists(st.one_of(st.text(max_size=6), st.integers(), st.floats(allow_nan=False)), max_size=4)


def test_values_of_each_kind_survive_a_reopening(tmp_path: Path) -> None:
    """Bytes, text and floats, NaN and infinities included, come back as they went in."""
    values = {"b": b"\x00\xff", "t": "réponse 中 \ud83d".encode("utf-8", "replace").decode(), "f": 0.1, "i": -math.inf}
    Memo(tmp_path / "deep" / "memo.sqlite").table("scores").put_many({**values, "n": math.nan})
    found = Memo(tmp_path / "deep" / "memo.sqlite").table("scores").get_many(["n", *values, "absent"])
    assert math.isnan(float(found.pop("n")))
    assert found == values


def test_tables_are_apart_and_newer_values_win() -> None:
    """One key in two tables is two results; a key written again keeps the newer value."""
    memo = Memo(None)
    first, second = memo.table("first"), memo.table("second", large=True)
    first.put_many({"k": 1.0, "other": 3})
    first.put_many({"k": 2.0})
    second.put_many({"k": "text"})
    assert first.get_many(["k", "k"]) == {"k": 2.0}
    assert second.get_many(["k"]) == {"k": "text"}
    assert (first.count(), second.count()) == (2, 1)
    assert second.size_bytes == 16 + 4
    assert memo.size_bytes > 0


def test_many_keys_in_one_call() -> None:
    """Thousands of keys are written and read in one call each; no keys is no work."""
    table = Memo(None).table("scores")
    items = {f"key {index}": float(index) for index in range(5000)}
    table.put_many(items)
    table.put_many({})
    assert table.get_many(list(items)) == items
    assert table.get_many([]) == {}


def test_a_table_name_is_no_place_for_sql() -> None:
    """A table name with anything but letters, digits and underscores is refused."""
    with pytest.raises(ValueError, match="letters, digits"):
        Memo(None).table('a"; DROP TABLE x; --')


@given(one=parts, other=parts)
def test_keys_of_different_parts_differ(one: list, other: list) -> None:
    """Two lists of parts share a key only if they are equal in values and kinds."""
    same = [(type(x), repr(x)) for x in one] == [(type(x), repr(x)) for x in other]
    assert (key(*one) == key(*other)) == same


def test_keys_may_hold_any_text() -> None:
    """Lone surrogates and NUL in a key are told apart like any other character."""
    table = Memo(None).table("scores")
    keys = ["\ud83d", "\ud83e", "\x00", ""]
    table.put_many({one: float(index) for index, one in enumerate(keys)})
    assert table.get_many(keys) == {one: float(index) for index, one in enumerate(keys)}


def test_what_is_no_memo_is_named(tmp_path: Path) -> None:
    """A file that is no SQLite database is named, with how to mend it, and left alone."""
    path = tmp_path / "memo.sqlite"
    path.write_text("not a database " * 100)
    with pytest.raises(StoreError, match=r"memo\.sqlite.*delete the file"):
        Memo(path)
    assert path.read_text().startswith("not a database")


def test_threads_share_a_memo(tmp_path: Path) -> None:
    """Eight threads that write and read at once lose nothing."""
    table = Memo(tmp_path / "memo.sqlite").table("scores")

    def work(name: int) -> None:
        for index in range(20):
            table.put_many({f"{name}/{index}": float(index)})
            table.get_many([f"{name}/{index}"])

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert table.count() == 160


def test_a_forked_child_opens_its_own_connection(tmp_path: Path) -> None:
    """A child process made by fork writes to the same memo, and the parent reads it."""
    table = Memo(tmp_path / "memo.sqlite").table("scores")
    table.put_many({"parent": 1.0})
    child = os.fork()
    if child == 0:
        table.put_many({"child": 2.0})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert table.get_many(["parent", "child"]) == {"parent": 1.0, "child": 2.0}


WRITER = """
import sys
from pathlib import Path
from corag.memo import Memo
table = Memo(Path(sys.argv[1])).table("scores")
index = 0
while index < int(sys.argv[3]):
    table.put_many({f"{sys.argv[2]}/{index}/{item}": float(item) for item in range(10)})
    index += 1
"""


def test_processes_start_and_write_at_once(tmp_path: Path) -> None:
    """Four processes that make the file and write at the same time all succeed."""
    path = tmp_path / "memo.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(name), "30"]) for name in range(4)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    assert Memo(path).table("scores").count() == 1200


def test_a_killed_writer_leaves_whole_batches(tmp_path: Path) -> None:
    """After SIGKILL the memo opens, and holds each batch of ten whole or not at all."""
    path = tmp_path / "memo.sqlite"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), "w", "1000000"])
    table = Memo(path).table("scores")
    while table.count() < 200:
        time.sleep(0.01)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    count = Memo(path).table("scores").count()
    assert count >= 200
    assert count % 10 == 0
