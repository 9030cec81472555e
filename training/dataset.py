"""From labels to arrays to train on: features, best reranker, scaled parameters; and the pairs of an epoch."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from corag.errors import LabelError
from corag.labels import KEPT, count_reasons
from corag.settings import AgentSettings
from training.grid import Ranges, parameters, swept_ranges, to_unit
from training.inputs import TrainingInput
from training.split import Split, overlapping, split_by_group

UNLABELLED = -1
"""Class of a question whose label was dropped; only the objective `expected-rouge` trains on such questions."""


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """n training questions.

    features: float32 [n, d] the questions' vectors.
    classes: int64 [n] index of the best reranker, or UNLABELLED.
    targets: float32 [n, 3] the label's iterations, λ and c, scaled to [0, 1] over the swept range.
    rouge_l: float32 [n, g] each configuration's ROUGE-L; NaN where it failed or was not run.
    column_classes: int64 [g] index of each configuration's reranker.
    left_out: training questions that also stand in the held-out part.
    """

    qids: tuple[str, ...]
    texts: tuple[str, ...]
    features: np.ndarray
    classes: np.ndarray
    targets: np.ndarray
    rouge_l: np.ndarray
    class_names: tuple[str, ...]
    ranges: Ranges
    column_classes: np.ndarray
    left_out: tuple[str, ...] = ()

    def split(self, fraction: float, seed: int) -> Split:
        """The training and the validation side."""
        names = [self.class_names[index] if index >= 0 else "no label" for index in self.classes]
        return split_by_group(self.texts, names, fraction, seed)

    def take(self, rows: tuple[int, ...]) -> "Dataset":
        """The data set of these rows alone."""
        picked = np.array(rows, dtype=np.int64)
        return Dataset(
            qids=tuple(self.qids[row] for row in rows),
            texts=tuple(self.texts[row] for row in rows),
            features=self.features[picked],
            classes=self.classes[picked],
            targets=self.targets[picked],
            rouge_l=self.rouge_l[picked],
            class_names=self.class_names,
            ranges=self.ranges,
            column_classes=self.column_classes,
        )


def build_dataset(data: TrainingInput, settings: AgentSettings) -> Dataset:
    """The labelled questions of the train part that do not reappear in the held-out part.

    Under the objective `expected-rouge` the questions whose label was dropped are training data too: their recorded
    scores say that the choice does not matter.

    Raises:
        LabelError: no label was kept, fewer than `min_labels`, or all name one reranker.
    """
    train, held_out = data.rows("train"), data.rows("held_out")
    repeated = overlapping(
        [data.questions[row].question for row in train], [data.questions[row].question for row in held_out]
    )
    leaked = {int(train[index]) for index in repeated}
    kept = [int(row) for row in train if int(row) not in leaked]
    labelled = [row for row in kept if _is_labelled(data, row)]
    _check_enough(data, labelled, kept, len(leaked), settings)
    rows = [row for row in kept if _has_scores(data, row)] if settings.objective == "expected-rouge" else labelled
    ranges = swept_ranges(data.grid)
    classes = np.full(len(rows), UNLABELLED, dtype=np.int64)
    targets = np.zeros((len(rows), 3), dtype=np.float32)
    for index, row in enumerate(rows):
        configuration = data.labels[data.questions[row].qid].configuration if _is_labelled(data, row) else None
        if configuration is not None:
            classes[index] = data.rerankers.index(configuration.reranker)
            targets[index] = to_unit(parameters([configuration]), ranges)[0]
    return Dataset(
        qids=tuple(data.questions[row].qid for row in rows),
        texts=tuple(data.questions[row].question for row in rows),
        features=data.vectors[rows],
        classes=classes,
        targets=targets,
        rouge_l=data.rouge_l[rows].astype(np.float32),
        class_names=data.rerankers,
        ranges=ranges,
        column_classes=np.array([data.rerankers.index(c.reranker) for c in data.grid], dtype=np.int64),
        left_out=tuple(data.questions[row].qid for row in sorted(leaked)),
    )


def draw_pairs(classes: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int64 [p] left rows, int64 [p] right rows and bool [p] whether both have the same best reranker.

    Half of the pairs are same, half different, unless the classes allow only one of the two kinds. Rows that are no
    left row of a same pair come first as left rows of the different pairs, so that an epoch sees nearly every row.
    """
    rows = np.flatnonzero(classes >= 0)
    if len(rows) < 2:
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty, np.zeros(0, dtype=bool)
    counts = Counter(int(index) for index in classes[rows])
    order = [int(row) for row in generator.permutation(rows)]
    half = (len(rows) + 1) // 2
    agreeing = _cycled([row for row in order if counts[int(classes[row])] > 1], half)
    unseen = sorted(order, key=lambda row: row in agreeing) if len(counts) > 1 else []
    differing = _cycled(unseen, half)
    left = np.array(agreeing + differing, dtype=np.int64)
    same = np.arange(len(left)) < len(agreeing)
    right = np.empty_like(left)
    for index, row in enumerate(left):
        alike = classes[rows] == classes[row]
        pool = rows[alike & (rows != row)] if same[index] else rows[~alike]
        right[index] = pool[generator.integers(len(pool))]
    shuffled = generator.permutation(len(left))
    return left[shuffled], right[shuffled], same[shuffled]


def _cycled(rows: list[int], count: int) -> list[int]:
    return [rows[index % len(rows)] for index in range(count)] if rows else []


def _is_labelled(data: TrainingInput, row: int) -> bool:
    label = data.labels.get(data.questions[row].qid)
    return label is not None and label.kept and label.configuration is not None


def _has_scores(data: TrainingInput, row: int) -> bool:
    return bool(np.isfinite(data.rouge_l[row]).any())


def _check_enough(
    data: TrainingInput, labelled: list[int], kept: list[int], leaked: int, settings: AgentSettings
) -> None:
    """Raise LabelError with what was kept, why the rest was dropped, and what to change."""
    own = [data.labels[data.questions[row].qid] for row in kept if data.questions[row].qid in data.labels]
    classes = Counter(label.configuration.reranker for label in own if label.kept and label.configuration is not None)
    if len(labelled) >= settings.min_labels and len(classes) > 1:
        return
    dropped = {reason: count for reason, count in count_reasons(own).items() if reason != KEPT}
    story = f"kept {len(labelled)} of {len(own)} labels ({dict(sorted(classes.items())) or 'no reranker'})"
    story += f", dropped {dropped}" if dropped else ""
    story += f", left out {leaked} that also stand in the held-out part" if leaked else ""
    if not labelled:
        problem, mend = "no label to train on", "sweep more questions, or lower sweep.min_gap"
    elif len(classes) < 2:
        only = next(iter(classes))
        problem = f"every label names the reranker {only!r}: there is nothing to choose"
        mend = f"set search.fixed.reranker to {only!r}, or configure rerankers that disagree"
    else:
        problem = f"{len(labelled)} labels are fewer than agent.min_labels ({settings.min_labels})"
        mend = "sweep more questions, lower sweep.min_gap, or lower agent.min_labels"
    raise LabelError(f"cannot train the agent: {problem}; {story}; {mend}")
