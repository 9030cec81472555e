"""The report of an evaluation: drawn from tables alone, verdict in words, and only what the tables hold."""

import pandas as pd
import pytest

from corag.errors import InputError
from corag.report_page import draw_report, verdict_lines
from corag.report_plots import pareto_front
from tests.report_tables import ablations, attribution, cases, methods, results, write_tables


def test_the_whole_report_is_drawn_from_its_tables(tmp_path):
    """Every plot is a picture and on the page; names, figures and cases stand in it; it asks for nothing."""
    write_tables(tmp_path)
    page = draw_report(tmp_path).read_text(encoding="utf-8")
    plots = {path.name for path in (tmp_path / "plots").iterdir()}
    assert plots == {
        "quality_tokens.png", "rouge_by_method.png", "latency.png", "tokens_used.png", "rerankers.png",
        "attribution.png", "ablation_curves.png", "corpus_size.png", "ablations.png",
    }  # fmt: skip
    assert all((tmp_path / "plots" / name).read_bytes().startswith(b"\x89PNG") for name in plots)
    assert page.count("data:image/png") == len(plots)
    for words in ("document-order", "0.381", "0.330 to 0.432", "Who paid for the bridge &amp; why?", "007"):
        assert words in page
    assert "http" not in page


def test_what_has_no_table_is_left_out(tmp_path):
    """Methods alone make a page; without them there is no evaluation, and the message says how to make one."""
    with pytest.raises(InputError, match="corag evaluate"):
        draw_report(tmp_path)
    write_tables(tmp_path, only=("methods",))
    page = draw_report(tmp_path).read_text(encoding="utf-8")
    assert "Case studies" not in page
    assert "Ablations" not in page
    assert not (tmp_path / "plots" / "attribution.png").exists()


def test_the_verdict_is_in_words():
    """The best method with its tokens, and corag beside naive: how much, at what cost, sure or not."""
    best, against = verdict_lines(methods())
    assert best.startswith("upper reaches the highest ROUGE-L, 0.400, with 210 context tokens")
    assert against == "corag differs from naive by +11% in ROUGE-L (within what chance explains), at 59% of its tokens."


def test_the_front_holds_what_nothing_beats_in_both():
    """More tokens must buy more quality."""
    table = pd.DataFrame(
        {"method": ["a", "b", "c", "d"], "rouge_l": [0.3, 0.2, 0.5, 0.4], "context_tokens": [10, 20, 30, 40]}
    )
    assert pareto_front(table) == ["a", "c"]
    assert len(results()) == 5 * len(methods())
    assert set(attribution()["part"]) == {"set", "order", "stopping"}
    assert len(cases()) == 2
    assert "corpus_size" in set(ablations()["ablation"])
