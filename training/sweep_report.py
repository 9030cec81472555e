"""The tables and pictures of a sweep: gaps between rerankers, best rerankers, what was kept and dropped and why."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from corag.drawing import draw
from corag.labels import count_reasons
from corag.values import Label
from training.csv_text import csv_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 20


def sweep_tables(labels: Sequence[Label]) -> dict[str, str]:
    """File name → CSV: questions by gap, kept labels by best reranker, and all questions by what became of them."""
    edges, kept, dropped = gap_histogram(labels)
    return {
        "gaps.csv": csv_text(
            ("from", "to", "kept", "dropped"),
            (
                (f"{low:.2f}", f"{high:.2f}", *both)
                for low, high, *both in zip(edges[:-1], edges[1:], kept, dropped, strict=True)
            ),
        ),
        "best_rerankers.csv": csv_text(("reranker", "kept labels"), sorted(best_rerankers(labels).items())),
        "reasons.csv": csv_text(("reason", "questions"), count_reasons(labels).items()),
    }


def sweep_plots(labels: Sequence[Label], min_gap: float) -> dict[str, bytes]:
    """File name → PNG: `gaps.png` and `best_rerankers.png`."""
    return {
        "gaps.png": draw([lambda axes: _gaps(axes, labels, min_gap)]),
        "best_rerankers.png": draw([lambda axes: _best(axes, labels)]),
    }


def gap_histogram(labels: Sequence[Label]) -> tuple[list[float], list[int], list[int]]:
    """Edges [b + 1] over [0, 1], and the kept and the dropped questions [b] whose gap lies in each bin.

    Questions without a gap (nothing finished, nothing scored above 0) are in no bin.
    """
    edges = [index / BINS for index in range(BINS + 1)]
    counts: dict[bool, list[int]] = {True: [0] * BINS, False: [0] * BINS}
    for label in labels:
        if label.gap is not None:
            counts[label.kept][min(int(label.gap * BINS), BINS - 1)] += 1
    return edges, counts[True], counts[False]


def best_rerankers(labels: Sequence[Label]) -> dict[str, int]:
    """Kept labels by their best reranker."""
    counts: dict[str, int] = {}
    for label in labels:
        if label.kept and label.configuration is not None:
            counts[label.configuration.reranker] = counts.get(label.configuration.reranker, 0) + 1
    return counts


def _gaps(axes: "Axes", labels: Sequence[Label], min_gap: float) -> None:
    from matplotlib.ticker import MaxNLocator

    edges, kept, dropped = gap_histogram(labels)
    width = 1 / BINS
    axes.bar(edges[:-1], dropped, width, align="edge", color="lightgrey", edgecolor="white", label="dropped")
    axes.bar(edges[:-1], kept, width, bottom=dropped, align="edge", edgecolor="white", label="kept")
    axes.axvline(min_gap, color="black", linestyle=":", label=f"min_gap {min_gap:g}")
    axes.set(xlabel="gap between the best two rerankers", ylabel="training questions", title="Gaps", xlim=(0, 1))
    axes.set_ylim(0, 1.08 * max([1, *(sum(both) for both in zip(kept, dropped, strict=True))]))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()


def _best(axes: "Axes", labels: Sequence[Label]) -> None:
    from matplotlib.ticker import MaxNLocator

    counts = sorted(best_rerankers(labels).items(), key=lambda item: (item[1], item[0]))
    bars = axes.barh([name for name, _ in counts], [count for _, count in counts])
    axes.bar_label(bars, padding=3)
    axes.set(xlabel="kept labels", title="Best reranker of the kept labels")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(x=0.1)
