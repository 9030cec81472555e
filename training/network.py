"""The agent's network (paper §5.2): a three-layer encoder shared by both siamese branches, and its heads."""

from dataclasses import dataclass

from torch import Tensor, nn

from training.grid import PARAMETERS


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the heads say of n questions.

    features: [n, hidden[2]] the feature map, which the contrastive loss shapes.
    logits: [n, k] one a reranker.
    parameters: [n, 3] iterations, λ and c, scaled to [0, 1] but not clipped.
    leads: [n, g] the expected ROUGE-L of each configuration above the question's mean; g = 0 unless asked for.
    """

    features: Tensor
    logits: Tensor
    parameters: Tensor
    leads: Tensor


class AgentNetwork(nn.Module):
    """Maps question vectors [n, d] to a Prediction. Both branches of a pair pass through the same weights."""

    def __init__(self, dimension: int, hidden: tuple[int, int, int], rerankers: int, configurations: int = 0) -> None:
        super().__init__()
        first, second, third = hidden
        self.encoder = nn.Sequential(
            nn.Linear(dimension, first),
            nn.ReLU(),
            nn.Linear(first, second),
            nn.ReLU(),
            nn.Linear(second, third),
            nn.ReLU(),
        )
        self.reranker_head = nn.Linear(third, rerankers)
        self.parameter_head = nn.Linear(third, PARAMETERS)
        self.lead_head = nn.Linear(third, configurations) if configurations else None

    def forward(self, vectors: Tensor) -> Prediction:
        """The prediction for vectors float32 [n, d]."""
        features = self.encoder(vectors)
        leads = self.lead_head(features) if self.lead_head is not None else features.new_zeros((len(vectors), 0))
        return Prediction(features, self.reranker_head(features), self.parameter_head(features), leads)
