"""The policies that a replay compares: each names, per held-out question, a column of the swept grid (−1: none)."""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from corag.agents import Agent
from corag.values import Configuration
from training.grid import snap, swept_ranges
from training.inputs import TrainingInput

PAPER_ITERATIONS, PAPER_COST, PAPER_EXPLORATION = 10, 0.1, 2.4
"""The paper's fixed setting ("CORAG without agent")."""

NEIGHBOURS = 5
"""Neighbours whose mean ROUGE-L decides in the policy `knn`."""

AGENT, BEST_FIXED, CONFIGURED, PAPER = "agent", "best fixed", "configured fixed", "paper fixed"
RANDOM, KNN, LOGISTIC, MLP, ORACLE = "random", "knn", "logistic regression", "mlp", "oracle"


def agent_columns(agent: Agent, data: TrainingInput, rows: np.ndarray) -> np.ndarray:
    """int64 [k] the recorded trials nearest to what the agent chooses for these rows.

    A question's own vector stands before its candidates' mean, so that an agent that reads the first alone can be
    judged on data that hold both.
    """
    choices = agent.choose(data.vectors[rows][:, : agent.dimension or None])
    return _snapped([choice.configuration for choice in choices], data, rows)


def fixed_columns(configuration: Configuration, data: TrainingInput, rows: np.ndarray) -> np.ndarray:
    """int64 [k] the recorded trials nearest to one configuration."""
    return _snapped([configuration] * len(rows), data, rows)


def best_fixed(data: TrainingInput, columns: Sequence[int] | None = None) -> Configuration | None:
    """The configuration of greatest mean ROUGE-L over the train part, fewer tokens, then grid order, breaking ties.

    Only configurations that finished on at least half of the train questions count. `columns` restricts
    the choice; None where nothing counts.
    """
    column = _best_column(data, range(len(data.grid)) if columns is None else columns)
    return data.grid[column] if column >= 0 else None


def baseline_policies(
    data: TrainingInput, rows: np.ndarray, *, configured: Configuration, seed: int
) -> Mapping[str, np.ndarray]:
    """Every policy but the agent, by name, each int64 [k] for the held-out `rows`. All are fitted on the train part."""
    policies: dict[str, np.ndarray] = {}
    if not len(rows):
        return policies
    best = best_fixed(data)
    if best is not None:
        policies[BEST_FIXED] = fixed_columns(best, data, rows)
    for name in data.rerankers:
        own = best_fixed(data, [column for column, other in enumerate(data.grid) if other.reranker == name])
        if own is not None:
            policies[f"{name} fixed"] = fixed_columns(own, data, rows)
    policies[CONFIGURED] = fixed_columns(configured, data, rows)
    paper = Configuration(configured.reranker, PAPER_ITERATIONS, PAPER_COST, PAPER_EXPLORATION)
    policies[PAPER] = fixed_columns(paper, data, rows)
    policies[RANDOM] = _random_columns(data, rows, seed)
    policies[KNN] = _knn_columns(data, rows)
    policies |= _classifier_policies(data, rows, seed)
    policies[ORACLE] = oracle_columns(data, rows)
    return policies


def oracle_columns(data: TrainingInput, rows: np.ndarray) -> np.ndarray:
    """int64 [k] each question's best finished trial; fewer tokens, then grid order, break ties; −1 without one."""
    return np.array([_argbest(data.rouge_l[row], data.tokens[row]) for row in rows], dtype=np.int64)


def _snapped(wanted: Sequence[Configuration], data: TrainingInput, rows: np.ndarray) -> np.ndarray:
    ranges, recorded = swept_ranges(data.grid), data.recorded
    pairs = zip(wanted, rows, strict=True)
    return np.array([snap(choice, data.grid, recorded[row], ranges) for choice, row in pairs], dtype=np.int64)


def _best_column(data: TrainingInput, columns: Sequence[int]) -> int:
    train = data.rows("train")
    allowed = np.zeros(len(data.grid), dtype=bool)
    allowed[list(columns)] = True
    scores, tokens = data.rouge_l[train], data.tokens[train]
    finished = np.isfinite(scores).sum(axis=0)
    usable = allowed & (finished > 0) & (2 * finished >= len(train))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without trials has no mean
        means, costs = np.nanmean(scores, axis=0), np.nanmean(tokens, axis=0)
    return _argbest(np.where(usable, means, np.nan), costs)


def _argbest(scores: np.ndarray, tokens: np.ndarray) -> int:
    finite = np.isfinite(scores)
    if not finite.any():
        return -1
    ranked = np.lexsort((np.arange(len(scores)), tokens, -np.where(finite, scores, -np.inf)))
    return int(ranked[0])


def _random_columns(data: TrainingInput, rows: np.ndarray, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    recorded = data.recorded
    picked = []
    for row in rows:
        choices = np.flatnonzero(recorded[row])
        picked.append(int(choices[generator.integers(len(choices))]) if len(choices) else -1)
    return np.array(picked, dtype=np.int64)


def _knn_columns(data: TrainingInput, rows: np.ndarray) -> np.ndarray:
    """The configuration of greatest mean ROUGE-L among the nearest train questions."""
    train = data.rows("train")
    finished = train[np.isfinite(data.rouge_l[train]).any(axis=1)]
    columns = []
    for row in rows:
        similarity = data.vectors[finished] @ data.vectors[row]
        near = finished[np.argsort(-similarity, kind="stable")[:NEIGHBOURS]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            scores, tokens = np.nanmean(data.rouge_l[near], axis=0), np.nanmean(data.tokens[near], axis=0)
        usable = data.recorded[row] & np.isfinite(scores)
        columns.append(_argbest(np.where(usable, scores, np.nan), tokens))
    return np.array(columns, dtype=np.int64)


def _classifier_policies(data: TrainingInput, rows: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Classifiers of the best reranker (the paper's ablation), each with the best setting of what it names."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    labelled, names = [], []
    for row in data.rows("train"):
        label = data.labels.get(data.questions[row].qid)
        if label is not None and label.kept and label.configuration is not None:
            labelled.append(int(row))
            names.append(label.configuration.reranker)
    if len(set(names)) < 2:
        return {}
    settings = {name: best_fixed(data, [i for i, c in enumerate(data.grid) if c.reranker == name]) for name in names}
    policies = {}
    for title, model in (
        (LOGISTIC, LogisticRegression(max_iter=1000)),
        (MLP, MLPClassifier((64,), max_iter=200, random_state=seed)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(data.vectors[labelled], names)
        predicted = [str(name) for name in model.predict(data.vectors[rows])]
        chosen = [settings[name] for name in predicted]
        columns = [
            int(fixed_columns(configuration, data, rows[index : index + 1])[0]) if configuration is not None else -1
            for index, configuration in enumerate(chosen)
        ]
        policies[title] = np.array(columns, dtype=np.int64)
    return policies
