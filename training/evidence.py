"""Gathers the gate's evidence: candidate, champion and best fixed configuration on the same recorded trials."""

import numpy as np

from training.agent import TrainedAgent
from training.gate import Evidence, Scores
from training.inputs import TrainingInput
from training.policies import AGENT, BEST_FIXED, agent_columns, best_fixed, fixed_columns
from training.replay import replay, slices_of
from training.train import reranker_accuracy

CHAMPION = "champion"


def gather(data: TrainingInput, candidate: TrainedAgent, champion: TrainedAgent | None, *, seed: int) -> Evidence:
    """The evidence on the held-out part of `data`; the champion is scored anew, never by stored figures.

    A question on which any of the three has no finished trial is left out for all. A policy without a
    finished trial on most questions has no figures at all, which the gate refuses.
    """
    rows = data.rows("held_out")
    policies = {AGENT: agent_columns(candidate, data, rows)}
    fixed = best_fixed(data)
    if fixed is not None:
        policies[BEST_FIXED] = fixed_columns(fixed, data, rows)
    if champion is not None:
        policies[CHAMPION] = agent_columns(champion, data, rows)
    outcome = replay(data, rows, policies, seed=seed, samples=1)
    compared = set(outcome.qids)
    used = np.array([row for row in rows if data.questions[row].qid in compared], dtype=np.int64)
    missing = np.full(len(used), np.nan)

    def scores(name: str) -> Scores:
        return Scores(outcome.scores.get(name, missing), outcome.tokens.get(name, missing))

    accuracy, majority = reranker_accuracy(candidate, data)
    return Evidence(
        candidate=scores(AGENT),
        best_fixed=scores(BEST_FIXED),
        champion=scores(CHAMPION) if champion is not None else None,
        slices=slices_of(data, used),
        accuracy=accuracy,
        majority=majority,
    )
