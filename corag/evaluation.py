"""Compares methods on the same questions, candidates, generator and budget."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from corag.agents import Agent
from corag.answer_prepare import question_vectors
from corag.evaluation_methods import AGENT, ORACLE, RAPTOR, Asked, Search, searched_contexts
from corag.evaluation_rows import Context, Evaluated, Latency, evaluated
from corag.generation_memo import GenerationMemo
from corag.prompts import build_prompt
from corag.retrieval import Retrieval
from corag.settings import MetricSettings, PromptSettings
from corag.values import Configuration, Generation, Question

RaptorContexts = Callable[[Sequence[Retrieval]], list[Context]]
"""What `raptor` gives each retrieved question."""


@dataclass(frozen=True, slots=True)
class EvaluationParts:
    """What an evaluation needs, loaded at the edge.

    embed: called before `retrieve` where stages are timed, so that its memory serves `retrieve`.
    raptor: needed by the method of that name. oracle: by qid the configuration of a question's best trial; the method
    `oracle` has rows for these questions alone. copies: per text that several documents share, their ids.
    """

    retrieve: Callable[[Sequence[Question]], list[Retrieval]]
    search: Search
    generations: GenerationMemo
    agent: Agent
    fixed: Configuration
    prompt: PromptSettings
    metrics: MetricSettings
    seed: int = 0
    embed: Callable[[Sequence[str]], object] = lambda texts: None
    raptor: RaptorContexts | None = None
    oracle: Mapping[str, Configuration] = field(default_factory=dict)
    copies: Mapping[str, Collection[str]] = field(default_factory=dict)


def evaluate(
    questions: Sequence[Question],
    methods: Sequence[str],
    parts: EvaluationParts,
    progress: Callable[[int], None] = lambda done: None,
    latencies: Mapping[tuple[str, str], Latency] | None = None,
) -> list[Evaluated]:
    """Every question answered by every method; equal prompts are generated once.

    `latencies` has, by method and qid, what was measured (see `corag.evaluation_timing`).
    """
    return evaluate_asked(ask(questions, parts), methods, parts, progress, latencies)


def evaluate_asked(
    asked: Asked,
    methods: Sequence[str],
    parts: EvaluationParts,
    progress: Callable[[int], None] = lambda done: None,
    latencies: Mapping[tuple[str, str], Latency] | None = None,
) -> list[Evaluated]:
    """As `evaluate`, for questions whose candidates are known."""
    rows: list[Evaluated] = []
    for method in methods:
        own = asked_of(method, asked, parts)
        contexts = contexts_of(method, own, parts)
        generated = generate_answers(own.questions, contexts, parts)
        for question, context, generation in zip(own.questions, contexts, generated, strict=True):
            latency = (latencies or {}).get((method, question.qid), Latency())
            rows.append(evaluated(question, method, context, generation, parts.metrics, parts.copies, latency))
        progress(len(asked.questions))
    return rows


def ask(questions: Sequence[Question], parts: EvaluationParts) -> Asked:
    """The questions with their candidates and the configurations that the agent and the trials give them."""
    retrievals = parts.retrieve(questions)
    vectors = question_vectors(retrievals, parts.agent.dimension)
    own = {
        AGENT: [choice.configuration for choice in parts.agent.choose(vectors)],
        ORACLE: [parts.oracle.get(question.qid, parts.fixed) for question in questions],
    }
    return Asked(questions, retrievals, parts.fixed, own)


def asked_of(method: str, asked: Asked, parts: EvaluationParts) -> Asked:
    """The questions that a method can be compared on: all of them, but for `oracle` those with trials."""
    if method != ORACLE:
        return asked
    return asked.part([place for place, one in enumerate(asked.questions) if one.qid in parts.oracle])


def contexts_of(method: str, asked: Asked, parts: EvaluationParts) -> list[Context]:
    """The context of each question under a method."""
    if method != RAPTOR:
        return searched_contexts(method, asked, parts.search, parts.seed)
    assert parts.raptor is not None, "raptor needs its tree"
    return parts.raptor(asked.retrievals)


def generate_answers(
    questions: Sequence[Question], contexts: Sequence[Context], parts: EvaluationParts
) -> list[Generation | None]:
    """The generation of each question's context; None where there is no context to answer from."""
    ready = [place for place, context in enumerate(contexts) if context.error is None]
    prompts = [
        build_prompt(questions[place].question, [chunk.text for chunk in contexts[place].chunks], parts.prompt)
        for place in ready
    ]
    generated = dict(zip(ready, parts.generations.generate(prompts), strict=True))
    return [generated.get(place) for place in range(len(contexts))]
