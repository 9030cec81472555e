"""The settings of every stage as frozen pydantic models; their defaults are the default configuration."""

from typing import Literal

from pydantic import Field, model_validator

from corag.answer_limits import Deadline
from corag.corpus_settings import (
    SAMPLE,
    ChunkingSettings,
    CorpusSettings,
    EmbedderSettings,
    RetrievalSettings,
    RunnerSettings,
    Settings,
    StoreSettings,
)
from corag.evaluation_settings import EvaluationSettings


class QuestionSettings(Settings):
    """Where the questions of each stage are."""

    train: str = SAMPLE
    held_out: str = SAMPLE
    train_limit: int | None = Field(None, ge=1)
    held_out_limit: int | None = Field(None, ge=1)


class RerankerSettings(Settings):
    """One reranker or embedded signal.

    `flag` and `flag-llm` are cross-encoders read by FlagEmbedding from `model` (folder or hub name);
    the others are signals computed with the embedded models.
    """

    name: str = Field(min_length=1)
    kind: Literal["flag", "flag-llm", "dense", "late-interaction", "likelihood", "static", "lexical"]
    model: str | None = None
    max_length: int | None = Field(None, ge=16)
    fp16: bool = False
    trust_remote_code: bool = False
    batch_pairs: int = Field(32, ge=1)


class FixedConfiguration(Settings):
    """The configuration used where no agent chooses. An empty reranker means the first of the list."""

    reranker: str = ""
    iterations: int = Field(10, ge=1)
    cost_coefficient: float = Field(0.1, ge=0)
    exploration_coefficient: float = Field(2.4, ge=0)


class SearchSettings(Settings):
    """How the chunk order is found (METHOD: search)."""

    strategy: Literal["mcts", "exhaustive", "branch-and-bound", "greedy", "document-order", "shuffle", "naive"] = "mcts"
    budget: int = Field(256, ge=1)
    backup: Literal["best", "all"] = "all"
    selection: Literal["uct", "best-first"] = "best-first"
    normalize: Literal["per_query", "none"] = "per_query"
    max_chunks: int = Field(5, ge=1, le=5)
    fixed: FixedConfiguration = FixedConfiguration()


class GeneratorSettings(Settings):
    """The language model. `transformers` runs in process; `openai` is any server with that API."""

    kind: Literal["transformers", "openai"] = "transformers"
    model: str | None = None
    tokenizer: str | None = None
    chat_template: Literal["auto", "own", "plain"] = "auto"
    base_url: str = "http://127.0.0.1:8000/v1"
    api_key_env: str = "OPENAI_API_KEY"
    context_length: int = Field(2048, ge=64)
    max_answer_tokens: int = Field(40, ge=1)
    batch_size: int = Field(16, ge=1)
    concurrency: int = Field(16, ge=1)
    timeout_seconds: float = Field(120.0, gt=0)
    max_retries: int = Field(5, ge=0)
    breaker_pause_seconds: float = Field(1.0, gt=0)
    give_up_seconds: float = Field(300.0, gt=0)
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"


class PromptSettings(Settings):
    """What the generator is told; `{context}` and `{question}` are filled in."""

    system: str = "You are a helpful assistant."
    user: str = "{context}\n\nUsing only the text above, answer in one sentence with its words: {question}"
    user_without_context: str = "{question}"

    @model_validator(mode="after")
    def _has_placeholders(self) -> "PromptSettings":
        for key, text, needed in (
            ("user", self.user, ("{context}", "{question}")),
            ("user_without_context", self.user_without_context, ("{question}",)),
        ):
            missing = [name for name in needed if name not in text]
            if missing:
                raise ValueError(f"prompt.{key} lacks {', '.join(missing)}")
        return self


class MetricSettings(Settings):
    """How answers are compared with references."""

    stemming: bool = True
    max_answer_characters: int = Field(20_000, ge=100)


class SweepSettings(Settings):
    """The grid of configurations and the rules of a label (paper §5.2).

    `plan: two-stage` tries every second value of each axis first, then what lies around each reranker's best, with
    `max_pairs` and `max_generations` in all for a training question; held-out ones always try the whole grid.
    """

    iterations: tuple[int, ...] = (2, 5, 10)
    cost_coefficients: tuple[float, ...] = (0.1, 0.3)
    exploration_coefficients: tuple[float, ...] = (0.0, 2.4)
    references: Literal["given", "generated"] = "given"
    min_gap: float = Field(0.10, ge=0)
    gap: Literal["relative", "absolute"] = "relative"
    min_headroom: float = 0.05
    headroom_sample: int = Field(16, ge=2)
    batch_questions: int = Field(16, ge=1)
    plan: Literal["full", "two-stage"] = "full"
    max_pairs: int | None = Field(None, ge=1)
    max_generations: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _grid_is_sound(self) -> "SweepSettings":
        for key in ("iterations", "cost_coefficients", "exploration_coefficients"):
            values = getattr(self, key)
            if not values:
                raise ValueError(f"sweep.{key} is empty; give at least one value")
            if len(set(values)) != len(values):
                raise ValueError(f"sweep.{key} repeats a value: {list(values)}")
            if any(value < 0 for value in values):
                raise ValueError(f"sweep.{key} holds a negative value: {list(values)}")
        for key in ("max_pairs", "max_generations"):
            if self.plan == "full" and getattr(self, key) is not None:
                raise ValueError(f"sweep.{key} limits a sweep in two stages: set sweep.plan: two-stage as well")
        if any(value < 1 for value in self.iterations):
            raise ValueError(f"sweep.iterations must be at least 1: {list(self.iterations)}")
        return self


