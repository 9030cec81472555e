"""How commands end: exit codes, one line on stderr, and the traceback only where it was asked for."""

import logging

import pytest
import typer

from corag.errors import IncompleteError, InputError
from flows.outcome import outcome


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    """A workspace of the test's own, and logging as it was before."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.setenv("CORAG_WORKSPACE", str(tmp_path / "ws"))
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    yield tmp_path
    root.handlers[:] = handlers
    root.setLevel(level)


def end(error, debug=False):
    """The exit code of a command whose body raises `error`."""
    with pytest.raises(typer.Exit) as ended, outcome("ingest", None, None, debug):
        raise error
    return ended.value.exit_code


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (InputError("docs: no such file;\n   check the path"), 2, "docs: no such file; check the path"),
        (IncompleteError("2 records failed"), 1, "2 records failed"),
        (KeyboardInterrupt(), 130, "run the same command again to resume"),
    ],
    ids=["cannot run", "some failed", "interrupted"],
)
def test_an_error_ends_with_its_code_and_one_line(surroundings, capsys, error, code, words):
    """The line names the command; line breaks of the message are folded; there is no traceback."""
    assert end(error) == code
    captured = capsys.readouterr()
    assert captured.err.startswith("corag ingest: ")
    assert captured.err.endswith(f"{words}\n")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_debug_keeps_the_traceback(surroundings):
    """With --debug the error itself comes through."""
    with pytest.raises(InputError), outcome("ingest", None, None, True):
        raise InputError("docs: no such file")


def test_an_unknown_error_is_not_hidden(surroundings):
    """A defect is not dressed up as a user's mistake."""
    with pytest.raises(ZeroDivisionError), outcome("ingest", None, None, False):
        raise ZeroDivisionError


def test_a_bad_override_ends_before_the_body(surroundings, capsys):
    """The configuration is checked first, whatever the command goes on to do."""
    with pytest.raises(typer.Exit) as ended, outcome("ingest", None, ["search.budgt=3"], False):
        pytest.fail("the body must not run")
    assert ended.value.exit_code == 2
    assert "budget" in capsys.readouterr().err


def test_the_effective_configuration_is_kept_with_the_reports(surroundings):
    """CFG-02: what a command really ran with can be read afterwards, overrides included."""
    with outcome("ingest", None, ["search.budget=300"], False):
        pass
    kept = (surroundings / "ws" / "reports" / "config" / "ingest.yaml").read_text(encoding="utf-8")
    assert "budget: 300" in kept


def test_a_config_that_is_not_there_is_named(surroundings, tmp_path, capsys):
    """The missing file stands in the line."""
    with pytest.raises(typer.Exit), outcome("sweep", tmp_path / "gone.yaml", None, False):
        pytest.fail("the body must not run")
    assert "gone.yaml" in capsys.readouterr().err
