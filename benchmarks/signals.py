"""How often the embedded signals disagree, how useful each is, and what it costs.

    python -m benchmarks.signals [-c CONFIG] [--data DIR] [--questions N] [--kinds dense static …] [--out FILE]

For each question the six nearest chunks are scored alone and in every order of two within the budget. `--data` takes
a folder with corpus.jsonl and questions.jsonl (cut into chunks of about 90 words here); without it the candidates come
from the store of the configuration (run `corag ingest` first) and the questions from `questions.train`.
"""

import argparse
import itertools
import json
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from corag.components import Components
from corag.config import load_config
from corag.embedders.minilm import MiniLM
from corag.rerankers import Reranker, load_reranker
from corag.settings import SAMPLE, Config, RerankerSettings
from corag.workspace import Workspace

KINDS = ("dense", "late-interaction", "likelihood", "static", "lexical")
CANDIDATES = 6
WORDS_PER_CHUNK = 90


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
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    config = load_config(arguments.config, arguments.overrides)
    components = Components(config, Workspace(Path(config.workspace)))
    if arguments.data:
        cases, corpus = cases_of_folder(arguments.data, arguments.questions, components)
    else:
        cases, corpus = cases_of_store(config, arguments.questions, components)
    verdicts = {}
    for kind in arguments.kinds:
        verdicts[kind] = judge(load_signal(kind, components, corpus), cases, config.search.budget)
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
        tried = [(index,) for index in range(len(case.texts))] + [
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


def cases_of_store(config: Config, count: int, components: Components) -> tuple[list[Case], list[str]]:
    """Cases from the filled store and the training questions of the configuration."""
    from corag.questions import read_questions
    from corag.retrieval import retrieve

    source = config.questions.train
    reading = read_questions(source, split="train" if source == SAMPLE else None)
    questions = [one for one in reading.questions if one.relevant_ids]
    questions = random.Random(config.seed).sample(questions, min(count, len(questions)))
    settings = config.retrieval.model_copy(update={"top_k": CANDIDATES})
    found = retrieve(components.store, components.embedder, questions, settings)
    cases = [
        Case(
            question.question,
            tuple(one.chunk.text for one in retrieval.candidates),
            tuple(one.cost for one in retrieval.candidates),
            tuple(one.chunk.doc_id in question.relevant_ids for one in retrieval.candidates),
        )
        for question, retrieval in zip(questions, found, strict=True)
    ]
    return cases, [chunk.text for chunk in components.chunks]


def cases_of_folder(folder: Path, count: int, components: Components) -> tuple[list[Case], list[str]]:
    """Cases from a folder with corpus.jsonl and questions.jsonl: some documents, and the questions about them."""
    from corag.generators.chat import load_chat_tokenizer
    from corag.generators.local_model import local_folder

    documents = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    questions = [json.loads(line) for line in (folder / "questions.jsonl").open(encoding="utf-8")]
    chooser = random.Random(components.config.seed)
    questions = chooser.sample([one for one in questions if one.get("relevant_ids")], count)
    wanted = {name for one in questions for name in one["relevant_ids"]}
    others = chooser.sample(documents, min(len(documents), 10 * count))
    kept = {one["doc_id"]: one["text"] for one in documents if one["doc_id"] in wanted} | {
        one["doc_id"]: one["text"] for one in others
    }
    chunks = [(name, text) for name in sorted(kept) for text in cut(kept[name])]
    embedder = MiniLM(None, 512, 32)
    vectors = embedder.embed([text for _, text in chunks])
    tokenizer = load_chat_tokenizer(local_folder(components.config.generator, components.workspace.models), "generator")
    cases = []
    for question, vector in zip(questions, embedder.embed([one["question"] for one in questions]), strict=True):
        nearest = np.argsort(-(vectors @ vector), kind="stable")[:CANDIDATES]
        texts = tuple(chunks[index][1] for index in nearest)
        costs = tuple(len(tokenizer(text)["input_ids"]) for text in texts)
        relevant = tuple(chunks[index][0] in question["relevant_ids"] for index in nearest)
        cases.append(Case(question["question"], texts, costs, relevant))
    return cases, [text for _, text in chunks]


def cut(text: str) -> Iterator[str]:
    """Whole sentences up to about 90 words."""
    held: list[str] = []
    for sentence in re.split(r"(?<=[.!?])\s+", text):
        if held and len(" ".join([*held, sentence]).split()) > WORDS_PER_CHUNK:
            yield " ".join(held)
            held = []
        held.append(sentence)
    if held:
        yield " ".join(held)


if __name__ == "__main__":
    main()
