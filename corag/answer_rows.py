"""The answer row: one line a question, as it stands in the answers file."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Status = Literal["answered", "no_context", "failed"]


class Citation(BaseModel):
    """A chunk that stood in the prompt: character offsets into the document's text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    chunk_id: str
    doc_id: str
    start: int
    end: int


class Latency(BaseModel):
    """Milliseconds per stage: the wall time of a batch in the stage divided by the batch's questions.

    Waiting for the next stage is not counted: with stages that overlap, the sum is less than what passed on the clock.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    embed: float = 0.0
    retrieve: float = 0.0
    search: float = 0.0
    generate: float = 0.0


class AnswerRow(BaseModel):
    """One answered, empty-handed or failed question.

    `answer` is null unless `status` is `answered`; `error` is one line where it is `failed`, and where a question
    has `no_context` it says why. `citations` stand in the order in which the prompt used them. `reused` marks an answer
    of an earlier night whose grounds did not change.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    qid: str
    question: str
    answer: str | None = None
    status: Status
    error: str | None = None
    citations: tuple[Citation, ...] = ()
    context_tokens: int = Field(0, ge=0)
    prompt_tokens: int = Field(0, ge=0)
    answer_tokens: int = Field(0, ge=0)
    finish_reason: str | None = None
    budget: int
    reranker: str
    iterations: int
    cost_coefficient: float
    exploration_coefficient: float
    benefit: float | None = None
    config_source: Literal["agent", "fixed"]
    agent_version: str | None = None
    generator: str
    latency_ms: Latency = Latency()
    reused: bool = False
