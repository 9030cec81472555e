"""The chunk store on real LanceDB tables in a temporary folder."""

import dataclasses
import multiprocessing
import tomllib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corag.errors import StoreError
from corag.settings import StoreSettings
from corag.store import ChunkStore
from corag.store_search import fuse
from corag.values import Candidate, Chunk

WIDTH = 16
REPO = Path(__file__).parent.parent


@dataclasses.dataclass(frozen=True)
class Identity:
    """The embedder that the tables here belong to."""

    name: str = "tiny"
    revision: str = "r1"
    dimension: int = WIDTH


def make_chunk(doc_id: str, position: int = 0, text: str = "text", **metadata: str) -> Chunk:
    """A chunk of `doc_id`."""
    return Chunk(
        f"{doc_id}#{position}", doc_id, position, 0, len(text), text, max(1, len(text.split())), "Title", metadata
    )


def unit_vectors(count: int, seed: int = 0) -> np.ndarray:
    """Random vectors [count, WIDTH] of length 1."""
    vectors = np.random.default_rng(seed).normal(size=(count, WIDTH)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def fill(store: ChunkStore, chunks: list[Chunk], vectors: np.ndarray, doc_hash: str = "h") -> None:
    """Write `chunks` as whole documents."""
    store.replace_documents(chunks, {chunk.doc_id: doc_hash for chunk in chunks}, vectors)


@pytest.fixture
def store(tmp_path: Path) -> ChunkStore:
    """An empty store."""
    return ChunkStore.create(str(tmp_path), StoreSettings(), Identity())


def brute_force(vectors: np.ndarray, query: np.ndarray, limit: int) -> list[int]:
    """Indices of the nearest vectors."""
    return list(np.lexsort((np.arange(len(vectors)), -(vectors @ query)))[:limit])


def test_a_chunk_comes_back_as_it_went_in(store: ChunkStore) -> None:
    """Ids, offsets, text, title and metadata survive byte for byte, whatever characters they hold."""
    chunk = Chunk("007#0", "18_19", 0, 3, 12, "L'été à\n中国 🚀 \x00", 9, 'a "title"', {"k=1": "v'; DROP", "a": "\\"})
    fill(store, [chunk], unit_vectors(1))
    assert [chunk] == store.get(["007#0"])
    assert store.documents() == {"18_19": "h"}
    fill(store, [make_chunk("001")], unit_vectors(1))
    assert [one.chunk_id for one in store.all_chunks()] == ["001#0", "007#0"]


def test_search_equals_brute_force(store: ChunkStore) -> None:
    """Below the index threshold the nearest chunks are exact, most similar first, in one batch or one by one."""
    vectors = unit_vectors(300)
    fill(store, [make_chunk(f"{index:03d}") for index in range(300)], vectors)
    queries = unit_vectors(5, seed=1)
    batch = store.search(queries, ["q"] * 5, 10)
    for query, found in zip(queries, batch, strict=True):
        assert [f"{index:03d}" for index in brute_force(vectors, query, 10)] == [one.chunk.doc_id for one in found]
        assert np.allclose(sorted(vectors @ query)[::-1][:10], [one.similarity for one in found], atol=1e-6)
        assert [found] == store.search(query[None], ["q"], 10)


@pytest.mark.parametrize("count", [1, 3, 20, 300])
def test_every_size_works_with_the_index_on(tmp_path: Path, count: int) -> None:
    """STO-10: a table of any size can be maintained with the least threshold; rows added later are found at once."""
    store = ChunkStore.create(str(tmp_path), StoreSettings(index_above_rows=256), Identity())
    fill(store, [make_chunk(f"a{index:04d}") for index in range(count)], unit_vectors(count))
    store.maintain()
    later = unit_vectors(1000, seed=2)
    fill(store, [make_chunk(f"b{index:04d}") for index in range(1000)], later)
    everything = np.concatenate([unit_vectors(count), later])
    names = [f"a{index:04d}" for index in range(count)] + [f"b{index:04d}" for index in range(1000)]
    queries = unit_vectors(20, seed=3)
    for upkeep in (lambda: None, store.optimize):
        upkeep()
        hits = 0
        for query, found in zip(queries, store.search(queries, ["q"] * 20, 10), strict=True):
            right = {names[index] for index in brute_force(everything, query, 10)}
            hits += len(right & {one.chunk.doc_id for one in found})
        assert hits / 200 >= 0.95


def test_more_asked_than_there_is(store: ChunkStore) -> None:
    """RER-05: a limit above the number of rows returns every row."""
    fill(store, [make_chunk(str(index)) for index in range(7)], unit_vectors(7))
    assert len(store.search(unit_vectors(1, 5), ["q"], 50)[0]) == 7


def test_a_document_is_replaced_whole_in_one_version(store: ChunkStore) -> None:
    """STO-06: a shorter new text leaves no chunk of the old one, other documents stay, and readers saw one change."""
    fill(store, [make_chunk("it's", position) for position in range(5)], unit_vectors(5))
    fill(store, [make_chunk("other")], unit_vectors(1))
    before = store.version
    fill(store, [make_chunk("it's", position, "new") for position in range(2)], unit_vectors(2), "h2")
    assert before + 1 == store.version
    assert store.count == 3
    assert store.documents() == {"it's": "h2", "other": "h"}
    assert [chunk.text for chunk in store.get(["it's#0", "it's#1"])] == ["new", "new"]


def test_deleting_takes_only_the_named_documents(store: ChunkStore) -> None:
    """Ids with quotes or SQL in them are data; deleting nothing writes nothing."""
    names = ["d1", "o'x", "'; DROP TABLE chunks; --", "1' OR '1'='1"]
    fill(store, [make_chunk(name) for name in names], unit_vectors(4))
    before = store.version
    store.delete_documents([])
    assert before == store.version
    store.delete_documents(["1' OR '1'='1", "absent"])
    assert set(names[:3]) == set(store.documents())


@pytest.mark.parametrize("mode", ["vector", "full-text", "hybrid"])
@pytest.mark.parametrize("threshold", [256, 100_000])
def test_a_narrow_filter_is_filled(tmp_path: Path, mode: str, threshold: int) -> None:
    """STO-07: five rare chunks, far from the query, are all returned in every mode, with and without an index."""
    store = ChunkStore.create(str(tmp_path), StoreSettings(index_above_rows=threshold), Identity())
    direction = unit_vectors(1, seed=9)
    near, far = direction + 0.1 * unit_vectors(995), -direction + 0.1 * unit_vectors(5, seed=4)
    common = [make_chunk(f"c{index}", text="about rivers", source="common") for index in range(995)]
    rare = [make_chunk(f"r{index}", text="rivers too", source="rare's") for index in range(5)]
    fill(store, common + rare, np.concatenate([near, far]).astype(np.float32))
    store.maintain()
    found = store.search(direction, ["rivers"], 5, mode, {"source": "rare's"})[0]  # type: ignore[arg-type]
    assert {f"r{index}" for index in range(5)} == {one.chunk.doc_id for one in found}


def test_full_text_finds_words_of_any_script(store: ChunkStore) -> None:
    """Chinese, French and codes are found by their words; query syntax is plain text."""
    texts = ["中国的首都是北京。", "L'été à Genève est doux.", "the code is QX-77", "something else"]
    fill(store, [make_chunk(str(index), text=text) for index, text in enumerate(texts)], unit_vectors(4))
    store.maintain()
    queries = ["北京在哪里", "geneve ete", "QX-77?", '"else AND (', "***"]
    found = store.search(unit_vectors(5, 1), queries, 3, "full-text")
    assert [[one.chunk.doc_id for one in hits] for hits in found] == [["0"], ["1"], ["2"], ["3"], []]
    fill(store, [make_chunk("new", text="北京 again")], unit_vectors(1))
    fresh = store.search(unit_vectors(1, 1), ["北京"], 3, "full-text")[0]
    assert {"0", "new"} == {one.chunk.doc_id for one in fresh}


def test_full_text_without_an_index_is_refused(tmp_path: Path) -> None:
    """Searching words without the index names the setting to change."""
    store = ChunkStore.create(str(tmp_path), StoreSettings(full_text=False), Identity())
    fill(store, [make_chunk("a")], unit_vectors(1))
    store.maintain()
    with pytest.raises(StoreError, match=r"store\.full_text"):
        store.search(unit_vectors(1), ["text"], 3, "hybrid")


def test_fusion_prefers_what_both_rankings_hold() -> None:
    """A chunk in both rankings beats the first of either; ties fall to similarity, then id."""
    a, b, c = (Candidate(make_chunk(name), similarity) for name, similarity in (("a", 0.9), ("b", 0.5), ("c", 0.9)))
    assert [b, a, c] == fuse([[a, b], [c, b]], 3)
    assert [b] == fuse([[a, b], [c, b]], 1)


def test_another_embedder_is_refused_and_nothing_changes(store: ChunkStore, tmp_path: Path) -> None:
    """STO-05: a table filled by one embedder names both when another is used, and keeps its rows and version."""
    fill(store, [make_chunk("a")], unit_vectors(1))
    before = store.version
    for other in (Identity("wide", "r9", 32), Identity("tiny", "r2", WIDTH)):
        for make in (ChunkStore.create, ChunkStore.open):
            with pytest.raises(StoreError, match=rf"width 16 by tiny.*{other.name}.*width {other.dimension}"):
                make(str(tmp_path), StoreSettings(), other)
    with pytest.raises(StoreError, match=r"width 16.*\[1, 32\]"):
        store.replace_documents([make_chunk("b")], {"b": "h"}, np.ones((1, 32), dtype=np.float32))
    assert (before, 1) == (store.version, store.count)


@pytest.mark.parametrize("value", [np.nan, 0.0, np.inf])
def test_unusable_vectors_are_refused(store: ChunkStore, value: float) -> None:
    """A zero or non-finite vector is neither stored nor searched with; the message names the document."""
    vectors = np.full((1, WIDTH), value, dtype=np.float32)
    with pytest.raises(StoreError, match="'bad'"):
        fill(store, [make_chunk("bad")], vectors)
    with pytest.raises(StoreError, match="not finite"):
        store.search(vectors, ["q"], 3)
    assert store.count == 0


def test_two_chunks_with_one_id_are_refused(store: ChunkStore) -> None:
    """The same id twice in one write is an error, and nothing is written."""
    with pytest.raises(StoreError, match="share an id"):
        fill(store, [make_chunk("a"), make_chunk("a")], unit_vectors(2))
    assert store.count == 0


def test_missing_table_and_missing_chunk(store: ChunkStore, tmp_path: Path) -> None:
    """Opening what is not there says to ingest; so does asking for a chunk that is gone."""
    with pytest.raises(StoreError, match="corag ingest"):
        ChunkStore.open(str(tmp_path), StoreSettings(table="other"), Identity())
    with pytest.raises(StoreError, match="'gone#0'"):
        store.get(["gone#0"])


def test_an_open_handle_sees_what_others_write(store: ChunkStore, tmp_path: Path) -> None:
    """STO-08: a long-lived reader finds rows that another handle wrote, and its version moves."""
    fill(store, [make_chunk("a")], unit_vectors(1))
    reader = ChunkStore.open(str(tmp_path), StoreSettings(), Identity())
    before = reader.version
    assert len(reader.search(unit_vectors(1), ["q"], 5)[0]) == 1
    fill(store, [make_chunk("b")], unit_vectors(1, 1))
    assert {"a", "b"} == {one.chunk.doc_id for one in reader.search(unit_vectors(1), ["q"], 5)[0]}
    assert before + 1 == reader.version
    assert len(reader.documents()) == 2


def test_old_versions_are_dropped(tmp_path: Path) -> None:
    """Upkeep writes nothing when nothing is due; `optimize` leaves every row and merges the files."""
    store = ChunkStore.create(str(tmp_path), StoreSettings(keep_versions=2), Identity())
    for index in range(25):
        fill(store, [make_chunk(f"d{index}")], unit_vectors(1, index))
    store.maintain()
    before = store.version
    store.maintain()
    assert before == store.version
    store.optimize()
    assert 25 == store.count == len(store.search(unit_vectors(1), ["q"], 50)[0])
    store.check_unique()


def write_all(folder: Path) -> None:
    """Make the table and write sixty chunks in three batches."""
    store = ChunkStore.create(str(folder), StoreSettings(), Identity())
    for start in range(0, 60, 20):
        fill(store, [make_chunk(f"d{index}") for index in range(start, start + 20)], unit_vectors(20, start))


@pytest.mark.slow
def test_concurrent_writers_leave_one_row_per_chunk(tmp_path: Path) -> None:
    """Four processes that make the table and write the same chunks at once, without a lock, leave each chunk once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["test_store", "lancedb"])
    writers = [context.Process(target=write_all, args=(tmp_path,)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0] * 4
    store = ChunkStore.open(str(tmp_path), StoreSettings(), Identity())
    store.check_unique()
    assert store.count == 60


def found_in_another_process(folder: Path) -> list[list[str]]:
    """The nearest ids to three vectors, by a store that is opened right here."""
    store = ChunkStore.open(str(folder), StoreSettings(), Identity())
    return [[one.chunk.chunk_id for one in found] for found in store.search(unit_vectors(3, 7), ["q"] * 3, 5)]


@pytest.mark.slow
def test_worker_processes_find_what_this_one_finds(store: ChunkStore, tmp_path: Path) -> None:
    """STO-09: workers that do not fork, and open the store themselves, end and give equal results, none or four."""
    fill(store, [make_chunk(f"d{index:03d}") for index in range(200)], unit_vectors(200))
    here = [found_in_another_process(tmp_path)] * 4
    for method in ("forkserver", "spawn"):
        with multiprocessing.get_context(method).Pool(4) as pool:
            assert pool.map_async(found_in_another_process, [tmp_path] * 4).get(timeout=300) == here


def test_the_library_is_one_that_was_tried() -> None:
    """STO-02: the declared range of lancedb is capped to the minor version that every test here runs on."""
    declared = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    (lancedb,) = [one for one in declared if one.startswith("lancedb")]
    low, high = (tuple(map(int, part.lstrip("<>=").split("."))) for part in lancedb.removeprefix("lancedb").split(","))
    installed = tuple(map(int, version("lancedb").split(".")[:2]))
    assert low[:2] <= installed < high[:2]
    assert high[:2] == (low[0], low[1] + 1)


def test_a_store_behind_a_url(tmp_path: Path) -> None:
    """A table at a `file://` URL is the table in that folder."""
    url = ChunkStore.create(f"file://{tmp_path}", StoreSettings(), Identity())
    fill(url, [make_chunk("a")], unit_vectors(1))
    assert ChunkStore.open(str(tmp_path), StoreSettings(), Identity()).count == 1


awkward = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=8)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(awkward, awkward), min_size=1, max_size=6, unique=True))
def test_filters_match_exactly(store: ChunkStore, rows: list[tuple[str, str]]) -> None:
    """STO-02: a filter on any field and value returns the chunks that have just this pair, and no other."""
    store.delete_documents(sorted(store.documents()))
    chunks = [make_chunk(str(index), **{}) for index in range(len(rows))]
    chunks = [
        dataclasses.replace(chunk, metadata={field: value}) for chunk, (field, value) in zip(chunks, rows, strict=True)
    ]
    fill(store, chunks, unit_vectors(len(rows)))
    for index, (field, value) in enumerate(rows):
        if field in ("doc_id", "title"):
            continue
        found = store.search(unit_vectors(1), ["q"], 10, "vector", {field: value})[0]
        assert [str(index)] == [one.chunk.doc_id for one in found]
