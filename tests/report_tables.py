"""Tables as an evaluation writes them, with made-up figures, for the tests of the report."""

import pandas as pd

NAMES = {"naive": (0.343, 239), "document-order": (0.36, 140), "corag-fixed": (0.383, 148), "corag": (0.381, 140),
         "upper": (0.4, 210)}  # fmt: skip


def methods():
    """One row a method."""
    rows = []
    for name, (rouge, tokens) in NAMES.items():
        rows.append(
            {
                "method": name, "n_total": 48, "n_scored": 48, "n_failed": 0, "rouge_1": rouge + 0.05,
                "rouge_2": rouge - 0.2, "rouge_l": rouge, "rouge_l_low": rouge - 0.051, "rouge_l_high": rouge + 0.051,
                "gain": None if name == "naive" else rouge - 0.343,
                "gain_low": None if name == "naive" else rouge - 0.393,
                "gain_high": None if name == "naive" else rouge - 0.293,
                "significant": False, "exact_match": 0.02, "token_f1": rouge, "recall": 0.8, "context_tokens": tokens,
                "rouge_l_per_100_tokens": 100 * rouge / tokens, "reranker_pairs": 60.0, "llm_calls": 1.0,
                "latency_embed_ms": 3.0, "latency_retrieve_ms": 9.0, "latency_search_ms": 60.0,
                "latency_generate_ms": 700.0,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def results():
    """Five questions a method."""
    return pd.DataFrame(
        [
            {"qid": f"00{number}", "question": "q", "method": name, "context_tokens": tokens + 5 * number,
             "rouge_l": rouge, "reranker": ("static", "lexical")[number % 2], "chunk_ids": ["a#1"]}
            for name, (rouge, tokens) in NAMES.items()
            for number in range(5)
        ]
    )  # fmt: skip


def attribution():
    """Two methods, three parts each."""
    return pd.DataFrame(
        [
            {"method": name, "part": part, "gain": gain, "low": gain - 0.01, "high": gain + 0.01}
            for name in ("corag-fixed", "corag")
            for part, gain in (("set", 0.02), ("order", 0.005), ("stopping", 0.013))
        ]
    )


def ablations():
    """Curves, growth and named settings."""
    cells = [("exploration", f"{c:g}", c) for c in (0, 1, 2, 3)] + [("cost", f"{x:g}", x) for x in (0, 0.1, 0.2, 0.3)]
    cells += [("budget", str(b), b) for b in (128, 256, 512)] + [("corpus_size", str(n), n) for n in (100, 1000)]
    cells += [("reranker", name, None) for name in ("static", "lexical")] + [("backup", "uct best", None)]
    return pd.DataFrame(
        [
            {"ablation": name, "setting": setting, "value": value, "rouge_l": 0.38, "rouge_l_low": 0.33,
             "rouge_l_high": 0.43, "context_tokens": 140, "search_ms": 60, "n": 48}
            for name, setting, value in cells
        ]
    )  # fmt: skip


def cases():
    """One gain and one loss."""
    return pd.DataFrame(
        [
            {"qid": qid, "question": "Who paid for the bridge & why?", "reference": "The salt tax.", "gain": gain,
             "naive_answer": "Nobody.", "corag_answer": "The salt tax.", "naive_context": "x", "corag_context": "y",
             "naive_rouge_l": 0.5 - gain / 2, "corag_rouge_l": 0.5 + gain / 2}
            for qid, gain in (("007", 0.6), ("q2", -0.4))
        ]
    )  # fmt: skip


def write_tables(folder, only=("methods", "attribution", "ablations", "cases")):
    """Write the tables into `folder` as an evaluation does."""
    (folder / "tables").mkdir(exist_ok=True)
    results().to_parquet(folder / "results.parquet", index=False)
    made = {"methods": methods, "attribution": attribution, "ablations": ablations, "cases": cases}
    for name in only:
        made[name]().to_csv(folder / "tables" / f"{name}.csv", index=False)
