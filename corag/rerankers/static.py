"""Static signal: the cosine under wordllama's mean-pooled word-piece vectors; some hundred texts a second."""

from corag.rerankers.dense import CosineReranker


def load_static(name: str, batch_pairs: int) -> CosineReranker:
    """The reranker over the packaged wordllama. Its vectors know no word order, so neither do its scores.

    Raises:
        ModelError: the package is missing or damaged.
    """
    from corag.embedders.static import StaticEmbedder

    return CosineReranker(name, "static", StaticEmbedder(batch_pairs), batch_pairs)
