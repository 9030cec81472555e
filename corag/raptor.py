"""The baseline RAPTOR: chunks are clustered and summarised, summaries again; retrieval looks at the whole tree at once.

After Sarthi et al. 2024 (the collapsed tree). Not covered: its reduction by UMAP (principal components take its place)
and its choice of the number of clusters by BIC (it follows from the size of a cluster).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from corag.embedders.base import Vectors, valid_rows
from corag.evaluation_rows import Context
from corag.evaluation_settings import RaptorSettings
from corag.generation_memo import GenerationMemo
from corag.prompts import JOINT
from corag.retrieval import Retrieval
from corag.tokens import Tokenizer
from corag.values import Chunk, Prompt

RERANKER = "none"
"""What stands for the reranker in rows of this method."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Every node of the tree, leaves first, with its vector [n, d] of length 1.

    A summary is a chunk without a document. summaries: how many there are; failed: clusters that could not be
    summarised, whose members are in the tree all the same.
    """

    nodes: tuple[Chunk, ...]
    vectors: Vectors
    summaries: int
    failed: int


def build_tree(
    chunks: Sequence[Chunk],
    embed: Callable[[Sequence[str]], Vectors],
    tokenizer: Tokenizer,
    generations: GenerationMemo,
    settings: RaptorSettings,
    *,
    system: str,
    seed: int,
) -> Tree:
    """The tree over `chunks`: level by level, until one summary is left or `layers` are made.

    Chunks without a usable vector are left out. The same seed gives the same tree.
    """
    level, vectors = _usable(list(chunks), embed([chunk.text for chunk in chunks]))
    nodes, held, failed = list(level), [vectors], 0
    for layer in range(1, settings.layers + 1):
        if len(level) < 2:
            break
        groups = cluster(vectors, settings, seed)
        prompts = [
            Prompt(system, settings.prompt.replace("{context}", _readable(level, vectors, group, settings)))
            for group in groups
        ]
        told = generations.generate(prompts)
        texts = [one.text for one in told if one.error is None and one.text.strip()]
        failed += len(told) - len(texts)
        made = [
            Chunk(f"raptor:{layer}:{place}", "", place, 0, len(text), text, tokens)
            for place, (text, tokens) in enumerate(zip(texts, tokenizer.counts(texts), strict=True))
        ]
        if not made:
            break
        level, vectors = _usable(made, embed(texts))
        nodes += level
        held.append(vectors)
        if len(groups) == 1:
            break
    leaves = sum(bool(node.doc_id) for node in nodes)
    return Tree(tuple(nodes), np.concatenate(held), len(nodes) - leaves, failed)


def cluster(vectors: Vectors, settings: RaptorSettings, seed: int) -> list[list[int]]:
    """The members of each cluster of a Gaussian mixture over `vectors` [n, d]; one may belong to several, none to no.

    Clusters without a member are left out; members stand by descending probability.
    """
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

    count = max(1, round(len(vectors) / settings.cluster_size))
    if count == 1:
        return [list(range(len(vectors)))]
    dimensions = min(settings.dimensions, *vectors.shape)
    points = PCA(dimensions, random_state=seed).fit_transform(vectors.astype(np.float64))
    mixture = GaussianMixture(count, covariance_type="diag", reg_covar=1e-4, random_state=seed).fit(points)
    shares = mixture.predict_proba(points)
    groups = []
    for place in range(count):
        own = shares[:, place]
        belongs = (own > settings.threshold) | (shares.argmax(axis=1) == place)
        groups.append(sorted(np.flatnonzero(belongs).tolist(), key=lambda member: (-own[member], member)))
    return [group for group in groups if group]


def tree_contexts(tree: Tree, retrievals: Sequence[Retrieval], budget: int) -> list[Context]:
    """The context of each question: the nodes nearest to its vector, leaves and summaries alike, within the budget."""
    return [_context(tree, retrieval, budget) for retrieval in retrievals]


def _context(tree: Tree, retrieval: Retrieval, budget: int) -> Context:
    if retrieval.vector is None:
        return Context((), RERANKER, 0, retrieval.error or "no vector of the question")
    similarities = tree.vectors @ retrieval.vector
    chosen: list[Chunk] = []
    texts: set[str] = set()
    left = budget
    for place in np.argsort(-similarities, kind="stable"):
        node = tree.nodes[place]
        if node.tokens <= left and node.text not in texts:
            chosen.append(node)
            texts.add(node.text)
            left -= node.tokens
    return Context(tuple(chosen), RERANKER)


def tree_chunks(chunks: Sequence[Chunk], retrievals: Sequence[Retrieval], most: int, seed: int) -> list[Chunk]:
    """The chunks to build a tree of: all of them, or of a large corpus every candidate and others drawn by the seed."""
    if len(chunks) <= most:
        return list(chunks)
    wanted = {one.chunk.chunk_id: one.chunk for retrieval in retrievals for one in retrieval.candidates}
    others = [chunk for chunk in chunks if chunk.chunk_id not in wanted]
    drawn = np.random.default_rng(seed).permutation(len(others))[: max(0, most - len(wanted))]
    kept = [*wanted.values(), *(others[place] for place in drawn)]
    return sorted(kept, key=lambda chunk: chunk.chunk_id)


def _usable(chunks: list[Chunk], vectors: Vectors) -> tuple[list[Chunk], Vectors]:
    rows = np.flatnonzero(valid_rows(vectors))
    return [chunks[row] for row in rows], vectors[rows]


def _readable(level: Sequence[Chunk], vectors: Vectors, group: Sequence[int], settings: RaptorSettings) -> str:
    """The texts of a cluster, those nearest to its middle first, as far as a summary reads."""
    middle = vectors[list(group)].mean(axis=0)
    ranked = sorted(group, key=lambda member: (-float(vectors[member] @ middle), member))
    texts: list[str] = []
    left = settings.input_tokens
    for member in ranked:
        if level[member].tokens <= left or not texts:
            texts.append(level[member].text)
            left -= level[member].tokens
    return JOINT.join(texts)
