"""Ablations: the comparison's `corag-fixed` with one setting changed at a time (paper §6)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corag.errors import ConfigError
from corag.evaluation_methods import AGENT, FIXED
from corag.metrics import Interval
from corag.settings import Config
from corag.sweep_bounds import Work, most_pairs
from corag.values import Configuration

EXPLORATION, COST, BUDGET, RERANKER = "exploration", "cost", "budget", "reranker"
CHUNK_TOKENS, CORPUS_SIZE, BACKUP, LOSS = "chunk_tokens", "corpus_size", "backup", "loss"

ABLATION_COLUMNS = (
    "ablation",
    "setting",
    "value",
    "rouge_l",
    "rouge_l_low",
    "rouge_l_high",
    "context_tokens",
    "search_ms",
    "n",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting of one ablation: the configuration to evaluate, and the method to evaluate it with.

    value: the number that was changed, None where it is none. share: the part of the documents that the corpus has.
    """

    ablation: str
    setting: str
    value: float | None
    config: Config
    method: str = FIXED
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class AblationRow:
    """What came of one setting. search_ms: retrieval and search of one question alone, without any memory."""

    ablation: str
    setting: str
    value: float | None
    rouge_l: Interval
    context_tokens: float
    search_ms: float | None


def named(text: str | None) -> list[str]:
    """The ablations that a comma-separated list names; `all` stands for every one.

    Raises:
        ConfigError: one of them is not known.
    """
    names = list(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))
    names = list(ABLATIONS) if "all" in names else names
    unknown = [name for name in names if name not in ABLATIONS]
    if unknown:
        raise ConfigError(f"--ablations {','.join(unknown)}: not known; choose among all, {', '.join(ABLATIONS)}")
    return names


def plan(config: Config, names: Sequence[str]) -> list[Cell]:
    """The cells of the ablations `names`, in their order; `loss` has none, since it calls no model."""
    return [cell for name in names for cell in ABLATIONS[name](config)]


def cell_work(cell: Cell, fixed: Configuration, questions: int) -> Work:
    """The most reranker pairs and language model calls of one cell, as if nothing were remembered."""
    if cell.method == AGENT:
        # The agent may choose the most iterations that were swept.
        fixed = replace(fixed, iterations=max(fixed.iterations, *cell.config.sweep.iterations))
    # Candidates that cost nothing to speak of leave the search the most to score.
    pairs = most_pairs([fixed], [1] * cell.config.retrieval.top_k, cell.config.search)
    return Work(questions * pairs, questions)


def changed(config: Config, section: str, **values: Any) -> Config | None:
    """The configuration with other values in one section; None where they do not fit the rest of it."""
    tree = config.model_dump()
    tree[section] |= values
    try:
        return Config.model_validate(tree)
    except ValueError:
        return None


def _fixed(config: Config, **values: Any) -> Config | None:
    return changed(config, "search", fixed=config.search.fixed.model_dump() | values)


def _cells(name: str, found: Sequence[tuple[str, float | None, Config | None]]) -> list[Cell]:
    return [Cell(name, setting, value, config) for setting, value, config in found if config is not None]


def _exploration(config: Config) -> list[Cell]:
    values = config.evaluation.ablations.exploration_coefficients
    return _cells(
        EXPLORATION, [(f"c = {value:g}", value, _fixed(config, exploration_coefficient=value)) for value in values]
    )


def _cost(config: Config) -> list[Cell]:
    values = config.evaluation.ablations.cost_coefficients
    return _cells(COST, [(f"λ = {value:g}", value, _fixed(config, cost_coefficient=value)) for value in values])


def _budget(config: Config) -> list[Cell]:
    values = config.evaluation.ablations.budgets or _around(config.search.budget)
    return _cells(BUDGET, [(f"B = {value}", value, changed(config, "search", budget=value)) for value in values])


def _reranker(config: Config) -> list[Cell]:
    names = [one.name for one in config.rerankers]
    alone = _cells(RERANKER, [(name, None, _fixed(config, reranker=name)) for name in names])
    return [*alone, Cell(RERANKER, "agent", None, config, AGENT)]


def _chunk_tokens(config: Config) -> list[Cell]:
    values = config.evaluation.ablations.chunk_tokens or _around(config.chunking.chunk_tokens)
    overlap = config.chunking.chunk_overlap
    found = [
        (
            f"{value} tokens",
            float(value),
            changed(config, "chunking", chunk_tokens=value, chunk_overlap=min(overlap, value - 1)),
        )
        for value in values
    ]
    return _cells(CHUNK_TOKENS, found)


def _corpus_size(config: Config) -> list[Cell]:
    shares = config.evaluation.ablations.corpus_shares
    return [Cell(CORPUS_SIZE, f"{share:.0%} of the documents", None, config, share=share) for share in shares]


def _backup(config: Config) -> list[Cell]:
    found: list[tuple[str, float | None, Config | None]] = [
        ("best-first", None, changed(config, "search", selection="best-first")),
        ("uct, best child", None, changed(config, "search", selection="uct", backup="best")),
        ("uct, all children", None, changed(config, "search", selection="uct", backup="all")),
    ]
    return _cells(BACKUP, found)


def _around(value: int) -> tuple[int, ...]:
    return (max(1, value // 2), value, 2 * value)


ABLATIONS: dict[str, Callable[[Config], list[Cell]]] = {
    EXPLORATION: _exploration,
    COST: _cost,
    BUDGET: _budget,
    RERANKER: _reranker,
    CHUNK_TOKENS: _chunk_tokens,
    CORPUS_SIZE: _corpus_size,
    BACKUP: _backup,
    LOSS: lambda config: [],
}
"""Every ablation by name, each with the cells that a configuration gives."""


def ablation_rows(rows: Sequence[AblationRow]) -> list[dict[str, Any]]:
    """The rows of `ablations.csv`."""
    return [
        {
            "ablation": row.ablation,
            "setting": row.setting,
            "value": row.value,
            "rouge_l": row.rouge_l.mean,
            "rouge_l_low": row.rouge_l.low,
            "rouge_l_high": row.rouge_l.high,
            "context_tokens": row.context_tokens,
            "search_ms": row.search_ms,
            "n": row.rouge_l.n,
        }
        for row in rows
    ]


def ablation_table(rows: Sequence[AblationRow]) -> str:
    """The ablations as a Markdown table; empty without any."""
    if not rows:
        return ""
    lines = ["| ablation | setting | ROUGE-L | context tokens | search ms | questions |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {row.ablation} | {row.setting} | {row.rouge_l} | {row.context_tokens:.0f} "
        f"| {'' if row.search_ms is None else f'{row.search_ms:.1f}'} | {row.rouge_l.n} |"
        for row in rows
    ]
    return "\n".join(lines)
