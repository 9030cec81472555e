"""One language model call per distinct (prompt, generator settings): duplicates and repeats are remembered."""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from corag.generators.base import Generator
from corag.memo import MemoTable, key
from corag.values import Generation, Prompt


@dataclass
class CallCount:
    """Language model calls asked for, made, and answered from the memo or from a twin in the same batch."""

    asked: int = 0
    made: int = 0

    @property
    def saved(self) -> int:
        """Calls that were not needed."""
        return self.asked - self.made


class GenerationMemo:
    """Generates through `load()`'s generator, which is loaded at the first prompt that is not remembered.

    Results are committed every `commit_every` calls, so that a killed run repeats at most that many. A failed
    generation is returned but never remembered. Several threads may share it; the generator must allow for that.
    """

    def __init__(self, identity: str, load: Callable[[], Generator], table: MemoTable, commit_every: int = 64) -> None:
        self.identity = identity
        self._load = load
        self._table = table
        self._commit_every = commit_every
        self.calls = CallCount()
        self._lock = threading.Lock()
        self._generator: Generator | None = None

    @property
    def given_up(self) -> bool:
        """Whether the generator was loaded and has given up on its server."""
        return self._generator is not None and self._generator.given_up

    def generate(
        self, prompts: Sequence[Prompt], progress: Callable[[int], None] = lambda done: None
    ) -> list[Generation]:
        """One generation a prompt, in the order given; `progress` gets the number of calls just finished."""
        keys = [key(self.identity, prompt.system, prompt.user) for prompt in prompts]
        known = {name: _decode(value) for name, value in self._table.get_many(sorted(set(keys))).items()}
        missing = {name: prompt for name, prompt in zip(keys, prompts, strict=True) if name not in known}
        with self._lock:
            self.calls.asked += len(prompts)
        progress(len(prompts) - len(missing))
        # Equal lengths share a batch: padding is work that nobody reads.
        pending = sorted(missing.items(), key=lambda item: (len(item[1].user), item[0]))
        for start in range(0, len(pending), self._commit_every):
            batch = pending[start : start + self._commit_every]
            made = self._loaded().generate([prompt for _, prompt in batch])
            with self._lock:
                self.calls.made += len(batch)
            fresh = {name: generation for (name, _), generation in zip(batch, made, strict=True)}
            self._table.put_many(
                {name: json.dumps(asdict(one)) for name, one in sorted(fresh.items()) if one.error is None}
            )
            known.update(fresh)
            progress(len(batch))
        return [known[name] for name in keys]

    def _loaded(self) -> Generator:
        with self._lock:
            if self._generator is None:
                self._generator = self._load()
            return self._generator


def _decode(value: object) -> Generation:
    return Generation(**json.loads(str(value)))
