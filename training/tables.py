"""The tables of a training run as CSV text: replay, slices, split, per-question scores."""

from collections.abc import Iterable, Sequence

from training.cross_validation import CurvePoint
from training.csv_text import csv_text
from training.replay import Replay
from training.train import TrainingResult


def tables_of(result: TrainingResult, curve: Sequence[CurvePoint] = ()) -> dict[str, str]:
    """File name → CSV of every table; with one of the learning curve where it was measured."""
    return _curve_csv(curve) | {
        "replay.csv": replay_csv(result.held_out),
        "slices.csv": csv_text(
            ("slice", "method", "rouge_l", "questions"),
            ((row.slice, row.method, f"{row.rouge_l:.4f}", row.n) for row in result.held_out.slices),
        ),
        "replay_questions.csv": csv_text(
            ("qid", *result.held_out.scores),
            (
                (qid, *(f"{values[index]:.4f}" for values in result.held_out.scores.values()))
                for index, qid in enumerate(result.held_out.qids)
            ),
        ),
        "split.csv": csv_text(("qid", "side", "best_reranker"), _split_rows(result)),
    }


def _curve_csv(curve: Sequence[CurvePoint]) -> dict[str, str]:
    if not curve:
        return {}
    rows = ((f"{one.share:.2f}", f"{one.labels:.1f}", f"{one.rouge_l:.4f}", one.gap_closed) for one in curve)
    return {"labels_curve.csv": csv_text(("share", "labels", "rouge_l", "gap_closed"), rows)}


def replay_csv(outcome: Replay) -> str:
    """One line a policy: means, intervals, tokens, regret, share of the gap closed."""
    header = (
        "method",
        "rouge_l",
        "low",
        "high",
        "tokens",
        "regret",
        "gain",
        "gain_low",
        "gain_high",
        "gap_closed",
        "n",
    )
    return csv_text(
        header,
        (
            (
                row.method,
                *(f"{value:.4f}" for value in (row.rouge_l.mean, row.rouge_l.low, row.rouge_l.high)),
                f"{row.tokens:.1f}",
                *(f"{value:.4f}" for value in (row.regret, row.gain.mean, row.gain.low, row.gain.high)),
                "" if row.gap_closed is None else f"{row.gap_closed:.4f}",
                row.rouge_l.n,
            )
            for row in outcome.rows
        ),
    )


def _split_rows(result: TrainingResult) -> Iterable[Sequence[object]]:
    validation = set(result.split.validation)
    for row, qid in enumerate(result.dataset.qids):
        index = int(result.dataset.classes[row])
        name = result.dataset.class_names[index] if index >= 0 else ""
        yield qid, "validation" if row in validation else "train", name
    for qid in result.dataset.left_out:
        yield qid, "left out: also held out", ""
