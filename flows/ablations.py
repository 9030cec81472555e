"""Ablations: one setting changed at a time, on the questions of an evaluation."""

import logging
import time
from collections.abc import Callable, Sequence

from prefect import task
from prefect.cache_policies import NO_CACHE

from corag.ablation_stores import cell_parts
from corag.ablations import (
    ABLATION_COLUMNS,
    CORPUS_SIZE,
    LOSS,
    AblationRow,
    Cell,
    ablation_rows,
    ablation_table,
    cell_work,
    plan,
)
from corag.agents import Agent, fixed_configuration
from corag.components import Components
from corag.errors import LabelError
from corag.evaluation import EvaluationParts, ask, contexts_of, evaluate
from corag.evaluation_summary import mean, summarise
from corag.progress import progress
from corag.settings import Config
from corag.sweep_bounds import Work
from corag.sweep_files import read_record
from corag.values import Configuration, Question
from flows.report_files import Table
from flows.report_parts import evaluation_parts, forgetful_parts
from flows.train import load_training_input
from training.loss_ablation import TERMS, ablate_losses

logger = logging.getLogger(__name__)


def planned(config: Config, names: Sequence[str], questions: int) -> str:
    """What the ablations cost at most, as one line."""
    cells = plan(config, names)
    work = sum((cell_work(cell, _fixed(cell.config), questions) for cell in cells), Work(0, 0))
    return (
        f"ablations: {len(cells)} settings × {questions} questions = {len(cells) * questions} cells; at most "
        f"{work.pairs} reranker pairs and {work.calls} LLM calls; what is remembered costs nothing"
    )


def run_varied(
    parts: Components, questions: Sequence[Question], agent: Agent, names: Sequence[str]
) -> tuple[Table, str]:
    """The table `ablations`, and what the summary says of it; only questions with a reference are asked."""
    rows, left_out = run_ablations(parts, [one for one in questions if one.answers], agent, names)
    return (ABLATION_COLUMNS, ablation_rows(rows)), "\n\n".join(["", *filter(None, [ablation_table(rows)]), *left_out])


@task(cache_policy=NO_CACHE, persist_result=False)
def run_ablations(
    parts: Components, questions: Sequence[Question], agent: Agent, names: Sequence[str]
) -> tuple[list[AblationRow], list[str]]:
    """A row a setting, and what was left out and why. An interrupted run resumes: all work is remembered."""
    logger.info("%s", planned(parts.config, names, len(questions)))
    rows: list[AblationRow] = []
    cells = plan(parts.config, names)
    with progress("ablations (settings)", len(cells)) as advance:
        for cell in cells:
            rows.append(run_cell(parts, cell, questions, agent))
            advance(1)
    if LOSS not in names:
        return rows, []
    found, reason = _losses(parts)
    return [*rows, *found], [reason] if reason else []


def run_cell(parts: Components, cell: Cell, questions: Sequence[Question], agent: Agent) -> AblationRow:
    """One setting evaluated on every question."""
    own = cell_parts(parts, cell, questions)
    evaluation = evaluation_parts(own, agent)
    (summary,) = summarise(evaluate(questions, [cell.method], evaluation), parts.config.seed)
    timed = questions[: parts.config.evaluation.timed_questions]
    return AblationRow(
        cell.ablation,
        cell.setting,
        float(own.store.count) if cell.ablation == CORPUS_SIZE else cell.value,
        summary.rouge_l,
        summary.context_tokens,
        search_milliseconds(timed, cell.method, lambda: forgetful_parts(own, evaluation)),
    )


def search_milliseconds(
    questions: Sequence[Question], method: str, fresh: Callable[[], EvaluationParts]
) -> float | None:
    """The mean time of retrieval and search for one question alone without any memory; None without questions.

    The first question is searched once more beforehand, so that nothing that is loaded at first use is measured.
    """
    if not questions:
        return None
    laps = []
    for question in [questions[0], *questions]:
        parts = fresh()
        parts.embed([question.question])
        started = time.perf_counter()
        contexts_of(method, ask([question], parts), parts)
        laps.append(1000 * (time.perf_counter() - started))
    return mean(laps[1:])


def _losses(parts: Components) -> tuple[list[AblationRow], str]:
    """The rows of the loss terms; none and the reason where there is nothing to learn from."""
    if read_record(parts.workspace.sweep) is None:
        return [], "loss: left out, there is no sweep to learn from; run `corag sweep` first"
    try:
        with progress("ablations (loss terms)", len(TERMS) + 1) as advance:
            found = ablate_losses(
                load_training_input.fn(parts),
                parts.config.agent,
                configured=parts.fixed,
                seed=parts.config.seed,
                work=parts.workspace.folder("evaluation", "loss"),
                progress=advance,
            )
    except LabelError as error:
        return [], f"loss: left out, {error}"
    if not found:
        return [], "loss: left out, the sweep has no held-out questions to judge an agent on"
    return [AblationRow(LOSS, one.setting, None, one.rouge_l, one.tokens, None) for one in found], ""


def _fixed(config: Config) -> Configuration:
    return fixed_configuration(config.search.fixed, [one.name for one in config.rerankers])
