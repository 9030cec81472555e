"""The tables and pictures of a sweep."""

from corag.values import Configuration, Label
from training.sweep_report import gap_histogram, sweep_plots, sweep_tables


def label(number, gap, reranker="one", kept=True, reason="kept"):
    """A label with that gap."""
    return Label(f"q{number}", kept, reason, Configuration(reranker, 5, 0.1, 2.4), gap=gap)


LABELS = [
    label(1, 0.12),
    label(2, 0.52, "two"),
    label(3, 1.0),
    label(4, 0.02, kept=False, reason="gap between rerankers too small"),
    Label("q5", False, "generation failed: server gone"),
]


def test_the_tables_count_every_question_once():
    """Gaps by bin, kept labels by reranker, all questions by reason; a question without a gap is in no bin."""
    _, kept, dropped = gap_histogram(LABELS)
    assert (sum(kept), sum(dropped)) == (3, 1)
    assert (kept[2], kept[10], kept[19], dropped[0]) == (1, 1, 1, 1)
    tables = sweep_tables(LABELS)
    assert tables["best_rerankers.csv"] == "reranker,kept labels\none,2\ntwo,1\n"
    assert "generation failed,1" in tables["reasons.csv"]
    assert tables["gaps.csv"].count("\n") == 21


def test_the_plots_are_pictures_even_of_nothing():
    """A sweep that kept no label has pictures too."""
    for labels in (LABELS, []):
        assert all(png.startswith(b"\x89PNG") for png in sweep_plots(labels, 0.1).values())
