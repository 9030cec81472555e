"""Keeps answers for later nights: one whose grounds did not change need not be searched and generated again."""

import json
from collections.abc import Mapping, Sequence

from corag.answer_rows import AnswerRow
from corag.memo import MemoTable, key
from corag.settings import Config
from corag.values import Candidate, Configuration, Question


class KeptAnswers:
    """Rows by the grounds of their answer. `scope` names all that is the same for every question of a run."""

    def __init__(self, table: MemoTable, scope: str) -> None:
        self._table = table
        self._scope = scope

    def grounds(self, question: Question, candidates: Sequence[Candidate], configuration: Configuration) -> str:
        """The key of all that the answer rests on: question, retrieved chunks with their text, and configuration."""
        chunks = [
            part
            for one in candidates
            for part in (one.chunk.chunk_id, one.chunk.doc_id, one.chunk.start, one.chunk.end, one.chunk.text)
        ]
        chosen = (
            configuration.reranker,
            configuration.iterations,
            configuration.cost_coefficient,
            configuration.exploration_coefficient,
        )
        return key(self._scope, question.question, *chosen, *chunks)

    def find(self, grounds: Sequence[str]) -> dict[str, AnswerRow]:
        """The rows that are kept, by their grounds."""
        found = self._table.get_many(sorted(set(grounds)))
        return {name: AnswerRow.model_validate_json(str(row)) for name, row in found.items()}

    def keep(self, rows: Mapping[str, AnswerRow]) -> None:
        """Keep `rows` by their grounds; failed rows and those that were kept already are left out."""
        fresh = {name: row for name, row in rows.items() if row.status != "failed" and not row.reused}
        self._table.put_many({name: row.model_dump_json() for name, row in sorted(fresh.items())})


def reuse_scope(config: Config, generator: str) -> str:
    """What decides an answer beside its question, its chunks and its configuration; `generator` is its identity."""
    decisive = config.model_dump(mode="json", include={"rerankers", "search", "prompt"})
    return key(json.dumps(decisive, sort_keys=True), generator)
