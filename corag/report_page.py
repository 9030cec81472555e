"""The report of an evaluation: plots and one self-contained page, drawn from the tables in its folder."""

from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from corag.errors import InputError
from corag.pages import page, paragraph, picture, section, table
from corag.report_plots import ABLATIONS, ATTRIBUTION, METHODS, Tables, report_plots

if TYPE_CHECKING:
    import pandas as pd

NAIVE, AGENT = "naive", "corag"
SHOWN = {
    "method": "method",
    "rouge_l": "ROUGE-L",
    "interval": "95 % interval",
    "gain": "gain",
    "significant": "significant",
    "rouge_1": "ROUGE-1",
    "rouge_2": "ROUGE-2",
    "exact_match": "exact",
    "token_f1": "F1",
    "recall": "recall",
    "context_tokens": "context tokens",
    "rouge_l_per_100_tokens": "ROUGE-L per 100 tokens",
    "reranker_pairs": "pairs",
    "llm_calls": "LLM calls",
    "n_scored": "scored",
    "n_failed": "failed",
}
ABLATION_PLOTS = ("ablation_curves.png", "corpus_size.png", "ablations.png")
STYLE = """
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); gap: 0 1rem; }
.plots figure:has(img[alt^="ROUGE-L by search setting"]) { grid-column: 1 / -1; }
.case { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; margin: 0 0 1.5rem; }
.case > div { background: var(--panel); border-radius: 6px; padding: .8rem; min-width: 0; }
.case p { margin: .2rem 0 .6rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 50rem) { .case { grid-template-columns: 1fr; } }
"""


def draw_report(folder: Path) -> Path:
    """The page `report.html` in the folder of an evaluation, drawn with `plots/` from its tables.

    `results.parquet` and `tables/methods.csv` are needed; the page leaves out what other tables would tell.

    Raises:
        InputError: one of the two is missing.
    """
    import pandas as pd

    results_file, names = folder / "results.parquet", (METHODS, ATTRIBUTION, ABLATIONS, "retrieval", "cases")
    tables = {name: _read(folder / "tables" / f"{name}.csv") for name in names}
    held: Tables = {name: frame for name, frame in tables.items() if frame is not None}
    if METHODS not in held or not results_file.is_file():
        raise InputError(f"{folder}: holds no evaluation; write one with `corag evaluate --out {folder}`")
    plots = report_plots(pd.read_parquet(results_file), held)
    (folder / "plots").mkdir(exist_ok=True)
    for name, (png, _) in plots.items():
        (folder / "plots" / name).write_bytes(png)
    path = folder / "report.html"
    path.write_text(report_page(held, plots), encoding="utf-8")
    return path


def report_page(tables: Tables, plots: dict[str, tuple[bytes, str]]) -> str:
    """The page of these tables and plots."""
    parts = [
        section("Methods", _methods(tables[METHODS])),
        section("Plots", _gallery(plots, [name for name in plots if name not in ABLATION_PLOTS])),
    ]
    if ATTRIBUTION in tables:
        parts.append(section("Where the gain comes from", _plain(tables[ATTRIBUTION])))
    if ABLATIONS in tables:
        drawn = _gallery(plots, [name for name in plots if name in ABLATION_PLOTS])
        parts.append(section("Ablations", drawn, _plain(tables[ABLATIONS])))
    if "retrieval" in tables:
        parts.append(section("Retrieval", _plain(tables["retrieval"])))
    if "cases" in tables and len(tables["cases"]):
        parts.append(section("Case studies", *[_case(row) for _, row in tables["cases"].iterrows()]))
    verdict = [paragraph(line) for line in verdict_lines(tables[METHODS])]
    return page("Methods compared", *verdict, *parts, style=STYLE)


def verdict_lines(methods: "pd.DataFrame") -> list[str]:
    """What the comparison says in words: the best method, and how `corag` does beside `naive`."""
    rows = {str(row["method"]): row for _, row in methods.iterrows()}
    best = methods.sort_values(["rouge_l", "context_tokens"], ascending=[False, True]).iloc[0]
    lines = [
        f"{best['method']} reaches the highest ROUGE-L, {best['rouge_l']:.3f}, with {best['context_tokens']:.0f} "
        f"context tokens a question, over {int(best['n_scored'])} questions with references."
    ]
    if NAIVE in rows and AGENT in rows:
        mine, naive = rows[AGENT], rows[NAIVE]
        change = (mine["rouge_l"] - naive["rouge_l"]) / naive["rouge_l"] if naive["rouge_l"] else float("nan")
        tokens = mine["context_tokens"] / naive["context_tokens"] if naive["context_tokens"] else float("nan")
        sure = "more than chance explains" if mine["significant"] else "within what chance explains"
        lines.append(
            f"{AGENT} differs from {NAIVE} by {change:+.0%} in ROUGE-L ({sure}), at {tokens:.0%} of its tokens."
        )
    failed = int(methods["n_failed"].sum())
    if failed:
        lines.append(f"{failed} answers failed and count as 0.")
    return lines


def _gallery(plots: dict[str, tuple[bytes, str]], names: list[str]) -> Markup:
    return Markup('<div class="plots">{}</div>').format(Markup("").join(picture(*plots[name]) for name in names))


def _methods(methods: "pd.DataFrame") -> Markup:
    rows = []
    for _, row in methods.iterrows():
        cells: list[object] = []
        for name in SHOWN:
            if name == "interval":
                cells.append(f"{row['rouge_l_low']:.3f} to {row['rouge_l_high']:.3f}")
            elif name == "significant":
                cells.append("yes" if row[name] is True or str(row[name]) == "True" else "")
            else:
                cells.append(_value(row[name]))
        rows.append(cells)
    return table(list(SHOWN.values()), rows)


def _plain(frame: "pd.DataFrame") -> Markup:
    rows = [[_value(value) for value in row] for row in frame.itertuples(index=False)]
    return table([str(name).replace("_", " ") for name in frame.columns], rows)


SIDE = Markup(
    "<div><strong>{} · ROUGE-L {}</strong><p>{}</p><details><summary>context</summary><p>{}</p></details></div>"
)
CASE = Markup('<h3>{} <span class="note">({}, gain {})</span></h3><p>Reference: {}</p><div class="case">{}</div>')


def _case(row: "pd.Series") -> Markup:
    sides = Markup("").join(
        SIDE.format(name, f"{row[f'{name}_rouge_l']:.3f}", _text(row[f"{name}_answer"]), _text(row[f"{name}_context"]))
        for name in (NAIVE, AGENT)
    )
    return CASE.format(row["question"], row["qid"], f"{row['gain']:+.3f}", _text(row["reference"]), sides)


def _read(path: Path) -> "pd.DataFrame | None":
    import pandas as pd

    # Ids such as 007 stay text.
    return pd.read_csv(path, dtype={"qid": str, "setting": str}) if path.is_file() else None


def _text(value: object) -> str:
    return "" if value is None or value != value else str(value)


def _value(value: object) -> object:
    """The value as a cell: a missing one is empty, a whole number has no decimals."""
    if value is None or value != value:
        return None
    number = getattr(value, "item", lambda: value)()
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) >= 10 else number
