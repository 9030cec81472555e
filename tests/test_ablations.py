"""Ablations change one setting each, say beforehand what they cost, and resume from what is remembered."""

import pandas as pd
import pytest

from corag.ablation_stores import documents_of_share
from corag.ablations import ABLATION_COLUMNS, ABLATIONS, cell_work, named, plan
from corag.agents import fixed_configuration
from corag.errors import ConfigError
from corag.evaluation_methods import AGENT, FIXED
from corag.settings import AgentSettings, Config
from corag.values import Question
from flows.ablations import planned
from tests.sweeps import FIXED as TOY_FIXED
from tests.sweeps import toy_input
from training.loss_ablation import ablate_losses

CONFIG = Config()


def changes(cell):
    """The keys in which the cell's configuration differs from the given one."""
    before, after = CONFIG.model_dump(), cell.config.model_dump()
    found = {}
    for section, held in before.items():
        if isinstance(held, dict):
            for name, value in held.items():
                if after[section][name] != value:
                    found[f"{section}.{name}"] = after[section][name]
    return found


def test_each_cell_changes_its_own_setting_alone():
    """Of the whole configuration nothing else differs."""
    keys = {
        "exploration": {"search.fixed"},
        "cost": {"search.fixed"},
        "reranker": {"search.fixed"},
        "budget": {"search.budget"},
        "chunk_tokens": {"chunking.chunk_tokens"},
        "backup": {"search.selection", "search.backup"},
        "corpus_size": set(),
    }
    for name, allowed in keys.items():
        cells = plan(CONFIG, [name])
        assert len(cells) >= 3
        assert all(cell.ablation == name and set(changes(cell)) <= allowed for cell in cells)
        assert len({cell.setting for cell in cells}) == len(cells)


def test_the_values_are_those_of_the_paper():
    """Exploration 0 to 3, λ 0 to 0.3, three budgets and chunk sizes, each reranker and the agent, three backups."""
    values = {name: [cell.value for cell in plan(CONFIG, [name])] for name in ("exploration", "cost", "budget")}
    assert values == {"exploration": [0, 1, 2, 3], "cost": [0, 0.1, 0.2, 0.3], "budget": [128, 256, 512]}
    assert [cell.value for cell in plan(CONFIG, ["chunk_tokens"])] == [64, 128, 256]
    rerankers = plan(CONFIG, ["reranker"])
    assert [cell.setting for cell in rerankers] == ["late-interaction", "static", "lexical", "agent"]
    assert [cell.method for cell in rerankers] == [FIXED, FIXED, FIXED, AGENT]
    assert [cell.setting for cell in plan(CONFIG, ["backup"])] == ["best-first", "uct, best child", "uct, all children"]


def test_a_value_that_does_not_fit_the_rest_is_left_out():
    """Twice the budget would not leave room for the answer; half of it would not hold one chunk."""
    narrow = Config.model_validate({"generator": {"context_length": 400}, "chunking": {"chunk_tokens": 200}})
    assert [cell.value for cell in plan(narrow, ["budget"])] == [256]


def test_all_stands_for_every_ablation_and_another_name_is_refused():
    """The message names the known ones."""
    assert named("all") == list(ABLATIONS)
    assert named("cost, budget,cost") == ["cost", "budget"]
    assert named(None) == []
    with pytest.raises(ConfigError, match="exploration"):
        named("magic")


def test_the_plan_tells_the_most_that_it_can_cost():
    """One setting on one question with iterations 1 scores each candidate once."""
    config = Config.model_validate({"search": {"fixed": {"iterations": 1}}, "retrieval": {"top_k": 5}})
    cell = plan(config, ["backup"])[0]
    fixed = fixed_configuration(config.search.fixed, ["lexical"])
    assert cell_work(cell, fixed, 7).pairs == 7 * 5
    assert cell_work(cell, fixed, 7).calls == 7
    *_, agent = plan(config, ["reranker"])
    assert cell_work(agent, fixed, 7).pairs > 7 * 5
    assert "3 settings × 7 questions = 21 cells; at most 105 reranker pairs and 21 LLM calls" in planned(
        config, ["backup"], 7
    )


def test_a_part_of_the_corpus_keeps_what_is_relevant_and_grows():
    """Relevant documents are in every part, a smaller part is within a larger one, and the whole is the whole."""
    doc_ids = [f"d{number}" for number in range(40)]
    asked = [Question("q", "what?", (), ("d7", "d31", "not stored"))]
    parts = [documents_of_share(doc_ids, share, asked, seed=3) for share in (0.01, 0.25, 0.5, 1.0)]
    assert [len(part) for part in parts] == [2, 10, 20, 40]
    assert all({"d7", "d31"} <= part for part in parts)
    assert parts[0] < parts[1] < parts[2] < parts[3]


def test_the_loss_terms_are_ablated_by_replay(tmp_path):
    """An agent with every term, and one without each; the trials are recorded, so that no model is called."""
    rows = ablate_losses(
        toy_input(),
        AgentSettings(epochs=4, hidden=(8, 8, 8), batch_size=4),
        configured=TOY_FIXED,
        seed=0,
        work=tmp_path,
    )
    assert [row.setting for row in rows] == [
        "all terms",
        "without contrastive",
        "without classification",
        "without regression",
    ]
    assert all(0 <= row.rouge_l.mean <= 1 and row.tokens > 0 for row in rows)


@pytest.mark.slow
def test_ablations_of_a_finished_project(finished):
    """One command adds the table; a second time nothing is scored or asked again, and the store stays as it was."""
    out = finished.root / "ablated"
    store = sorted((finished.root / "ws" / "lancedb").rglob("*.lance"))
    command = ("evaluate", "--questions", finished.root / "held-out.jsonl", "--out", out, "--methods", "naive")
    ended = finished.run(*command, "--ablations", "all")
    assert ended.exit_code == 0, ended.output
    table = pd.read_csv(out / "tables" / "ablations.csv")
    assert tuple(table.columns) == ABLATION_COLUMNS
    assert set(table["ablation"]) >= {
        "exploration",
        "cost",
        "budget",
        "reranker",
        "chunk_tokens",
        "corpus_size",
        "backup",
    }
    assert (table["n"] == 3).all() or (table.loc[table["ablation"] != "loss", "n"] == 3).all()
    sizes = table.loc[table["ablation"] == "corpus_size", "value"].tolist()
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    assert sorted((finished.root / "ws" / "lancedb").rglob("*.lance")) == store
    again = finished.run(*command, "--ablations", "all")
    assert again.exit_code == 0, again.output
    scores = [name for name in ABLATION_COLUMNS if name != "search_ms"]
    pd.testing.assert_frame_equal(pd.read_csv(out / "tables" / "ablations.csv")[scores], table[scores])
