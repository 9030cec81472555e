"""Sweep: headroom → trials of every configuration → labels; a plan beforehand, the real cost afterwards."""

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from corag.components import Components
from corag.errors import IncompleteError
from corag.headroom import Headroom, measure_headroom, require_headroom
from corag.memo import Memo
from corag.progress import progress
from corag.references import generated_references
from corag.sweep import SweepOutcome
from corag.sweep_files import Part, read_record
from corag.values import Chunk, Question
from flows.questions import load_questions
from flows.runtime import open_components
from flows.sweep_pieces import fill_memory, try_each
from flows.sweep_planning import grids, headroom_cases, planned_work, relevant_chunks
from flows.sweep_record import keep, summarise, sweep_fingerprint


@flow(name="sweep")
def sweep_flow(
    config_file: str | None,
    overrides: list[str],
    questions: str | None = None,
    limit: int | None = None,
    force: bool = False,
) -> str:
    """Label the training questions and record the trials of the held-out ones; what was done, as a few lines.

    A sweep of which nothing has changed is not repeated.

    Raises:
        HeadroomError: ROUGE-L does not respond to the context here; `force` goes on.
        IncompleteError: some questions failed; the others are labelled.
    """
    parts = open_components(config_file, overrides, "sweep")
    asked, sides = sweep_questions(parts, questions, limit)
    fingerprint = sweep_fingerprint(parts, asked, sides)
    held = read_record(parts.workspace.sweep)
    if held is not None and held["fingerprint"] == fingerprint and not held["failed"]:
        return f"sweep: nothing has changed since the last one\n{summarise(held)}"
    relevant = relevant_chunks(parts, asked)
    asked = with_references(parts, asked, relevant)
    headroom = check_headroom(parts, [one for one in asked if sides[one.qid] == "train"], relevant, force)
    # Here, not in a task: what a task was given travels to the workers, and loaded models cannot.
    fill_memory(parts, asked, sides)
    outcome = try_configurations(parts, asked, sides)
    # All scores are remembered now, so that counting the plan again costs nothing.
    planned = planned_work(parts, asked, sides, relevant, parts.memo.table("scores"))
    record = keep(parts, outcome, asked, sides, headroom, fingerprint, planned)
    if record["failed"]:
        raise IncompleteError(f"{summarise(record)}; failed: {'; '.join(record['failed'][:3])}")
    return summarise(record)


def sweep_questions(parts: Components, source: str | None, limit: int | None) -> tuple[list[Question], dict[str, Part]]:
    """Training and held-out questions, and which is which. A question in both files counts as held out."""
    settings = parts.config.questions
    train, _ = load_questions(
        source or settings.train, parts.workspace, "train", "train", limit or settings.train_limit
    )
    held_out, _ = load_questions(settings.held_out, parts.workspace, "held_out", "held_out", settings.held_out_limit)
    sides: dict[str, Part] = {question.qid: "train" for question in train}
    sides.update({question.qid: "held_out" for question in held_out})
    known = {question.qid for question in held_out}
    return [one for one in train if one.qid not in known] + held_out, sides


@task(cache_policy=NO_CACHE, persist_result=False)
def with_references(parts: Components, questions: list[Question], relevant: dict[str, list[Chunk]]) -> list[Question]:
    """The questions with the configured kind of references."""
    if parts.config.sweep.references == "given":
        return questions
    with progress("references", len(questions)) as advance:
        return generated_references(questions, relevant, parts.generations, parts.config.prompt, advance)


@task(cache_policy=NO_CACHE, persist_result=False)
def check_headroom(
    parts: Components, train: list[Question], relevant: dict[str, list[Chunk]], force: bool
) -> Headroom | None:
    """The headroom of a sample of the training questions; None where `force` skips a set that has none to measure."""
    config = parts.config
    cases = headroom_cases(parts, [question for question in train if question.answers], relevant)
    if not cases and force:
        return None
    with progress("headroom", 3 * len(cases)) as advance:
        headroom = measure_headroom(cases, parts.generations, config.prompt, config.metrics, config.seed, advance)
    if not force:
        require_headroom(headroom, config.sweep.min_headroom)
    return headroom


@task(cache_policy=NO_CACHE, persist_result=False)
def try_configurations(parts: Components, questions: list[Question], sides: dict[str, Part]) -> SweepOutcome:
    """The trials of every question."""
    with progress("sweep (questions)", len(questions)) as advance:
        return try_each(parts, questions, sides, advance)


def plan_sweep(config_file: str | None, overrides: list[str], questions: str | None, limit: int | None) -> str:
    """The planned work: reranker pairs and LLM calls at most, as if nothing were remembered."""
    parts = open_components(config_file, overrides, "sweep")
    asked, sides = sweep_questions(parts, questions, limit)
    planned = planned_work(parts, asked, sides, relevant_chunks(parts, asked), Memo(None).table("scores"))
    whole, coarse = grids(parts)
    train = sum(sides[question.qid] == "train" for question in asked)
    lines = [
        f"{train} training and {len(asked) - train} held-out questions × {len(whole)} configurations = "
        f"{len(asked) * len(whole)} trials",
        f"reranker pairs: at most {planned.work.pairs}",
        f"LLM calls: at most {planned.work.calls}",
        f"{planned.how}; what is remembered from earlier sweeps costs nothing",
    ]
    if coarse is not None:
        lines.insert(1, f"training questions try {len(coarse)} of them first, then what lies around the best of these")
    return "\n".join(lines)
