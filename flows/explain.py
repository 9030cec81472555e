"""Explain: one question through the real parts, shown step by step."""

from pathlib import Path

from corag.answer_prepare import question_vectors
from corag.errors import InputError
from corag.explain import Explanation, as_page, as_text, grow_tree, marginal_benefits
from corag.prompts import build_prompt
from corag.retrieval import retrieve
from corag.selection import parameters_of
from corag.values import Question
from flows.answer import load_agent
from flows.runtime import open_components


def explain_question(config_file: str | None, overrides: list[str], question: str, out: Path | None = None) -> str:
    """The explanation as text, or where it was written: a page for .html, else the text.

    Raises:
        InputError: the question is empty or cannot be searched, or `out` cannot be written.
    """
    if not question.strip():
        raise InputError("the question is empty; pass it in quotes")
    parts = open_components(config_file, overrides, "explain")
    config = parts.config
    (found,) = retrieve(parts.store, parts.embedder, [Question("explain", question)], config.retrieval)
    if found.error is not None:
        raise InputError(f"{found.error}; ask another question")
    agent = load_agent(parts)
    (choice,) = agent.choose(question_vectors([found], agent.dimension))
    scorer = parts.scorers()[choice.configuration.reranker]
    tree, singles = grow_tree(question, found.candidates, scorer, parameters_of(choice.configuration, config.search))
    chunks = [found.candidates[index].chunk for index in tree.order[tree.best]]
    prompt = build_prompt(question, [chunk.text for chunk in chunks], config.prompt)
    (generation,) = parts.generations.generate([prompt])
    told = Explanation(
        question=question,
        choice=choice,
        candidates=found.candidates,
        singles=singles,
        tree=tree,
        marginal=marginal_benefits(tree),
        prompt=prompt,
        prompt_tokens=generation.prompt_tokens,
        generation=generation,
    )
    if out is None:
        return as_text(told)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(as_page(told) if out.suffix == ".html" else as_text(told) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror}); name another --out") from None
    return f"explanation: {out}"
