"""The agent as a folder of weights (safetensors) and plain text (json): what is registered, and all that is loaded.

    agent.json          the card: classes, ranges, embedder, thresholds, hashes
    model.safetensors   the network's weights
    neighbours.safetensors   the training questions' vectors, to tell a question far from them

Loading never unpickles; a folder that holds a pickle is refused.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from corag.errors import ModelError
from training.grid import Ranges, unit_rows

if TYPE_CHECKING:
    from training.network import AgentNetwork

CARD, WEIGHTS, NEIGHBOURS = "agent.json", "model.safetensors", "neighbours.safetensors"
FORMAT_VERSION = 1
PICKLES = frozenset({".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".bin", ".joblib", ".dill", ".pt2", ".npy", ".npz"})


class GridPoint(BaseModel):
    """One swept configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reranker: str
    iterations: int
    cost_coefficient: float
    exploration_coefficient: float


class AgentCard(BaseModel):
    """What a bundle says of itself.

    rerankers: the class list, in the order of the class head. far_distance: the least cosine distance to the training
    questions at which a question counts as far from them. candidate_mean: the mean of the candidates' vectors is read
    behind the question's own, so that `dimension` is twice the embedder's. data_fingerprint: of the labels and trials
    it learnt from. class_hash, weights_hash, neighbours_hash: SHA-256 of the class list and of the two files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format_version: Literal[1] = 1
    rerankers: tuple[str, ...] = Field(min_length=1)
    ranges: Ranges
    grid: tuple[GridPoint, ...]
    embedder: str
    embedder_revision: str
    dimension: int = Field(ge=1)
    hidden: tuple[int, int, int]
    objective: Literal["paper", "expected-rouge"]
    candidate_mean: bool = False
    far_distance: float = Field(ge=0)
    data_fingerprint: str
    torch_version: str
    class_hash: str
    weights_hash: str
    neighbours_hash: str

    @property
    def fingerprint(self) -> str:
        """A hash of the whole content: two bundles with the same one choose alike."""
        return _sha256(self.model_dump_json().encode())


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """A loaded agent: its card, its network, and the training questions' vectors [m, d], scaled to length 1."""

    card: AgentCard
    network: "AgentNetwork"
    neighbours: np.ndarray


def class_hash(rerankers: tuple[str, ...]) -> str:
    """The hash that a card records of its class list."""
    return _sha256(json.dumps(list(rerankers)).encode())


def save_bundle(folder: Path, network: "AgentNetwork", neighbours: np.ndarray, **fields: object) -> AgentCard:
    """The card of the bundle written to `folder`; `fields` are the card's, hashes and versions excepted."""
    import torch
    from safetensors.numpy import save as save_arrays
    from safetensors.torch import save as save_tensors

    folder.mkdir(parents=True, exist_ok=True)
    weights = save_tensors({name: value.contiguous() for name, value in sorted(network.state_dict().items())})
    vectors = save_arrays({"vectors": np.ascontiguousarray(neighbours, dtype=np.float32)})
    card = AgentCard.model_validate(
        fields
        | {
            "torch_version": torch.__version__,
            "class_hash": class_hash(tuple(fields["rerankers"])),  # type: ignore[arg-type]
            "weights_hash": _sha256(weights),
            "neighbours_hash": _sha256(vectors),
        }
    )
    (folder / WEIGHTS).write_bytes(weights)
    (folder / NEIGHBOURS).write_bytes(vectors)
    (folder / CARD).write_text(card.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return card


def load_bundle(folder: Path) -> Bundle:
    """The agent in `folder`, after every hash, name and shape was checked.

    Raises:
        ModelError: a file is missing, altered, of another format, or a pickle lies beside.
    """
    planted = sorted(path.name for path in folder.rglob("*") if path.suffix.lower() in PICKLES)
    if planted:
        raise ModelError(f"{folder}: refused, for {planted[0]} could run code when read; train the agent again")
    card = _read_card(folder)
    if class_hash(card.rerankers) != card.class_hash:
        raise ModelError(f"{folder / CARD}: the class list was altered after training; train the agent again")
    weights = _read(folder / WEIGHTS, card.weights_hash)
    vectors = _read(folder / NEIGHBOURS, card.neighbours_hash)
    return Bundle(card, _network(folder, card, weights), _vectors(folder, card, vectors))


def _read_card(folder: Path) -> AgentCard:
    path = folder / CARD
    try:
        return AgentCard.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ModelError(f"{path}: cannot read the agent ({error.strerror}); train or promote it again") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "file"
        raise ModelError(
            f"{path}: {key}: {first['msg']} (format {FORMAT_VERSION} expected); train the agent again"
        ) from None


def _read(path: Path, expected: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot read the agent ({error.strerror}); train or promote it again") from None
    if _sha256(content) != expected:
        raise ModelError(f"{path}: differs from what {CARD} recorded; train the agent again")
    return content


def _network(folder: Path, card: AgentCard, content: bytes) -> "AgentNetwork":
    from safetensors import SafetensorError
    from safetensors.torch import load

    from training.network import AgentNetwork

    configurations = len(card.grid) if card.objective == "expected-rouge" else 0
    network = AgentNetwork(card.dimension, card.hidden, len(card.rerankers), configurations)
    try:
        network.load_state_dict(load(content))
    except (RuntimeError, SafetensorError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise ModelError(f"{folder / WEIGHTS}: does not fit {CARD} ({reason}); train the agent again") from None
    return network.eval()


def _vectors(folder: Path, card: AgentCard, content: bytes) -> np.ndarray:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        vectors = load(content)["vectors"]
    except (KeyError, SafetensorError) as error:
        raise ModelError(f"{folder / NEIGHBOURS}: not readable ({error}); train the agent again") from None
    if vectors.ndim != 2 or vectors.shape[1] != card.dimension or not len(vectors):
        raise ModelError(
            f"{folder / NEIGHBOURS}: holds vectors {list(vectors.shape)}, {CARD} says {card.dimension} dimensions"
        )
    return unit_rows(vectors)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
