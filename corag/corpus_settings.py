"""The settings of what turns a corpus into a searchable store: reading, chunking, embedding, storing, retrieving."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

SAMPLE = "sample"
"""Stands for the bundled sample wherever a corpus or questions path is asked for."""


class Settings(BaseModel):
    """Base: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CorpusSettings(Settings):
    """Where the documents are."""

    paths: tuple[str, ...] = (SAMPLE,)
    patterns: tuple[str, ...] = ("**/*",)
    ignore: tuple[str, ...] = ()


class ChunkingSettings(Settings):
    """How documents are cut, in tokens of the generator's tokenizer."""

    chunk_tokens: int = Field(128, ge=1)
    chunk_overlap: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> "ChunkingSettings":
        if self.chunk_overlap >= self.chunk_tokens:
            raise ValueError(
                f"chunk_overlap ({self.chunk_overlap}) must be smaller than chunk_tokens ({self.chunk_tokens})"
            )
        return self


class EmbedderSettings(Settings):
    """The model that turns texts into vectors. `model` is a folder or hub name; null takes the packaged one."""

    kind: Literal["minilm", "static", "flag"] = "minilm"
    model: str | None = None
    max_length: int = Field(512, ge=8)
    batch_size: int = Field(32, ge=1)
    prepend_title: bool = False


class StoreSettings(Settings):
    """The LanceDB table. `uri` defaults to `workspace/lancedb`; `full_text` keeps a full-text index."""

    uri: str | None = None
    table: str = "chunks"
    index_above_rows: int = Field(100_000, ge=256)
    keep_versions: int = Field(10, ge=1)
    full_text: bool = True


class RetrievalSettings(Settings):
    """How candidates are found."""

    mode: Literal["vector", "full-text", "hybrid"] = "vector"
    top_k: int = Field(8, ge=1)
    filter: dict[str, str] = {}


class RunnerSettings(Settings):
    """Where the pieces of large work run: threads here, or the processes of a Dask or Ray cluster.

    Without an `address` a cluster of `workers` processes is started on this machine. Workers elsewhere must see the
    workspace and the models under the same paths. A piece of embedding has `piece_texts` texts, one of a sweep
    `sweep.batch_questions` questions; one that fails with its worker is tried `retries` times more.
    """

    kind: Literal["threads", "dask", "ray"] = "threads"
    workers: int = Field(1, ge=1)
    address: str | None = None
    piece_texts: int = Field(2048, ge=1)
    retries: int = Field(2, ge=0)
