"""Embeds over the configured runner: texts and vectors travel as files of the workspace, one task a piece."""

import json
import shutil
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.task_runners import TaskRunner

from corag.components import Components
from corag.embedders import CachedEmbedder, Embedder, Vectors, load_embedder
from corag.settings import EmbedderSettings, RunnerSettings
from flows.runners import run_pieces, started


@contextmanager
def embedder_on_runner(parts: Components) -> Iterator[CachedEmbedder]:
    """The configuration's embedder, run where `runner` says; one worker in threads is this very process."""
    settings = parts.config.runner
    if settings.kind == "threads" and settings.workers == 1:
        yield parts.embedder
        return
    folder = parts.workspace.folder("cache", "pieces", uuid.uuid4().hex)
    try:
        with started(settings) as runner:
            spread = SpreadEmbedder(parts.embedder.inner, parts.config.embedder, runner, settings, folder)
            yield CachedEmbedder(spread, parts.memo, settings.workers * settings.piece_texts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class SpreadEmbedder:
    """`inner` in as many places as the runner has workers; `folder` must be seen by all of them."""

    def __init__(
        self,
        inner: Embedder,
        embedder: EmbedderSettings,
        runner: TaskRunner[Any],
        settings: RunnerSettings,
        folder: Path,
    ) -> None:
        self.name, self.revision = inner.name, inner.revision
        self.dimension, self.max_length = inner.dimension, inner.max_length
        self.truncated = 0
        self._embedder, self._runner, self._settings, self._folder = embedder, runner, settings, folder

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors [n, d] of length 1, in the order of `texts`."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        size = self._settings.piece_texts
        pieces: list[dict[str, Any]] = []
        for start in range(0, len(texts), size):
            stem = self._folder / f"{len(pieces):06d}"
            stem.with_suffix(".json").write_text(json.dumps(list(texts[start : start + size])), encoding="ascii")
            pieces.append({"settings": self._embedder.model_dump(mode="json"), "stem": str(stem)})
        self.truncated += sum(run_pieces(embed_piece, pieces, self._runner, self._settings.retries))
        return np.concatenate([np.load(f"{piece['stem']}.npy") for piece in pieces])


@task(cache_policy=NO_CACHE, persist_result=False)
def embed_piece(settings: dict[str, Any], stem: str) -> int:
    """Embed the texts of `stem`.json into `stem`.npy; how many of them were cut. Running it twice does no harm."""
    embedder = _embedder(EmbedderSettings.model_validate(settings))
    texts = json.loads(Path(f"{stem}.json").read_text("ascii"))
    before = embedder.truncated
    vectors = embedder.embed(texts)
    cut = embedder.truncated - before
    aside = Path(f"{stem}.{uuid.uuid4().hex}.npy")
    np.save(aside, vectors)
    aside.replace(f"{stem}.npy")
    return cut


_own = threading.local()
"""What a thread has loaded: the count of cut texts belongs to one thread at a time, and goes with it."""


def _embedder(settings: EmbedderSettings) -> Embedder:
    """The embedder of this thread, loaded at its first piece."""
    if getattr(_own, "settings", None) != settings:
        _own.settings, _own.embedder = settings, load_embedder(settings)
    embedder: Embedder = _own.embedder
    return embedder
