"""What the benchmarks of real models share: parts over a fresh workspace, a corpus that is ingested, and questions."""

import random
from pathlib import Path

from corag.components import Components
from corag.config import load_config
from corag.ingest import ingest
from corag.questions import read_questions
from corag.readers import read_documents
from corag.settings import SAMPLE
from corag.store import ChunkStore
from corag.values import Question
from corag.workspace import Workspace


def fresh_parts(config_file: Path | None, overrides: list[str], root: Path) -> Components:
    """The parts of the configuration over an empty workspace at `root`; converted models are shared, not made again."""
    config = load_config(config_file, overrides)
    models = Workspace(Path(config.workspace).absolute()).models
    workspace = Workspace(root)
    link_models(root, models)
    return Components(config, workspace)


def link_models(root: Path, models: Path) -> None:
    """Let the workspace at `root` use the converted models of another one."""
    link = root / "models"
    if not link.is_symlink():
        models.mkdir(parents=True, exist_ok=True)
        link.symlink_to(models, target_is_directory=True)


def ingest_corpus(parts: Components, paths: list[str]) -> int:
    """Read, chunk, embed and store the corpus; how many chunks there are."""
    reading = read_documents(paths, parts.config.corpus.patterns, parts.config.corpus.ignore)
    store = ChunkStore.create(parts.store_uri, parts.config.store, parts.embedder)
    lock = parts.workspace.locks / "ingest.lock"
    return ingest(reading, parts.tokenizer, parts.config.chunking, parts.embedder, store, lock=lock).chunks


def training_questions(source: str, count: int, seed: int) -> list[Question]:
    """`count` questions with references, drawn by the seed; of the bundled sample its training part."""
    reading = read_questions(source, split="train" if source == SAMPLE else None)
    usable = [question for question in reading.questions if question.answers]
    return random.Random(seed).sample(usable, min(count, len(usable)))
