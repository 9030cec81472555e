"""Explain: one question through the real parts, shown step by step."""

from dataclasses import replace
from pathlib import Path

from corag.answer_prepare import question_vectors
from corag.components import Components
from corag.errors import InputError
from corag.explain import Explanation, grow_tree
from corag.explain_page import as_page
from corag.explain_prompt import prompt_parts
from corag.explain_sources import document_texts
from corag.explain_text import as_text
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
    agent = load_agent(parts)
    asked = [Question("explain", question)]
    (found,) = retrieve(parts.store, parts.embedder, asked, config.retrieval, agent.candidate_mean)
    if found.error is not None:
        raise InputError(f"{found.error}; ask another question")
    (choice,) = agent.choose(question_vectors([found], agent.dimension))
    scorer = parts.scorers()[choice.configuration.reranker]
    tree, singles = grow_tree(question, found.candidates, scorer, parameters_of(choice.configuration, config.search))
    told = _asked(parts, question, Explanation(question, choice, found.candidates, singles, tree))
    if out is None:
        return as_text(told)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(as_page(told) if out.suffix == ".html" else as_text(told) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror}); name another --out") from None
    return f"explanation: {out}"


def _asked(parts: Components, question: str, told: Explanation) -> Explanation:
    """The explanation with the prompt and its answer, where there is a context; else nothing is asked."""
    chunks = told.chunks
    if not chunks:
        return told
    prompt = build_prompt(question, [chunk.text for chunk in chunks], parts.config.prompt)
    (generation,) = parts.generations.generate([prompt])
    cited = {chunk.doc_id for chunk in chunks}
    return replace(
        told,
        prompt=prompt,
        generation=generation,
        parts=prompt_parts(question, chunks, prompt, generation.prompt_tokens, parts.tokenizer),
        documents=document_texts(chunk for chunk in parts.chunks if chunk.doc_id in cited),
    )
