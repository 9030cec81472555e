"""An evaluation with real searches and memory over made-up candidates, rerankers and answers."""

from dataclasses import dataclass, field, replace

from corag.agents import FixedAgent
from corag.evaluation import EvaluationParts
from corag.generation_memo import GenerationMemo
from corag.memo import Memo
from corag.order_scorer import OrderScorer
from corag.retrieval import Retrieval
from corag.selection import select
from corag.settings import MetricSettings, PromptSettings, SearchSettings
from corag.values import Configuration, Generation, Question
from tests.search_cases import FakeReranker, candidates, made_up

SUBJECTS = ("mills", "salt", "bridges", "bells", "maps", "tolls")
FIXED = Configuration("one", 10, 0.3, 2.4)
SEARCH = SearchSettings(budget=40, max_chunks=4)


@dataclass
class Reader:
    """A generator that repeats its context, unless told otherwise, fails where told, and notes what it was asked."""

    says: dict = field(default_factory=dict)
    fails: tuple = ()
    seen: list = field(default_factory=list)

    def generate(self, prompts):
        """One answer a prompt."""
        self.seen += [prompt.user for prompt in prompts]
        return [self._answer(prompt.user) for prompt in prompts]

    def _answer(self, user):
        if any(name in user for name in self.fails):
            return Generation("", 0, 0, "error", "the model gave up")
        told = next((text for name, text in self.says.items() if name in user), None)
        said = told if told is not None else " ".join(user.split("\n\n")[:-1])
        return Generation(said, len(user.split()), len(said.split()), "stop")


def texts_of(question):
    """Six chunk texts about what is asked."""
    return [f"{question} {word}" for word in SUBJECTS]


def retrieved(asked):
    """The candidates of each question; none where the question is blank, and an error for `broken`."""
    return [
        Retrieval(one.qid, (), None, "no usable vector")
        if one.question == "broken"
        else Retrieval(one.qid, tuple(candidates(texts_of(one.question), prefix=f"{one.qid}-")), None)
        for one in asked
    ]


def evaluation(reader=None, score=made_up, search_settings=SEARCH, **changes):
    """The parts of an evaluation, over two rerankers and a memory of their own."""
    memo = Memo(None)
    rerankers = [
        FakeReranker(lambda query, texts, name=name: score(f"{name} {query}", texts), name, name)
        for name in ("one", "two")
    ]
    table = memo.table("scores")
    reader = reader or Reader()
    parts = EvaluationParts(
        retrieve=retrieved,
        search=lambda selections: select(
            selections, {one.name: OrderScorer(one, table, "per_query") for one in rerankers}, search_settings
        ),
        generations=GenerationMemo("reader", lambda: reader, memo.table("generations")),
        agent=FixedAgent(replace(FIXED, reranker="two")),
        fixed=FIXED,
        prompt=PromptSettings(),
        metrics=MetricSettings(),
    )
    return replace(parts, **changes)


def questions(count, answer="{} maps and bells", relevant=4):
    """So many questions with a reference, whose relevant document is that of one candidate."""
    return [
        Question(
            f"q{number}",
            f"town {number}",
            (answer.format(f"town {number}"),),
            (f"doc-q{number}-{relevant}",),
            {"kind": "fact", "language": "en"},
        )
        for number in range(count)
    ]
