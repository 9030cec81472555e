"""Methods compared with real searches: what a row holds, what is counted, and what the tables say."""

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corag.evaluation import ask, evaluate
from corag.evaluation_methods import AGENT, DOCUMENT_ORDER, FIXED, METHODS, NAIVE, ORACLE, RAPTOR, SHUFFLE, UPPER
from corag.evaluation_rows import Context, Latency, evaluated
from corag.evaluation_summary import summarise, summary_table
from corag.evaluation_tables import (
    CASE_COLUMNS,
    METHOD_COLUMNS,
    RETRIEVAL_COLUMNS,
    case_rows,
    method_row,
    retrieval_rows,
)
from corag.evaluation_timing import time_methods
from corag.settings import MetricSettings
from corag.values import Chunk, Generation, Question
from flows.report_files import write_report
from tests.evaluation_cases import Reader, evaluation, questions
from tests.search_cases import made_up

SEARCHED = tuple(name for name in METHODS if name not in (RAPTOR, ORACLE))


def said(references, answer, **settings):
    """The row of one question that was answered so."""
    question = Question("q", "what?", tuple(references))
    generation = Generation(answer, 1, 1, "stop")
    return evaluated(question, NAIVE, Context((), "one"), generation, MetricSettings(**settings), {}, Latency())


@pytest.mark.parametrize(
    ("reference", "other"),
    [
        ("桥的通行费是三枚硬币。", "桥的通行费是九枚银币。"),
        ("橋の通行料は硬貨三枚です。", "橋の通行料は無料です。"),
        ("ค่าผ่านสะพานคือสามเหรียญ", "ค่าผ่านสะพานคือเก้าบาท"),
    ],
    ids=["Chinese", "Japanese", "Thai"],
)
def test_scripts_without_spaces_are_scored(reference, other):
    """An identical answer scores 1 in every metric, a contradicting one less, and neither scores nothing."""
    same, against = said([reference], reference), said([reference], other)
    assert (same.rouge_1, same.rouge_2, same.rouge_l, same.exact_match, same.token_f1) == (1.0,) * 5
    assert against.exact_match == 0
    assert all(0 < score < 1 for score in (against.rouge_1, against.rouge_l, against.token_f1))


def test_the_best_of_several_references_counts():
    """EVL-02: of "Paris" and "City of Paris" the one that the answer matches best."""
    row = said(["Paris", "City of Paris"], "city of paris!")
    assert (row.rouge_l, row.exact_match, row.token_f1) == (1.0, 1.0, 1.0)
    partly = said(["paris"], "the capital is paris france")
    assert partly.exact_match == 0
    assert partly.token_f1 == pytest.approx(2 * 0.2 * 1.0 / 1.2)


@pytest.mark.parametrize("references", [(), ("",), (" . ",)])
def test_no_usable_reference_is_no_score(references):
    """EVL-02: such a question has no score in any metric, rather than 0."""
    row = said(references, "something")
    assert [row.rouge_1, row.rouge_2, row.rouge_l, row.exact_match, row.token_f1] == [None] * 5


def test_unscored_and_failed_questions_are_counted():
    """EVL-02: of ten questions one has no reference and four fail: nine count, the four as 0."""
    asked = [*questions(9), Question("bare", "town bare")]
    reader = Reader(fails=tuple(f"town {number}" for number in range(4)))
    (summary,) = summarise(evaluate(asked, [NAIVE], evaluation(reader)), seed=0)
    (fine,) = summarise(evaluate(asked[4:], [NAIVE], evaluation()), seed=0)
    assert (summary.n_total, summary.n_scored, summary.n_failed) == (10, 9, 4)
    assert summary.rouge_l.mean == pytest.approx(fine.rouge_l.mean * 5 / 9)
    assert summary.exact_match == pytest.approx(fine.exact_match * 5 / 9)
    # What a method costs is that of the questions it answered.
    assert summary.context_tokens == fine.context_tokens
    assert "| 10 | 9 | 4 |" in summary_table([summary])


def test_a_question_that_cannot_be_searched_fails_in_every_method():
    """Its rows have the reason, no answer and no call of the model."""
    rows = evaluate([Question("x", "broken", ("a",))], SEARCHED, evaluation())
    assert {(row.error, row.answer, row.rouge_l, row.llm_calls) for row in rows} == {("no usable vector", None, 0.0, 0)}


def test_rearranging_methods_take_the_very_set_that_the_fixed_search_chose():
    """`document-order` and `shuffle` differ from `corag-fixed` in the order alone, and at least one order differs."""
    asked = questions(30)
    rows = {(row.method, row.qid): row.chunk_ids for row in evaluate(asked, SEARCHED, evaluation())}
    for one in asked:
        chosen = rows[FIXED, one.qid]
        assert list(rows[DOCUMENT_ORDER, one.qid]) == sorted(chosen)
        assert set(rows[SHUFFLE, one.qid]) == set(chosen)
    assert any(rows[DOCUMENT_ORDER, one.qid] != rows[FIXED, one.qid] for one in asked)
    assert any(rows[SHUFFLE, one.qid] != rows[DOCUMENT_ORDER, one.qid] for one in asked)


@given(st.integers(0, 1000))
def test_no_method_exceeds_the_budget_and_none_has_a_better_value_than_upper(seed):
    """Within B by every method; `upper` scores every order, and repeats no prompt that another method asked."""
    reader = Reader()
    parts = evaluation(reader, lambda query, texts: made_up(f"{seed} {query}", texts))
    rows = evaluate(questions(2), SEARCHED, parts)
    assert max(row.context_tokens for row in rows) <= 40
    assert len(reader.seen) == len(set(reader.seen)) == len({(row.qid, row.chunk_ids) for row in rows})
    pairs = {row.method: row.reranker_pairs for row in rows}
    assert pairs[UPPER] == max(pairs.values())


