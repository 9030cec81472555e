"""The plots of an evaluation as PNG bytes, drawn from its tables; a plot whose table is missing is left out."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from corag.drawing import draw

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

METHODS, ATTRIBUTION, ABLATIONS = "methods", "attribution", "ablations"
STAGES = ("embed", "retrieve", "search", "generate")
PARTS = ("set", "order", "stopping")
CURVES = {"exploration": "exploration coefficient c", "cost": "cost coefficient λ", "budget": "budget, tokens"}

Tables = Mapping[str, "pd.DataFrame"]
Plot = Callable[["Axes"], None]


def report_plots(results: "pd.DataFrame", tables: Tables) -> dict[str, tuple[bytes, str]]:
    """File name → (PNG, caption) for all that the tables tell.

    results: one row a question and method. tables: by name; `methods` is needed.
    """
    methods = tables[METHODS]
    plots: dict[str, tuple[list[Plot], str]] = {
        "quality_tokens.png": (
            [lambda axes: _quality(axes, methods)],
            "Quality against context tokens; the line joins the methods that no other beats in both.",
        ),
        "rouge_by_method.png": (
            [lambda axes: _rouge(axes, methods)],
            "ROUGE-L by method with 95 % bootstrap intervals.",
        ),
        "latency.png": ([lambda axes: _latency(axes, methods)], "Milliseconds a question by stage."),
        "tokens_used.png": (
            [lambda axes: _tokens(axes, results)],
            "Context tokens that each method used, over the questions.",
        ),
        "rerankers.png": ([lambda axes: _rerankers(axes, results)], "Questions by reranker, for each method."),
    }
    if ATTRIBUTION in tables:
        attribution = tables[ATTRIBUTION]
        plots["attribution.png"] = (
            [lambda axes: _attribution(axes, attribution)],
            "Gain over naive, split into which set, which order, and when it stopped.",
        )
    if ABLATIONS in tables:
        plots |= _ablation_plots(tables[ABLATIONS])
    return {name: (draw(panels), caption) for name, (panels, caption) in plots.items()}


def pareto_front(methods: "pd.DataFrame") -> list[str]:
    """The methods that no other beats in both ROUGE-L and context tokens, by rising tokens."""
    front: list[str] = []
    best = float("-inf")
    for _, row in methods.sort_values(["context_tokens", "rouge_l"], ascending=[True, False]).iterrows():
        if row["rouge_l"] > best:
            front.append(str(row["method"]))
            best = float(row["rouge_l"])
    return front


def _ablation_plots(ablations: "pd.DataFrame") -> dict[str, tuple[list[Plot], str]]:
    plots: dict[str, tuple[list[Plot], str]] = {}
    numeric = [name for name in CURVES if (ablations["ablation"] == name).any()]
    if numeric:
        panels: list[Plot] = [
            partial(_curve, rows=ablations[ablations["ablation"] == name], label=CURVES[name]) for name in numeric
        ]
        plots["ablation_curves.png"] = (panels, "ROUGE-L by search setting, with 95 % intervals; tokens as bars.")
    size = ablations[ablations["ablation"] == "corpus_size"]
    if len(size):
        plots["corpus_size.png"] = ([lambda axes: _growth(axes, size)], "Search time by the number of chunks.")
    others = ablations[~ablations["ablation"].isin([*CURVES, "corpus_size"])]
    if len(others):
        plots["ablations.png"] = ([lambda axes: _settings(axes, others)], "ROUGE-L by setting, with 95 % intervals.")
    return plots


def _quality(axes: "Axes", methods: "pd.DataFrame") -> None:
    front = methods[methods["method"].isin(pareto_front(methods))].sort_values("context_tokens")
    axes.plot(front["context_tokens"], front["rouge_l"], color="#9aa3ad", linestyle="--", zorder=1)
    for place, (_, row) in enumerate(methods.iterrows()):
        axes.scatter(row["context_tokens"], row["rouge_l"], zorder=2)
        above = place % 2 == 0
        axes.annotate(
            row["method"],
            (row["context_tokens"], row["rouge_l"]),
            xytext=(5, 6 if above else -12),
            textcoords="offset points",
            fontsize=8,
        )
    axes.margins(x=0.18, y=0.12)
    axes.set(xlabel="context tokens a question", ylabel="ROUGE-L", title="Quality against tokens")


def _rouge(axes: "Axes", methods: "pd.DataFrame") -> None:
    shown = methods.iloc[::-1]
    spread = [shown["rouge_l"] - shown["rouge_l_low"], shown["rouge_l_high"] - shown["rouge_l"]]
    axes.errorbar(shown["rouge_l"], list(shown["method"]), xerr=spread, fmt="o", capsize=3)
    axes.set(xlabel="ROUGE-L", title="ROUGE-L by method")
    axes.grid(axis="x", alpha=0.3)


def _legend_below(axes: "Axes") -> None:
    """The legend where it covers no bar."""
    axes.legend(fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _latency(axes: "Axes", methods: "pd.DataFrame") -> None:
    shown = methods.iloc[::-1]
    left = [0.0] * len(shown)
    for stage in STAGES:
        times = list(shown[f"latency_{stage}_ms"].fillna(0.0))
        axes.barh(list(shown["method"]), times, left=left, label=stage)
        left = [below + time for below, time in zip(left, times, strict=True)]
    axes.set(xlabel="milliseconds a question", title="Latency")
    _legend_below(axes)


def _tokens(axes: "Axes", results: "pd.DataFrame") -> None:
    names = list(dict.fromkeys(results["method"]))[::-1]
    axes.boxplot(
        [results.loc[results["method"] == name, "context_tokens"].to_numpy() for name in names],
        orientation="horizontal",
        tick_labels=names,
    )
    axes.set(xlabel="context tokens", title="Tokens used", xlim=(0, None))


def _rerankers(axes: "Axes", results: "pd.DataFrame") -> None:
    counts = results.groupby(["method", "reranker"]).size().unstack(fill_value=0)
    counts = counts.loc[list(dict.fromkeys(results["method"]))[::-1]]
    left = [0.0] * len(counts)
    for name in counts.columns:
        axes.barh(list(counts.index), counts[name], left=left, label=str(name) or "none")
        left = [below + value for below, value in zip(left, counts[name], strict=True)]
    axes.set(xlabel="questions", title="Rerankers")
    _legend_below(axes)


def _attribution(axes: "Axes", attribution: "pd.DataFrame") -> None:
    names = list(dict.fromkeys(attribution["method"]))[::-1]
    height = 0.8 / len(PARTS)
    for place, part in enumerate(PARTS):
        own = attribution[attribution["part"] == part].set_index("method").reindex(names)
        where = [row + (1 - place) * height for row in range(len(names))]
        spread = [(own["gain"] - own["low"]).fillna(0), (own["high"] - own["gain"]).fillna(0)]
        axes.barh(where, own["gain"].fillna(0), height, xerr=spread, capsize=2, label=part)
    axes.axvline(0, color="#5b636c", linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="gain in ROUGE-L over naive", title="Where the gain comes from")
    _legend_below(axes)


def _curve(axes: "Axes", rows: "pd.DataFrame", label: str) -> None:
    rows = rows.sort_values("value")
    spread = [rows["rouge_l"] - rows["rouge_l_low"], rows["rouge_l_high"] - rows["rouge_l"]]
    places = list(range(len(rows)))
    bars = axes.twinx()
    bars.bar(places, rows["context_tokens"], color="#dfe4ea", width=0.6)
    bars.set(ylabel="context tokens")
    axes.set_zorder(bars.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.errorbar(places, rows["rouge_l"], yerr=spread, marker="o", capsize=3)
    axes.set_xticks(places, [f"{value:g}" for value in rows["value"]])
    axes.set(xlabel=label, ylabel="ROUGE-L", title=label.split(",")[0].capitalize())


def _growth(axes: "Axes", rows: "pd.DataFrame") -> None:
    rows = rows.sort_values("value")
    axes.plot(rows["value"], rows["search_ms"], marker="o")
    axes.set(xlabel="chunks in the store", ylabel="milliseconds a question", title="Corpus size", ylim=(0, None))


def _settings(axes: "Axes", rows: "pd.DataFrame") -> None:
    rows = rows.iloc[::-1]
    names = [f"{one['ablation'].replace('_', ' ')}: {one['setting']}" for _, one in rows.iterrows()]
    spread = [rows["rouge_l"] - rows["rouge_l_low"], rows["rouge_l_high"] - rows["rouge_l"]]
    axes.errorbar(rows["rouge_l"], names, xerr=spread, fmt="o", capsize=3)
    axes.set(xlabel="ROUGE-L", title="Ablations")
    axes.grid(axis="x", alpha=0.3)
