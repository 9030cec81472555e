"""A made-up sweep with a known rule, shared by the tests of training: no model, no file, no randomness but the seed."""

from pathlib import Path

import numpy as np

from corag.labels import label_question
from corag.settings import SweepSettings
from corag.values import Configuration, Question, Trial
from training.bundle import AgentCard, save_bundle
from training.grid import swept_ranges
from training.inputs import Embedding, TrainingInput, training_input

DIMENSION = 12
RERANKERS = ("amber", "birch", "cedar")
GRID = tuple(
    Configuration(reranker, iterations, cost, exploration)
    for reranker in RERANKERS
    for iterations in (5, 10, 25)
    for cost in (0.0, 0.1, 0.3)
    for exploration in (0.0, 2.4)
)
FIXED = Configuration("amber", 10, 0.1, 2.4)
EMBEDDING = Embedding("toy", "r1", DIMENSION)


def toy_input(
    *,
    train: int = 60,
    held_out: int = 30,
    seed: int = 0,
    lead: float = 0.4,
    shares: tuple[float, ...] = (0.4, 0.3, 0.3),
) -> TrainingInput:
    """A sweep in which the direction of a question's vector decides which reranker is best, by `lead` ROUGE-L."""
    generator = np.random.default_rng(seed)
    total = train + held_out
    best = generator.choice(len(RERANKERS), size=total, p=shares)
    centres = np.eye(DIMENSION, dtype=np.float32)[: len(RERANKERS)]
    vectors = centres[best] + 0.1 * generator.standard_normal((total, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    questions = [
        Question(
            f"q{row:03d}",
            f"Question number {row}, seed {seed}?",
            metadata={"kind": "fact" if row % 2 else "comparison", "language": "fr" if row % 5 == 0 else "en"},
        )
        for row in range(total)
    ]
    scores = {
        (question.qid, point): _score(point, RERANKERS[best[row]], lead)
        for row, question in enumerate(questions)
        for point in GRID
    }
    return sweep_of(questions, vectors, scores, train=train)


def sweep_of(
    questions: list[Question],
    vectors: np.ndarray,
    scores: dict[tuple[str, Configuration], float | None],
    *,
    train: int,
) -> TrainingInput:
    """The training input of given scores (None: the trial failed); the first `train` questions are the train part."""
    import pandas as pd

    records, labels = [], []
    for question in questions:
        trials = []
        for point in GRID:
            score = scores[question.qid, point]
            error = None if score is not None else "timeout"
            tokens = 40 + 4 * point.iterations
            trials.append(
                Trial(
                    question.qid, point, ("c1",), tokens, 0.5, "a", score, error=error, failed_stage=error and "search"
                )
            )
            records.append(
                {
                    "qid": question.qid,
                    "reranker": point.reranker,
                    "iterations": point.iterations,
                    "cost_coefficient": point.cost_coefficient,
                    "exploration_coefficient": point.exploration_coefficient,
                    "context_tokens": tokens,
                    "rouge_l": score,
                    "error": error,
                }
            )
        labels.append(label_question(question.qid, trials, SweepSettings()))
    return training_input(
        pd.DataFrame(records),
        labels,
        questions,
        vectors,
        {question.qid: "train" if row < train else "held_out" for row, question in enumerate(questions)},
        rerankers=RERANKERS,
        embedding=EMBEDDING,
        corpus_version="toy-1",
    )


def _score(point: Configuration, best: str, lead: float) -> float:
    detail = 0.05 * (point.iterations == 10) + 0.03 * (point.cost_coefficient == 0.1)
    return 0.3 + detail + (lead if point.reranker == best else 0.0)


def hand_made_agent(folder: Path, names: tuple[int, int, int], data: TrainingInput) -> AgentCard:
    """A bundle whose agent gives direction i the reranker `names[i]` and always 10 iterations, λ 0.1, c 2.4."""
    import torch

    from training.network import AgentNetwork

    network = AgentNetwork(DIMENSION, (DIMENSION, DIMENSION, DIMENSION), len(RERANKERS))
    with torch.no_grad():
        for layer in (network.encoder[0], network.encoder[2], network.encoder[4]):
            layer.weight.copy_(torch.eye(DIMENSION))
            layer.bias.zero_()
        network.reranker_head.weight.zero_()
        network.reranker_head.bias.zero_()
        for direction, name in enumerate(names):
            network.reranker_head.weight[name, direction] += 1.0
        network.parameter_head.weight.zero_()
        network.parameter_head.bias.copy_(torch.tensor([0.25, 1 / 3, 1.0]))
    return save_bundle(
        folder,
        network,
        data.vectors[data.rows("train")],
        rerankers=RERANKERS,
        ranges=swept_ranges(GRID),
        grid=(),
        embedder=data.embedding.name,
        embedder_revision=data.embedding.revision,
        dimension=DIMENSION,
        hidden=(DIMENSION, DIMENSION, DIMENSION),
        objective="paper",
        far_distance=0.5,
        data_fingerprint=data.fingerprint,
    )
