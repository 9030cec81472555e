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


class EvaluationSettings(Settings):
    """What `corag evaluate` compares beside its methods.

    `timed_questions` are searched and answered once more without memory, one by one, to tell the latencies.
    """

    timed_questions: int = Field(4, ge=0)
    raptor: RaptorSettings = RaptorSettings()