def test_recall_is_that_of_the_documents_in_the_context():
    """EVL-04: either copy of a text counts as the relevant document; an unknown one is no score."""
    chunk = Chunk("c", "copy", 0, 0, 4, "text", 1)
    question = Question("q", "?", ("a",), ("gold", "other"))
    context, generation = Context((chunk,), "one"), Generation("a", 1, 1, "stop")
    metrics, copies = MetricSettings(), {"text": {"gold", "copy"}}
    assert evaluated(question, NAIVE, context, generation, metrics, copies, Latency()).recall == 0.5
    assert evaluated(question, NAIVE, context, generation, metrics, {}, Latency()).recall == 0.0
    bare = replace(question, relevant_ids=())
    assert evaluated(bare, NAIVE, context, generation, metrics, copies, Latency()).recall is None


def test_a_gain_is_marked_where_its_interval_leaves_zero_out():
    """A method that always wins is marked, one that never differs is not, and `naive` has no gain."""
    rows = evaluate(questions(12), [NAIVE, FIXED], evaluation())
    better = [replace(row, method="better", rouge_l=row.rouge_l + 0.1) for row in rows if row.method == NAIVE]
    same = [replace(row, method="same") for row in rows if row.method == NAIVE]
    summaries = {one.method: one for one in summarise([*rows, *better, *same], seed=0)}
    assert [summaries[name].significant for name in ("better", "same", NAIVE)] == [True, False, False]
    assert summaries["better"].gain.mean == pytest.approx(0.1)
    assert method_row(summaries[NAIVE])["gain"] is None
    starred = [line for line in summary_table(list(summaries.values())).splitlines() if "] *" in line]
    assert {line.split(" ")[1] for line in starred} == {"better"} | ({FIXED} if summaries[FIXED].significant else set())


def test_retrieval_is_scored_by_depth():
    """The relevant document stands fourth among six candidates; a question that names none does not count."""
    asked = ask([*questions(3, relevant=3), Question("bare", "town bare")], evaluation())
    found = {row["metric"]: (row["value"], row["n"]) for row in retrieval_rows(asked, 6)}
    assert found["recall@1"] == found["recall@3"] == (0.0, 3)
    assert found["recall@5"] == found["recall@6"] == (1.0, 3)
    value, counted = found["ndcg@10"]
    assert (round(value, 6), counted) == (0.430677, 3)


def test_cases_are_the_greatest_gains_then_the_greatest_losses():
    """Five of each, side by side with both contexts; questions that differ in nothing are none."""
    asked = questions(14)
    naive = evaluate(asked, [NAIVE], evaluation())
    steps = [0.0, *(0.01 * step for step in range(1, 8)), *(-0.01 * step for step in range(1, 7))]
    mine = [replace(row, method=AGENT, rouge_l=row.rouge_l + step) for row, step in zip(naive, steps, strict=True)]
    rows = case_rows([*naive, *mine], {one.qid: one.answers for one in asked}, {"q7-0": "x"} | {"q7-1": "y"})
    assert [round(row["gain"], 2) for row in rows] == [
        0.07, 0.06, 0.05, 0.04, 0.03, -0.06, -0.05, -0.04, -0.03, -0.02
    ]  # fmt: skip
    assert rows[0]["reference"] == asked[7].answers[0]
    assert set(rows[0]) == set(CASE_COLUMNS)
    assert rows[0]["corag_context"] == rows[0]["naive_context"] != ""


def test_time_is_measured_without_memory():
    """Each method and question has its stages; every model is asked again for each of them."""
    reader = Reader()
    asked = questions(2)
    found = time_methods(asked, [NAIVE, FIXED], lambda: evaluation(reader))
    assert set(found) == {(method, one.qid) for method in (NAIVE, FIXED) for one in asked}
    assert all(latency.search > 0 and latency.generate > 0 for latency in found.values())
    assert len(reader.seen) == len(found) + 2
    rows = evaluate(questions(3), [NAIVE], evaluation(), latencies=found)
    assert [row.latency_search_ms == row.latency_search_ms for row in rows] == [True, True, False]
    assert summarise(rows, 0)[0].latency_generate_ms > 0


def test_files_hold_every_row_and_the_tables(tmp_path):
    """One row a question and method, with the promised columns, and a table each."""
    asked = questions(4)
    rows = evaluate(asked, [NAIVE, AGENT], evaluation())
    tables = {
        "methods": (METHOD_COLUMNS, [method_row(one) for one in summarise(rows, 0)]),
        "retrieval": (RETRIEVAL_COLUMNS, retrieval_rows(ask(asked, evaluation()), 6)),
        "cases": (CASE_COLUMNS, []),
    }
    write_report(tmp_path, "told", rows, tables)
    frame = pd.read_parquet(tmp_path / "results.parquet")
    assert list(zip(frame.qid, frame.method, strict=True)) == [(row.qid, row.method) for row in rows]
    assert list(frame.chunk_ids[0]) == list(rows[0].chunk_ids)
    assert set(frame.kind) == {"fact"}
    methods = pd.read_csv(tmp_path / "tables" / "methods.csv")
    assert tuple(methods.columns) == METHOD_COLUMNS
    assert list(methods.method) == [NAIVE, AGENT]
    assert tuple(pd.read_csv(tmp_path / "tables" / "cases.csv").columns) == CASE_COLUMNS
    assert "told" in (tmp_path / "summary.md").read_text()
