"""What the morning reads: figures by hand, bands, the history, the page and the note."""

import pytest

from corag.answer_rows import AnswerRow, Latency
from corag.night_figures import night_figures, usual_band, warnings_of
from corag.night_history import keep_night, read_nights
from corag.night_page import night_note, night_page
from corag.settings import MetricSettings, PricingSettings


def row(qid, **told):
    """An answer row, answered unless told otherwise."""
    given = {
        "question": "q",
        "status": "answered",
        "answer": "an old mill",
        "context_tokens": 100,
        "prompt_tokens": 150,
        "answer_tokens": 10,
        "finish_reason": "stop",
        "budget": 256,
        "reranker": "static",
        "iterations": 5,
        "cost_coefficient": 0.1,
        "exploration_coefficient": 2.4,
        "config_source": "agent",
        "generator": "g",
        "latency_ms": Latency(search=10.0, generate=200.0),
    }
    return AnswerRow(qid=qid, **{**given, **told})


ROWS = [
    row("a"),
    row("b", answer="", finish_reason="length", config_source="fixed", latency_ms=Latency(search=30.0, generate=400.0)),
    row("c", status="no_context", answer=None, context_tokens=0, prompt_tokens=0, answer_tokens=0, finish_reason=None),
    row("d", status="failed", answer=None, error="timed out", finish_reason=None),
]


def figures(rows=ROWS, **told):
    """The figures of some rows."""
    given = {
        "seconds": 30.0,
        "answered_now": len(rows),
        "champion": True,
        "metrics": MetricSettings(),
        "pricing": PricingSettings(prompt_per_million=2.0, answer_per_million=10.0),
    }
    references = {"a": ("an old mill",), "d": ("a bridge",)}
    return night_figures(rows, references, **{**given, **told})


def test_figures_are_those_worked_out_by_hand():
    """Counts, shares, tokens, ROUGE-L with a failure as 0, latency, speed and cost."""
    found = figures()
    assert {name: found[name] for name in ("questions", "answered", "no_context", "failed", "cut", "empty")} == {
        "questions": 4, "answered": 2, "no_context": 1, "failed": 1, "cut": 1, "empty": 1,
    }  # fmt: skip
    assert (found["share_failed"], found["share_agent"], found["share_far"], found["share_fixed"]) == (
        0.25, 0.75, 0.25, 0.0,
    )  # fmt: skip
    assert (found["context_tokens_mean"], found["context_tokens_total"], found["prompt_tokens_total"]) == (75, 300, 450)
    assert (found["rouge_l"], found["rouge_l_scored"]) == (0.5, 2)
    assert (found["latency_search_p50"], found["latency_search_p95"]) == (10.0, 30.0)
    assert found["questions_per_minute"] == 8.0
    assert found["cost"] == pytest.approx((450 * 2 + 30 * 10) / 1e6)


def test_what_could_not_be_measured_is_absent():
    """No references, no prices, nothing answered now, no rows at all; without a champion nothing is far."""
    found = night_figures(
        ROWS, {}, seconds=1.0, answered_now=0, champion=False, metrics=MetricSettings(), pricing=PricingSettings()
    )
    assert not {"rouge_l", "cost", "questions_per_minute"} & set(found)
    assert (found["share_far"], found["share_fixed"]) == (0.0, 0.25)
    assert figures([]) == {"questions": 0.0}


def test_a_band_needs_three_nights_and_ignores_one_odd_one():
    """The median decides: one night of 0.9 among five of 0.5 widens nothing."""
    assert usual_band("rouge_l", [0.5, 0.5]) is None
    low, high = usual_band("rouge_l", [0.5, 0.5, 0.9, 0.5, 0.5])
    assert (low, high) == pytest.approx((0.48, 0.52))
    low, high = usual_band("questions_per_minute", [100.0, 100.0, 100.0])
    assert (low, high) == pytest.approx((80.0, 120.0))
    low, high = usual_band("rouge_l", [0.40, 0.50, 0.60])
    assert (low, high) == pytest.approx((0.5 - 3 * 1.4826 * 0.1, 0.5 + 3 * 1.4826 * 0.1))


def test_a_figure_outside_its_band_is_warned_of():
    """A fall is told with the band; what is inside, not watched, or missing is not."""
    before = [{"rouge_l": 0.5, "seconds": 10.0, "share_failed": 0.0}] * 3
    (warned,) = warnings_of({"rouge_l": 0.3, "seconds": 99.0, "share_failed": 0.004}, before)
    assert str(warned) == "rouge_l is 0.3; usually between 0.48 and 0.52"
    assert warnings_of({"rouge_l": 0.3}, before[:2]) == []
    assert warnings_of({}, before) == []


def test_only_the_last_seven_nights_count():
    """What was usual before is forgotten."""
    before = [{"rouge_l": 0.9}] * 7 + [{"rouge_l": 0.5}] * 7
    assert warnings_of({"rouge_l": 0.5}, before) == []
    assert len(warnings_of({"rouge_l": 0.9}, before)) == 1


def test_the_history_keeps_one_line_a_date(tmp_path):
    """In order of the dates; a second attempt replaces the first; a torn line is passed over."""
    keep_night(tmp_path, "2026-03-09", {"answered": 3.0})
    keep_night(tmp_path, "2026-03-08", {"answered": 1.0})
    nights = keep_night(tmp_path, "2026-03-08", {"answered": 2.0})
    assert list(nights.items()) == [("2026-03-08", {"answered": 2.0}), ("2026-03-09", {"answered": 3.0})]
    path = tmp_path / "nights.jsonl"
    path.write_text(path.read_text(encoding="utf-8") + '{"date": "2026-03-1', encoding="utf-8")
    assert read_nights(tmp_path) == nights
    assert [one.name for one in tmp_path.iterdir()] == ["nights.jsonl"]


def test_page_and_note_tell_the_night():
    """Warnings first, then counts, the comparison, failed questions as text, and what the night was run with."""
    now = figures()
    nights = {f"2026-03-0{day}": {**now, "rouge_l": 0.9} for day in range(1, 4)} | {"2026-03-04": now}
    warned = warnings_of(now, list(nights.values())[:3])
    shown = night_page(
        "2026-03-04",
        now,
        nights,
        warned,
        currency="EUR",
        failures=[("d", "the server said <b>no</b>")],
        record={"agent": "corag-agent version 3"},
    )
    assert shown.index("rouge_l is 0.5; usually between") < shown.index("4 questions: 2 answered")
    assert "the server said &lt;b&gt;no&lt;/b&gt;" in shown
    assert "corag-agent version 3" in shown
    assert "data:image/png;base64," in shown
    assert "http" not in shown
    note = night_note("2026-03-04", now, warned, "EUR")
    assert note.startswith("# Night of 2026-03-04\n\n- **unusual**: rouge_l is 0.5")
    assert "Cost: 0.00 EUR." in note


def test_the_first_night_has_nothing_to_be_compared_with():
    """The page says so, and an empty night has one too."""
    shown = night_page(
        "2026-03-04", figures(), {"2026-03-04": figures()}, [], currency="EUR", failures=[], record={}
    )  # fmt: skip
    assert "The first night" in shown
    assert "not known yet (0 nights)" in shown
    empty = figures([])
    assert "0 questions" in night_page(
        "2026-03-04", empty, {"2026-03-04": empty}, [], currency="EUR", failures=[], record={}
    )
