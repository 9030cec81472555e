"""Builds the parts that a configuration names, each at most once and only when first needed."""

import logging
from functools import cached_property
from typing import TYPE_CHECKING

from corag.agents import fixed_configuration
from corag.errors import StoreError
from corag.generation_memo import GenerationMemo
from corag.order_scorer import PairCount
from corag.settings import Config
from corag.workspace import Workspace

if TYPE_CHECKING:
    from corag.embedders import CachedEmbedder
    from corag.generators import Generator
    from corag.memo import Memo
    from corag.order_scorer import OrderScorer
    from corag.rerankers import Reranker
    from corag.store import ChunkStore
    from corag.tokens import Tokenizer
    from corag.values import Chunk, Configuration

logger = logging.getLogger(__name__)


class Components:
    """The parts of one configuration in one workspace. Nothing is loaded before it is used."""

    def __init__(self, config: Config, workspace: Workspace) -> None:
        self.config = config
        self.workspace = workspace
        self.pairs = PairCount()
        self._rerankers: dict[str, Reranker] = {}

    def sibling(self, config: Config, workspace: Workspace | None = None) -> "Components":
        """The parts of another configuration with the same models: what is loaded here is not loaded again.

        It has the same memory. In another workspace it has a store of its own, and rerankers that read that store.
        """
        other = Components(config, workspace or self.workspace)
        other.memo, other.tokenizer, other.embedder = self.memo, self.tokenizer, self.embedder
        other.generations, other.pairs = self.generations, self.pairs
        if "generator" in self.__dict__:
            other.generator = self.generator
        if workspace is None:
            other.store, other.chunks, other._rerankers = self.store, self.chunks, self._rerankers
        return other

    @cached_property
    def memo(self) -> "Memo":
        """Remembered scores, generations and embeddings."""
        from corag.memo import Memo

        return Memo(self.workspace.memo)

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The generator's tokenizer: what costs and budgets are counted with."""
        from corag.tokens import generator_tokenizer

        return generator_tokenizer(self.config.generator, self.workspace.models)

    @cached_property
    def embedder(self) -> "CachedEmbedder":
        """The embedder, with its memory."""
        from corag.embedders import CachedEmbedder, load_embedder

        logger.info("loading the embedder (%s)", self.config.embedder.kind)
        return CachedEmbedder(load_embedder(self.config.embedder), self.memo)

    @cached_property
    def generator(self) -> "Generator":
        """The language model."""
        from corag.generators import load_generator

        logger.info("loading the generator (%s)", self.config.generator.kind)
        return load_generator(self.config.generator, self.workspace.models)

    @cached_property
    def generations(self) -> GenerationMemo:
        """The language model with its memory; it is loaded at the first prompt that is not remembered."""
        from corag.generators import generator_identity

        identity = generator_identity(self.config.generator)
        return GenerationMemo(identity, lambda: self.generator, self.memo.table("generations"))

    @property
    def store_uri(self) -> str:
        """Where the vector store is."""
        return self.config.store.uri or str(self.workspace.lancedb)

    @cached_property
    def store(self) -> "ChunkStore":
        """The filled vector store.

        Raises:
            StoreError: it is empty or was filled by another embedder.
        """
        from corag.store import ChunkStore

        store = ChunkStore.open(self.store_uri, self.config.store, self.embedder)
        if not store.count:
            raise StoreError(f"{self.store_uri}: the store holds no chunks; run `corag ingest` first")
        return store

    @cached_property
    def chunks(self) -> "list[Chunk]":
        """Every chunk of the store, by id."""
        return self.store.all_chunks()

    def reranker(self, name: str) -> "Reranker":
        """The configured reranker of that name, loaded at its first use."""
        from corag.rerankers import load_reranker

        if name not in self._rerankers:
            settings = next(one for one in self.config.rerankers if one.name == name)
            logger.info("loading the reranker %s (%s)", name, settings.kind)
            self._rerankers[name] = load_reranker(
                settings,
                embedder=lambda: self.embedder,
                generator=lambda: self.generator,
                corpus=lambda: [chunk.text for chunk in self.chunks],
            )
        return self._rerankers[name]

    def scorers(self) -> "dict[str, OrderScorer]":
        """A fresh scorer over each reranker's memory: one a batch of questions, so that none grows for ever."""
        from corag.order_scorer import OrderScorer

        table = self.memo.table("scores")
        return {
            one.name: OrderScorer(self.reranker(one.name), table, self.config.search.normalize, self.pairs)
            for one in self.config.rerankers
        }

    @cached_property
    def fixed(self) -> "Configuration":
        """The configuration used where no agent chooses."""
        names = [reranker.name for reranker in self.config.rerankers]
        return fixed_configuration(self.config.search.fixed, names)
