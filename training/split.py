"""Splits questions by group, so that no question stands on both sides under another spelling; by class, by seed."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corag.words import normalized


@dataclass(frozen=True, slots=True)
class Split:
    """Row numbers of both sides, ascending, the class counts of each, and a note where the rule had to bend."""

    train: tuple[int, ...]
    validation: tuple[int, ...]
    train_counts: dict[str, int]
    validation_counts: dict[str, int]
    seed: int
    note: str = ""

    def __str__(self) -> str:
        sides = (("train", self.train, self.train_counts), ("validation", self.validation, self.validation_counts))
        shown = "; ".join(f"{name} {len(rows)} ({_listed(counts)})" for name, rows, counts in sides)
        return f"{shown}; {self.note}" if self.note else shown


def split_by_group(texts: Sequence[str], classes: Sequence[str], fraction: float, seed: int) -> Split:
    """About `fraction` of the questions for validation, stratified by class, duplicates kept on one side.

    Questions whose normalised texts agree form one group; a group counts for its most frequent class (ties: the
    first by name). Of each class a `fraction` of its groups is drawn, at least one of three or more, and never the
    last one. Where that leaves validation empty, one group of the largest class is taken if it has two; otherwise
    validation stays empty and the note says so: training then validates on its own questions.
    """
    assert len(texts) == len(classes)
    generator = np.random.default_rng(seed)
    by_class = _groups_by_class(texts, classes)
    drawn: list[list[int]] = []
    for name in sorted(by_class):
        groups = by_class[name]
        count = round(fraction * len(groups))
        count = min(max(count, 1 if len(groups) >= 3 else 0), len(groups) - 1)
        drawn.extend(groups[index] for index in generator.permutation(len(groups))[:count])
    note = ""
    if not drawn:
        largest = max(sorted(by_class), key=lambda name: len(by_class[name]), default="")
        if largest and len(by_class[largest]) >= 2:
            drawn.append(by_class[largest][int(generator.integers(len(by_class[largest])))])
            note = "no class is large enough to stratify: one question group of the largest validates"
        else:
            note = "too few distinct questions to hold any back: validation repeats the training questions"
    held = {row for group in drawn for row in group}
    train = tuple(row for row in range(len(texts)) if row not in held)
    validation = tuple(sorted(held))
    return Split(train, validation, _counts(train, classes), _counts(validation, classes), seed, note)


def overlapping(texts: Sequence[str], others: Sequence[str]) -> list[int]:
    """Rows of `texts` whose normalised text also stands among `others`."""
    known = {normalized(text) for text in others}
    return [row for row, text in enumerate(texts) if normalized(text) in known]


def _groups_by_class(texts: Sequence[str], classes: Sequence[str]) -> dict[str, list[list[int]]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(texts):
        groups[normalized(text)].append(row)
    by_class: dict[str, list[list[int]]] = defaultdict(list)
    for rows in groups.values():
        counts = Counter(classes[row] for row in rows)
        by_class[min(counts, key=lambda name: (-counts[name], name))].append(rows)
    return by_class


def _counts(rows: Sequence[int], classes: Sequence[str]) -> dict[str, int]:
    return dict(sorted(Counter(classes[row] for row in rows).items()))


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
