"""How often the embedded signals disagree, how useful each is, and what it costs.

    python -m benchmarks.signals [-c CONFIG] [--data DIR] [--questions N] [--kinds dense static …] [--out FILE]

For each question the six nearest chunks are scored alone and in every order of two within the budget. The questions
are training questions of the sample; `--data` takes a folder with corpus.jsonl and questions.jsonl instead, of which
the documents that the drawn questions need are read, and ten others a question. `likelihood` is slow and left out
unless `--kinds` names it.
"""

import argparse
import itertools
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.real_parts import fresh_parts, training_questions
from corag.components import Components
from corag.corpus import ingest_corpus
from corag.embedders.minilm import MiniLM
from corag.questions import read_questions
from corag.rerankers import Reranker, load_reranker
from corag.retrieval import retrieve
from corag.settings import SAMPLE, RerankerSettings
from corag.values import Question

KINDS = ("dense", "late-interaction", "likelihood", "static", "lexical")
DEFAULT_KINDS = tuple(kind for kind in KINDS if kind != "likelihood")
CANDIDATES = 6
OTHER_DOCUMENTS = 10


@dataclass(frozen=True)
class Case:
    """A question, its candidates' texts and token counts, and which of them are of a relevant document."""

    question: str
    texts: tuple[str, ...]
    costs: tuple[int, ...]
    relevant: tuple[bool, ...]


@dataclass(frozen=True)
class Verdict:
    """What one signal says of each case, and the pairs a second that it took."""

    best_single: list[int]
    best_order: list[tuple[int, ...]]
    first_relevant: list[int]
    relevant_in_order: list[float]
    order_matters: float
    pairs_per_second: float
    truncated: int


