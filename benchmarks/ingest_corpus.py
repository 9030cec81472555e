"""A corpus of any size for measurements: documents about many topics, each in the words of the bundled sample."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from corag.readers import read_documents
from corag.settings import SAMPLE

CHUNKS_PER_DOCUMENT = 40
CHUNK_TOKENS = 32
TOPICS = 400
FILES_PER_FOLDER = 500

_WORDS_PER_SENTENCE = 16
_WORDS_PER_TOPIC = 40
_TOPIC_SHARE = 0.6


class Topics:
    """Topics of words from the sample; the same seed gives the same texts."""

    def __init__(self, seed: int) -> None:
        documents = read_documents([SAMPLE], ("**/*",), ()).documents
        words = re.findall(r"[a-z]{3,}", " ".join(one.text for one in documents).lower())
        self._vocabulary = np.array(sorted(set(words)))
        self._seed = seed
        generator = np.random.default_rng(seed)
        self._topics = generator.integers(0, len(self._vocabulary), (TOPICS, _WORDS_PER_TOPIC))

    def text(self, number: int, sentences: int) -> str:
        """The text of document `number`: sentences that mix the words of its topic with any others."""
        generator = np.random.default_rng((self._seed, number))
        shape = (sentences, _WORDS_PER_SENTENCE)
        own = self._topics[number % TOPICS][generator.integers(0, _WORDS_PER_TOPIC, shape)]
        other = generator.integers(0, len(self._vocabulary), shape)
        chosen = self._vocabulary[np.where(generator.random(shape) < _TOPIC_SHARE, own, other)]
        return "\n".join(" ".join(row).capitalize() + "." for row in chosen)

    def questions(self, count: int) -> list[str]:
        """Questions about topics, of which no document holds the wording."""
        return [self.text(1_000_000_000 + number, 1).rstrip(".") + "?" for number in range(count)]


def write_corpus(folder: Path, chunks: int, topics: Topics) -> None:
    """Write about `chunks` chunks' worth of text files below `folder`; one sentence fills a chunk."""
    for number, path in _files(folder, chunks):
        if number % FILES_PER_FOLDER == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(topics.text(number, CHUNKS_PER_DOCUMENT), encoding="utf-8")


def _files(folder: Path, chunks: int) -> Iterator[tuple[int, Path]]:
    for number in range(-(-chunks // CHUNKS_PER_DOCUMENT)):
        yield number, folder / f"{number // FILES_PER_FOLDER:05d}" / f"{number:07d}.txt"
