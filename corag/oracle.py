"""The method `oracle`: each question under the configuration whose recorded trial scored best."""

from collections.abc import Collection, Sequence
from pathlib import Path

from corag.sweep_files import read_record, read_sweep
from corag.values import Configuration, Question


def best_configurations(
    folder: Path, questions: Sequence[Question], rerankers: Collection[str]
) -> dict[str, Configuration]:
    """By qid the configuration of the best trial that the sweep in `folder` has of a question; no sweep, no entry.

    Best is the greatest ROUGE-L, then the fewest context tokens, the fewest iterations, and the first listed. Left out
    are questions whose text differs from the swept one of that qid, and trials of a reranker that is not configured.
    """
    if read_record(folder) is None:
        return {}
    sweep = read_sweep(folder)
    swept = {question.qid: question.question for question in sweep.questions}
    wanted = {question.qid for question in questions if swept.get(question.qid) == question.question}
    trials = sweep.trials[sweep.trials.qid.isin(wanted) & sweep.trials.reranker.isin(list(rerankers))]
    finished = trials[trials.rouge_l.notna()]
    ranked = finished.sort_values(
        ["rouge_l", "context_tokens", "iterations"], ascending=[False, True, True], kind="stable"
    ).drop_duplicates("qid")
    names = ("reranker", "iterations", "cost_coefficient", "exploration_coefficient")
    return {
        str(row["qid"]): Configuration(**{name: row[name] for name in names})
        for row in ranked[["qid", *names]].to_dict("records")
    }