def main() -> None:
    """Print the tables, and write them to `--out`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--config", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--kinds", nargs="*", default=list(DEFAULT_KINDS), choices=KINDS)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    verdicts = {}
    with tempfile.TemporaryDirectory() as root:
        parts = fresh_parts(arguments.config, arguments.overrides, Path(root))
        if arguments.data:
            corpus, questions = part_of_folder(arguments.data, arguments.questions, parts.config.seed, Path(root))
        else:
            corpus, questions = SAMPLE, training_questions(SAMPLE, arguments.questions, parts.config.seed)
        ingest_corpus(parts, [corpus])
        cases, texts = cases_of(questions, parts), [chunk.text for chunk in parts.chunks]
        for kind in arguments.kinds:
            verdicts[kind] = judge(load_signal(kind, parts, texts), cases, parts.config.search.budget)
            sys.stderr.write(f"{kind}: {verdicts[kind].pairs_per_second:.1f} pairs/s\n")
    table = "\n".join(report(verdicts, cases))
    sys.stdout.write(table + "\n")
    for figure in figures(verdicts, len(cases)):
        sys.stdout.write(json.dumps(figure) + "\n")
    if arguments.out:
        arguments.out.write_text(table + "\n", encoding="utf-8")


def load_signal(kind: str, components: Components, corpus: Sequence[str]) -> Reranker:
    """The embedded signal of that kind."""
    return load_reranker(
        RerankerSettings.model_validate({"name": kind, "kind": kind}),
        embedder=lambda: MiniLM(None, 512, 32),
        generator=lambda: components.generator,
        corpus=lambda: corpus,
    )


def judge(signal: Reranker, cases: Sequence[Case], budget: int) -> Verdict:
    """Score every single candidate and every order of two within the budget."""
    signal.score_pairs([("warm up", ("warm up",))])
    cut_before = signal.truncated
    singles, orders, ranks, useful, differs = [], [], [], [], []
    seconds, scored = 0.0, 0
    for case in cases:
        tried: list[tuple[int, ...]] = [(index,) for index in range(len(case.texts))] + [
            pair
            for pair in itertools.permutations(range(len(case.texts)), 2)
            if sum(case.costs[index] for index in pair) <= budget
        ]
        start = time.perf_counter()
        scores = signal.score_pairs([(case.question, tuple(case.texts[index] for index in order)) for order in tried])
        seconds += time.perf_counter() - start
        scored += len(tried)
        values = np.nan_to_num(np.asarray(scores), nan=-np.inf)
        ranked = np.argsort(-values[: len(case.texts)], kind="stable")
        singles.append(int(ranked[0]))
        orders.append(tried[int(np.argmax(values))])
        useful.append(float(np.mean([case.relevant[index] for index in orders[-1]])))
        ranks.append(next((rank for rank, index in enumerate(ranked, 1) if case.relevant[index]), 0))
        found = dict(zip(tried, scores, strict=True))
        differs += [abs(score - found[pair[::-1]]) > 1e-5 for pair, score in found.items() if len(pair) == 2]
    return Verdict(
        singles, orders, ranks, useful, float(np.mean(differs)), scored / seconds, signal.truncated - cut_before
    )


def report(verdicts: dict[str, Verdict], cases: Sequence[Case]) -> Iterator[str]:
    """The tables in Markdown."""
    found = sum(any(case.relevant) for case in cases)
    yield f"{len(cases)} questions, {CANDIDATES} candidates each; a relevant chunk among them for {found}.\n"
    yield "| signal | relevant first | reciprocal rank | relevant in best order | order matters to | pairs/s | cut |"
    yield "|---|---|---|---|---|---|---|"
    for kind, one in verdicts.items():
        ranks = [rank for rank, case in zip(one.first_relevant, cases, strict=True) if any(case.relevant)]
        first = np.mean([rank == 1 for rank in ranks])
        reciprocal = np.mean([1 / rank for rank in ranks])
        yield (
            f"| {kind} | {first:.0%} | {reciprocal:.2f} | {np.mean(one.relevant_in_order):.0%} "
            f"| {one.order_matters:.0%} of pairs | {one.pairs_per_second:,.0f} | {one.truncated} |"
        )
    yield "\nDisagreement: best single candidate / best set of at most two / best order of at most two.\n"
    yield "| | " + " | ".join(verdicts) + " |"
    yield "|---|" + "---|" * len(verdicts)
    for kind, one in verdicts.items():
        cells = ["–" if kind == other else " / ".join(f"{share:.0%}" for share in apart(one, second))
                 for other, second in verdicts.items()]  # fmt: skip
        yield f"| {kind} | " + " | ".join(cells) + " |"


def apart(one: Verdict, other: Verdict) -> tuple[float, float, float]:
    """The shares of questions where two signals differ in the best single candidate, set, and order."""
    pairs = list(zip(one.best_order, other.best_order, strict=True))
    return (
        float(np.mean([a != b for a, b in zip(one.best_single, other.best_single, strict=True)])),
        float(np.mean([set(a) != set(b) for a, b in pairs])),
        float(np.mean([a != b for a, b in pairs])),
    )


def figures(verdicts: dict[str, Verdict], count: int) -> Iterator[dict[str, object]]:
    """One figure a signal and a pair of signals."""
    for kind, one in verdicts.items():
        yield {"figure": f"signal_pairs_per_second_{kind}", "value": round(one.pairs_per_second, 1), "n": count}
    for (kind, one), (other, second) in itertools.combinations(verdicts.items(), 2):
        yield {"figure": f"signal_disagreement_{kind}_{other}", "value": round(apart(one, second)[1], 3), "n": count}


def cases_of(questions: Sequence[Question], parts: Components) -> list[Case]:
    """The questions with their nearest chunks in the filled store."""
    settings = parts.config.retrieval.model_copy(update={"top_k": CANDIDATES})
    found = retrieve(parts.store, parts.embedder, questions, settings)
    return [
        Case(
            question.question,
            tuple(one.chunk.text for one in retrieval.candidates),
            tuple(one.cost for one in retrieval.candidates),
            tuple(one.chunk.doc_id in question.relevant_ids for one in retrieval.candidates),
        )
        for question, retrieval in zip(questions, found, strict=True)
    ]


def part_of_folder(folder: Path, count: int, seed: int, root: Path) -> tuple[str, list[Question]]:
    """A file of some documents of corpus.jsonl, and the questions drawn from questions.jsonl that ask about them."""
    chooser = random.Random(seed)
    asked = [one for one in read_questions(str(folder / "questions.jsonl")).questions if one.relevant_ids]
    questions = chooser.sample(asked, min(count, len(asked)))
    documents = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    wanted = {name for one in questions for name in one.relevant_ids}
    wanted |= {one["doc_id"] for one in chooser.sample(documents, min(len(documents), OTHER_DOCUMENTS * count))}
    path = root / "corpus.jsonl"
    kept = [json.dumps(one) for one in documents if one["doc_id"] in wanted]
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return str(path), questions


if __name__ == "__main__":
    main()
