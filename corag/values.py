"""The plain values that travel between the rooms, from a file to an answer row."""

from collections.abc import Mapping
from dataclasses import dataclass, field

ChunkOrder = tuple[int, ...]
"""An ordered tuple of distinct candidate indices; the empty tuple is the order without any chunk."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text of the corpus. `metadata` holds every field that the reader found beside the text.

    `headings` are those below the title: where in the text each begins, and its words.
    """

    doc_id: str
    title: str
    text: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    headings: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A contiguous span of a document: `document.text[start:end] == text`; `tokens` by the generator's tokenizer."""

    chunk_id: str
    doc_id: str
    position: int
    start: int
    end: int
    text: str
    tokens: int
    title: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that the vector search returned for a query, with its cosine similarity in [-1, 1]."""

    chunk: Chunk
    similarity: float

    @property
    def cost(self) -> int:
        """Tokens that the chunk takes from the budget."""
        return self.chunk.tokens


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `answers` and `relevant_ids` are empty where they are not known."""

    qid: str
    question: str
    answers: tuple[str, ...] = ()
    relevant_ids: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, order=True)
class Configuration:
    """What the agent chooses per question (paper §5): a reranker and the settings of the tree search."""

    reranker: str
    iterations: int
    cost_coefficient: float
    exploration_coefficient: float


@dataclass(frozen=True, slots=True)
class Prompt:
    """The two messages sent to the generator, before its chat template."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class Generation:
    """What the generator returned for one prompt. `error` is a one-line reason where there is no text."""

    text: str
    prompt_tokens: int
    answer_tokens: int
    finish_reason: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One (query, configuration) tried: the order it chose and what the answer scored.

    `rouge_l` is None where the trial failed; `error` then says why and `failed_stage` where (`retrieve`, `search`,
    `generate`, or `trial` where something else raised). An error is never a score. `scored` counts the distinct
    orders that this trial alone would score.
    """

    qid: str
    configuration: Configuration
    chunk_ids: tuple[str, ...]
    context_tokens: int
    benefit: float
    answer: str | None
    rouge_l: float | None
    scored: int = 0
    error: str | None = None
    failed_stage: str | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """The best-config label of one training question (paper §5.2), or the reason why there is none.

    `kept` is False for a dropped question; `reason` then names the rule that dropped it. `part` says whether the
    question is for training or held out.
    """

    qid: str
    kept: bool
    reason: str
    configuration: Configuration | None = None
    rouge_l: float | None = None
    runner_up: str | None = None
    runner_up_rouge_l: float | None = None
    gap: float | None = None
    context_tokens: int | None = None
    confidence: float | None = None
    part: str = "train"
