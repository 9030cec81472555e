"""The methods that an evaluation compares: each gives every question a context within the same budget."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from corag.arrangements import in_document_order, shuffled
from corag.evaluation_rows import Context
from corag.retrieval import Retrieval
from corag.search import Strategy
from corag.selection import Chosen, Selection
from corag.values import Configuration, Question

NAIVE, FIXED, AGENT, ORACLE, RAPTOR = "naive", "corag-fixed", "corag", "oracle", "raptor"
GREEDY, UPPER, DOCUMENT_ORDER, SHUFFLE = "greedy", "upper", "document-order", "shuffle"

STRATEGIES: dict[str, Strategy] = {
    NAIVE: "naive",
    DOCUMENT_ORDER: "mcts",
    SHUFFLE: "mcts",
    GREEDY: "greedy",
    FIXED: "mcts",
    AGENT: "mcts",
    UPPER: "exhaustive",
    ORACLE: "mcts",
}
"""The search behind each method. `document-order` and `shuffle` rearrange what `corag-fixed` chose."""

METHODS = (NAIVE, DOCUMENT_ORDER, SHUFFLE, GREEDY, RAPTOR, FIXED, AGENT, UPPER, ORACLE)
"""Every method, in the order of the tables."""

DEFAULT_METHODS = (NAIVE, FIXED, AGENT)
"""What the main job compares."""

Search = Callable[[Sequence[Selection]], list[Chosen]]


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions with their candidates and, by method, the configuration of each question where it is its own."""

    questions: Sequence[Question]
    retrievals: Sequence[Retrieval]
    fixed: Configuration
    own: Mapping[str, Sequence[Configuration]] = field(default_factory=dict)

    def configurations(self, method: str) -> list[Configuration]:
        """The configuration of each question under `method`."""
        return list(self.own.get(method) or [self.fixed] * len(self.questions))

    def part(self, places: Sequence[int]) -> "Asked":
        """Some of the questions."""
        return Asked(
            [self.questions[place] for place in places],
            [self.retrievals[place] for place in places],
            self.fixed,
            {name: [one[place] for place in places] for name, one in self.own.items()},
        )


def searched_contexts(method: str, asked: Asked, search: Search, seed: int, *, free: bool = False) -> list[Context]:
    """The context of each question under a method of `STRATEGIES`; `free` searches with λ = 0."""
    configurations = asked.configurations(method)
    if free:
        configurations = [replace(one, cost_coefficient=0.0) for one in configurations]
    usable = [place for place, retrieval in enumerate(asked.retrievals) if retrieval.error is None]
    selections = [
        Selection(
            asked.questions[place].qid,
            asked.questions[place].question,
            asked.retrievals[place].candidates,
            configurations[place],
            STRATEGIES[method],
        )
        for place in usable
    ]
    found = dict(zip(usable, search(selections), strict=True))
    contexts = []
    for place, question in enumerate(asked.questions):
        name, chosen = configurations[place].reranker, found.get(place)
        if chosen is None or chosen.error is not None:
            reason = asked.retrievals[place].error if chosen is None else chosen.error
            contexts.append(Context((), name, 0, reason))
        else:
            context = Context(chosen.chunks, name, chosen.scored)
            contexts.append(rearranged(context, method, seed, question.qid))
    return contexts


def rearranged(context: Context, arrangement: str, seed: int, qid: str) -> Context:
    """The context in document order or shuffled, where `arrangement` says so."""
    if arrangement == DOCUMENT_ORDER:
        return replace(context, chunks=in_document_order(context.chunks))
    if arrangement == SHUFFLE:
        return replace(context, chunks=shuffled(context.chunks, seed, qid))
    return context
