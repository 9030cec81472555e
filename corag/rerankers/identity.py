"""How a reranker names itself in memo keys."""

ROUNDING = 6
"""Digits kept of a score: float32 models differ by about 1e-7 with the composition of a batch."""


def identity_of(kind: str, model: str, revision: str, max_length: int | str, dtype: str) -> str:
    """One line that changes whenever scores may change."""
    return f"{kind} {model}@{revision} max_length={max_length} {dtype}"
