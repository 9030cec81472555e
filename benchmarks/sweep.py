"""What a sweep saves, that it changes nothing, and how good and fast the search is.

    python -m benchmarks.sweep [-c CONFIG] [--set KEY=VALUE] [--data DIR] [--questions 40] [--alone 1]

The whole grid of the paper (λ × c × iterations, three embedded signals) is swept over the training questions of the
sample with real models, from an empty workspace. `--alone` of these questions are swept again with every trial run by
itself: a tree, a memory of scores and an LLM call of its own. `--data` takes a folder with corpus.jsonl and
questions.jsonl in the place of the sample.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import eq
from pathlib import Path

from benchmarks import search_core
from benchmarks.figures import Figure, emit
from benchmarks.real_parts import fresh_parts, training_questions
from benchmarks.searches import compare_lockstep, compare_searches
from corag.components import Components
from corag.corpus import ingest_corpus
from corag.generation_memo import GenerationMemo
from corag.labels import label_question
from corag.memo import Memo, MemoTable
from corag.order_scorer import OrderScorer, PairCount
from corag.prompts import build_prompt
from corag.retrieval import retrieve
from corag.selection import Chosen, Selection, select
from corag.settings import SAMPLE
from corag.sweep import SweepOutcome, SweepParts, sweep
from corag.sweep_bounds import Work
from corag.sweep_files import Part
from corag.sweep_plan import grid
from corag.values import Configuration, Question
from flows.sweep_planning import planned_work

GRID = [
    "sweep.iterations=[5,10,15,20,25]",
    "sweep.cost_coefficients=[0.0,0.1,0.2,0.3]",
    "sweep.exploration_coefficients=[0.0,1.0,2.0,2.4,3.0]",
]


@dataclass(frozen=True)
class Swept:
    """A sweep with what it cost."""

    outcome: SweepOutcome
    pairs: int
    calls: int
    seconds: float
    memo: Memo


def main() -> None:
    """Print the tables and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--config", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--alone", type=int, default=1)
    arguments = parser.parse_args()
    print("\n".join(search_core.quality_table(search_core.SEEDS)))
    nodes, milliseconds = search_core.time_core()
    print(f"a tree of {nodes} nodes with a free scorer: {milliseconds:.1f} ms per {search_core.TIMED_NODES} nodes\n")
    with tempfile.TemporaryDirectory() as root:
        parts = fresh_parts(arguments.config, [*GRID, *arguments.overrides], Path(root))
        corpus = str(arguments.data / "corpus.jsonl") if arguments.data else SAMPLE
        source = str(arguments.data / "questions.jsonl") if arguments.data else SAMPLE
        say(f"{ingest_corpus(parts, [corpus]).chunks} chunks in the store")
        questions = training_questions(source, arguments.questions, parts.config.seed)
        figures = compare_sweeps(parts, questions, arguments.alone)
        figures += compare_searches(parts, questions)
        figures += compare_lockstep(parts, questions)
    for figure in figures:
        emit(*figure)
    search_core.emit_figures(milliseconds)


def compare_sweeps(parts: Components, questions: Sequence[Question], alone: int) -> list[Figure]:
    """The figures of the sweep of all questions, and of the first few with every trial alone."""
    configurations = grid([one.name for one in parts.config.rerankers], parts.config.sweep)
    warm_up(parts)
    say(f"sweeping {len(questions)} questions × {len(configurations)} configurations")
    ours = together(parts, questions, configurations)
    planned = plan(parts, questions, ours.memo.table("scores"))
    count = len(questions)
    print("| | reranker pairs | LLM calls | seconds |\n|---|---|---|---|")
    print(f"| planned at most, {count} questions | {planned.pairs} | {planned.calls} | |")
    print(f"| every trial alone, counted | {ours.outcome.pairs_alone} | {ours.outcome.calls_alone} | |")
    print(f"| this sweep | {ours.pairs} | {ours.calls} | {ours.seconds:.0f} |", flush=True)
    figures: list[Figure] = [
        ("sweep_pairs_ratio", ours.outcome.pairs_alone / ours.pairs, 30, "higher", count),
        ("sweep_llm_calls_ratio", ours.outcome.calls_alone / ours.calls, 15, "higher", count),
        ("sweep_planned_pairs_ratio", planned.pairs / ours.pairs, 1.1, "lower", count),
        ("sweep_planned_calls_ratio", planned.calls / ours.calls, 1.1, "lower", count),
    ]
    return figures + compare_with_alone(parts, questions[:alone], configurations, ours)


