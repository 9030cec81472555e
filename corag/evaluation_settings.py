"""The settings of `corag evaluate`: the baseline that needs some, and what is timed."""

from pydantic import Field, model_validator

from corag.corpus_settings import Settings


class RaptorSettings(Settings):
    """The baseline `raptor`: a tree of summaries over the chunks.

    A cluster has about `cluster_size` members, clustered in `dimensions` principal components; who belongs to it with
    a probability above `threshold` is summarised with it. A summary reads at most `input_tokens`. Of a larger corpus
    the tree has `max_chunks` chunks, every candidate of the questions first.
    """

    cluster_size: int = Field(8, ge=2)
    layers: int = Field(3, ge=1)
    dimensions: int = Field(10, ge=1)
    threshold: float = Field(0.1, gt=0, lt=1)
    input_tokens: int = Field(512, ge=16)
    max_chunks: int = Field(2000, ge=2)
    prompt: str = "{context}\n\nSummarise the text above in two sentences, with its names and figures."

    @model_validator(mode="after")
    def _has_placeholder(self) -> "RaptorSettings":
        if "{context}" not in self.prompt:
            raise ValueError("evaluation.raptor.prompt lacks {context}")
        return self


class AblationSettings(Settings):
    """The values that the ablations go through.

    Without `budgets` or `chunk_tokens` half, once and twice the configured value are taken, as far as that fits.
    `corpus_shares` are parts of the documents.
    """

    exploration_coefficients: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0)
    cost_coefficients: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3)
    budgets: tuple[int, ...] | None = None
    chunk_tokens: tuple[int, ...] | None = None
    corpus_shares: tuple[float, ...] = (0.25, 0.5, 1.0)

    @model_validator(mode="after")
    def _values_are_sound(self) -> "AblationSettings":
        for key in ("exploration_coefficients", "cost_coefficients"):
            if any(value < 0 for value in getattr(self, key)):
                raise ValueError(f"evaluation.ablations.{key} holds a negative value: {list(getattr(self, key))}")
        for key in ("budgets", "chunk_tokens"):
            if any(value < 1 for value in getattr(self, key) or ()):
                raise ValueError(f"evaluation.ablations.{key} must be at least 1: {list(getattr(self, key))}")
        if any(not 0 < share <= 1 for share in self.corpus_shares):
            raise ValueError(f"evaluation.ablations.corpus_shares must lie in (0, 1]: {list(self.corpus_shares)}")
        return self


class EvaluationSettings(Settings):
    """What `corag evaluate` compares beside its methods.

    `timed_questions` are searched and answered once more without memory, one by one, to tell the latencies.
    """

    timed_questions: int = Field(4, ge=0)
    raptor: RaptorSettings = RaptorSettings()
    ablations: AblationSettings = AblationSettings()
