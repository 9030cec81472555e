"""What the benchmarks of real models share: parts over a fresh workspace, and questions."""

import random
from pathlib import Path

from corag.components import Components
from corag.config import load_config
from corag.questions import read_questions
from corag.settings import SAMPLE
from corag.values import Question
from corag.workspace import Workspace

Call = tuple[str | None, list[str]]
"""What a flow is called with: the configuration's file, and overrides."""


def fresh_parts(config_file: Path | None, overrides: list[str], root: Path) -> Components:
    """The parts of the configuration over an empty workspace at `root`; converted models are shared, not made again."""
    config = load_config(config_file, overrides)
    models = Workspace(Path(config.workspace).absolute()).models
    workspace = Workspace(root)
    link_models(root, models)
    return Components(config, workspace)


def open_bench(call: Call, command: str) -> Components:
    """The parts of the configuration in a workspace of the benchmark's own, ready for the flows; models are shared."""
    from flows.runtime import open_components, set_up_logging, set_up_prefect

    set_up_logging(debug=False)
    parts = open_components(*call, command)
    link_models(
        parts.workspace.root, Path(load_config(Path(call[0]) if call[0] else None, []).workspace).absolute() / "models"
    )
    set_up_prefect(parts.workspace)
    return parts


def link_models(root: Path, models: Path) -> None:
    """Let the workspace at `root` use the converted models of another one."""
    link = root / "models"
    if not link.is_symlink():
        models.mkdir(parents=True, exist_ok=True)
        link.symlink_to(models, target_is_directory=True)


def training_questions(source: str, count: int, seed: int) -> list[Question]:
    """`count` questions with references, drawn by the seed; of the bundled sample its training part."""
    reading = read_questions(source, split="train" if source == SAMPLE else None)
    usable = [question for question in reading.questions if question.answers]
    return random.Random(seed).sample(usable, min(count, len(usable)))
