"""The arrows between the packages: flows → training → corag, and heavy libraries only where they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent
HEAVY = ("torch", "transformers", "lancedb", "prefect", "mlflow", "pandas", "FlagEmbedding", "lightning")


def imported(path):
    """The top-level packages that a file imports anywhere."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [("corag", {"training", "flows", "prefect", "mlflow"}), ("training", {"flows", "prefect"})],
)
def test_dependencies_point_one_way(package, forbidden):
    """The library knows nothing of the agent's training, of flows, of Prefect or of MLflow."""
    for path in sorted((REPO / package).rglob("*.py")):
        assert not imported(path) & forbidden, path


def test_only_the_registry_imports_mlflow():
    """Everything else gets an agent or a tracking connection handed in."""
    users = {
        path.relative_to(REPO).as_posix()
        for package in ("corag", "training", "flows")
        for path in (REPO / package).rglob("*.py")
        if "mlflow" in imported(path)
    }
    assert users
    assert all(user.startswith("training/registry/") for user in users)


def test_help_imports_nothing_heavy():
    """`corag --help` answers at once."""
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom flows.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPO, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["corag", "training", "flows"])
def test_no_file_holds_more_than_one_idea(package):
    """A file of more than 320 lines is to be split."""
    for path in sorted((REPO / package).rglob("*.py")):
        assert len(path.read_text(encoding="utf-8").split("\n")) <= 320, path