class AgentSettings(Settings):
    """Network and training of the configuration agent (paper §5.3; its defaults).

    `candidate_mean` lets it read the mean of the candidates' vectors too. `learning_curve` logs with each training how
    good agents are that learn from shares of the questions: twenty more fits.
    """

    model_name: str = "corag-agent"
    hidden: tuple[int, int, int] = (256, 128, 64)
    objective: Literal["paper", "expected-rouge"] = "paper"
    margin: float = Field(1.0, gt=0)
    contrastive_weight: float = Field(1.0, ge=0)
    classification_weight: float = Field(1.0, ge=0)
    regression_weight: float = Field(1.0, ge=0)
    learning_rate: float = Field(1e-3, gt=0)
    batch_size: int = Field(32, ge=2)
    epochs: int = Field(60, ge=1)
    patience: int = Field(15, ge=1)
    validation_fraction: float = Field(0.2, gt=0, lt=1)
    class_weights: bool = True
    candidate_mean: bool = False
    learning_curve: bool = False
    min_labels: int = Field(8, ge=2)
    far_quantile: float = Field(0.99, gt=0, le=1)
    seeds: int = Field(1, ge=1)


class PromotionSettings(Settings):
    """The gate before the alias `champion` moves."""

    alias: str = "champion"
    min_gain: float = 0.0
    tolerance: float = Field(0.05, ge=0)
    max_cost_rise: float = Field(0.25, ge=0)
    max_slice_drop: float = Field(0.15, ge=0)
    min_slice: int = Field(10, ge=1)
    bootstrap_samples: int = Field(1000, ge=100)

    @model_validator(mode="after")
    def _alias_is_allowed(self) -> "PromotionSettings":
        alias = self.alias
        if alias in ("challenger", "previous"):
            raise ValueError(f"promotion.alias {alias!r} is one that promotion itself moves; use 'champion'")
        if alias == "latest" or (alias[:1] == "v" and alias[1:].isdigit()) or alias != alias.lower() or not alias:
            raise ValueError(
                f"promotion.alias {alias!r} is not usable: MLflow reserves 'latest' and 'v1', 'v2', …, "
                "and aliases that differ in case only would coexist; use a lower-case word such as 'champion'"
            )
        return self


class AnswerSettings(Settings):
    """Batch answering. `timeout_seconds` bounds one call of the generator, the two last keys the whole run."""

    batch_questions: int = Field(32, ge=1)
    lock_wait_seconds: float = Field(0.0, ge=0)
    timeout_seconds: float | None = Field(None, gt=0)
    reuse: Literal["none", "unchanged"] = "none"
    deadline: Deadline | None = None
    token_limit: int | None = Field(None, ge=1)


class PricingSettings(Settings):
    """What a million tokens of prompts and of answers cost; the currency is only a name."""

    prompt_per_million: float = Field(0.0, ge=0)
    answer_per_million: float = Field(0.0, ge=0)
    currency: str = "USD"


class TrackingSettings(Settings):
    """MLflow. `MLFLOW_TRACKING_URI` wins over `uri`."""

    uri: str = "sqlite:///mlruns/mlflow.db"
    artifacts: str = "mlruns/artifacts"
    experiment: str = "corag"


class ScheduleSettings(Settings):
    """When the nightly and weekly flows run."""

    timezone: str = "UTC"
    nightly_cron: str = "0 2 * * *"
    weekly_cron: str = "0 4 * * 0"
    questions: str | None = None
    out: str = "answers/{date}.jsonl"


class Config(Settings):
    """The whole configuration: one section a stage."""

    workspace: str = "workspace"
    seed: int = Field(0, ge=0)
    corpus: CorpusSettings = CorpusSettings()
    questions: QuestionSettings = QuestionSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    store: StoreSettings = StoreSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    rerankers: tuple[RerankerSettings, ...] = (
        RerankerSettings(name="late-interaction", kind="late-interaction"),
        RerankerSettings(name="static", kind="static"),
        RerankerSettings(name="lexical", kind="lexical"),
    )
    search: SearchSettings = SearchSettings()
    prompt: PromptSettings = PromptSettings()
    generator: GeneratorSettings = GeneratorSettings()
    metrics: MetricSettings = MetricSettings()
    sweep: SweepSettings = SweepSettings()
    agent: AgentSettings = AgentSettings()
    promotion: PromotionSettings = PromotionSettings()
    answer: AnswerSettings = AnswerSettings()
    pricing: PricingSettings = PricingSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    runner: RunnerSettings = RunnerSettings()
    tracking: TrackingSettings = TrackingSettings()
    schedule: ScheduleSettings = ScheduleSettings()

    @model_validator(mode="after")
    def _parts_fit(self) -> "Config":
        names = [reranker.name for reranker in self.rerankers]
        if not names:
            raise ValueError("rerankers is empty; name at least one")
        if len(set(names)) != len(names):
            raise ValueError(f"rerankers repeats a name: {names}")
        fixed = self.search.fixed.reranker
        if fixed and fixed not in names:
            raise ValueError(f"search.fixed.reranker {fixed!r} is not one of rerankers: {names}")
        if self.chunking.chunk_tokens > self.search.budget:
            raise ValueError(
                f"chunking.chunk_tokens ({self.chunking.chunk_tokens}) exceeds search.budget ({self.search.budget}): "
                "not one full chunk would fit; lower the one or raise the other"
            )
        if self.search.budget + self.generator.max_answer_tokens > self.generator.context_length:
            raise ValueError(
                f"search.budget ({self.search.budget}) + generator.max_answer_tokens "
                f"({self.generator.max_answer_tokens}) exceed generator.context_length "
                f"({self.generator.context_length})"
            )
        return self