def compare_with_alone(
    parts: Components, few: Sequence[Question], configurations: Sequence[Configuration], whole: Swept
) -> list[Figure]:
    """The figures of the first few questions: swept by themselves, and with every trial really run alone."""
    if not few:
        return []
    say(f"sweeping {len(few)} of them again, from nothing, and then every trial alone")
    subset, naive = together(parts, few, configurations), one_by_one(parts, few, configurations)
    same = naive.outcome.labels == subset.outcome.labels == whole.outcome.labels[: len(few)]
    equal = sum(map(eq, naive.outcome.trials, whole.outcome.trials))
    print(f"| every trial alone, run, {len(few)} questions | {naive.pairs} | {naive.calls} | {naive.seconds:.0f} |")
    print(f"| this sweep of the same | {subset.pairs} | {subset.calls} | {subset.seconds:.1f} |\n")
    print(f"{equal} of {len(naive.outcome.trials)} trials choose, answer and score alone as in the sweep\n")
    return [
        ("sweep_wall_ratio", naive.seconds / subset.seconds, 15, "higher", len(few)),
        ("sweep_labels_identical", float(same), 1, "higher", len(few)),
    ]


def together(parts: Components, questions: Sequence[Question], configurations: Sequence[Configuration]) -> Swept:
    """The sweep as corag runs it, with an empty memory."""
    memo, count = Memo(None), PairCount()
    generations = GenerationMemo("bench", lambda: parts.generator, memo.table("generations"))
    made = SweepParts(
        lambda batch: retrieve(parts.store, parts.embedder, batch, parts.config.retrieval),
        searcher(parts, memo.table("scores"), count),
        generations,
        parts.config.prompt,
        parts.config.metrics,
    )
    start = time.perf_counter()
    outcome = sweep(questions, configurations, made, parts.config.sweep)
    return Swept(outcome, count.scored, generations.calls.made, time.perf_counter() - start, memo)


def one_by_one(parts: Components, questions: Sequence[Question], configurations: Sequence[Configuration]) -> Swept:
    """The same trials, each with a tree, a memory and a language model call of its own."""
    pairs, calls, start = 0, 0, time.perf_counter()
    total = SweepOutcome()
    for question in questions:
        trials = []
        for configuration in configurations:
            alone = together(parts, [question], [configuration])
            trials += alone.outcome.trials
            pairs, calls = pairs + alone.pairs, calls + alone.calls
        total.trials += trials
        total.labels.append(label_question(question.qid, trials, parts.config.sweep))
    return Swept(total, pairs, calls, time.perf_counter() - start, Memo(None))


def plan(parts: Components, questions: Sequence[Question], scores: MemoTable) -> Work:
    """What `corag sweep --dry-run` says beforehand of these trials; the searches that it does take their `scores`."""
    sides: dict[str, Part] = {question.qid: "train" for question in questions}
    return planned_work(parts, list(questions), sides, {}, scores).work


def searcher(parts: Components, table: MemoTable, count: PairCount) -> Callable[[Sequence[Selection]], list[Chosen]]:
    """The searches of `select`, with their scores in `table`."""

    def search(selections: Sequence[Selection]) -> list[Chosen]:
        scorers = {
            one.name: OrderScorer(parts.reranker(one.name), table, parts.config.search.normalize, count)
            for one in parts.config.rerankers
        }
        return select(selections, scorers, parts.config.search, parts.config.seed)

    return search


def warm_up(parts: Components) -> None:
    """Load every model, so that neither side of a comparison pays for it."""
    for one in parts.config.rerankers:
        parts.reranker(one.name).score_pairs([("warm up", ("warm up",))])
    parts.generator.generate([build_prompt("Say yes.", ["Yes."], parts.config.prompt)])


def say(line: str) -> None:
    """Progress, on stderr."""
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    main()
