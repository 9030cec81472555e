"""The page and the note that are read in the morning after a night of answering."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from corag.drawing import draw
from corag.night_figures import NIGHTS_COMPARED, WATCHED, Figures, Warned, usual_band
from corag.pages import page, paragraph, picture, section, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STATUSES = ("answered", "no_context", "failed")
STAGES = ("embed", "retrieve", "search", "generate")
NIGHTS_DRAWN = 30


def night_note(date: str, figures: Figures, warned: Sequence[Warned], currency: str) -> str:
    """The night in a few lines of Markdown."""
    lines = [f"# Night of {date}", ""]
    lines += [f"- **unusual**: {one}" for one in warned]
    lines += [f"- {line}" for line in _sentences(figures, currency)]
    return "\n".join(lines) + "\n"


def night_page(
    date: str,
    figures: Figures,
    nights: Mapping[str, Figures],
    warned: Sequence[Warned],
    *,
    currency: str,
    failures: Sequence[tuple[str, str]],
    record: Mapping[str, object],
) -> str:
    """The self-contained page of the night of `date`.

    nights: every night so far by date, this one included. failures: (qid, reason) of failed questions. record: what the
    night was run with.
    """
    earlier = [held for day, held in nights.items() if day < date][-NIGHTS_COMPARED:]
    odd = [paragraph(str(one), "bad") for one in warned] or [paragraph(_calm(len(earlier)), "good")]
    drawn = {day: held for day, held in nights.items() if day <= date}
    return page(
        f"Night of {date}",
        *odd,
        section("In short", *[paragraph(line) for line in _sentences(figures, currency)]),
        section("Compared with the nights before", _comparison(figures, earlier)),
        section(
            "Latency, milliseconds a question",
            table(("stage", "p50", "p95"), [_stage(figures, stage) for stage in STAGES if _stage(figures, stage)]),
        ),
        section("The nights so far", picture(night_plots(drawn), "Questions by status, tokens and latency by night")),
        section(
            "Failed questions",
            table(("question", "reason"), failures) if failures else paragraph("None.", "note"),
        ),
        section("Run with", table(("what", "which"), [(name, str(value)) for name, value in record.items()])),
    )


def night_plots(nights: Mapping[str, Figures]) -> bytes:
    """PNG: questions by status, tokens a question, and latency of search and generation, over the last nights."""
    shown = dict(list(nights.items())[-NIGHTS_DRAWN:])
    days, held = [day[5:] for day in shown], list(shown.values())

    def status(axes: "Axes") -> None:
        bottom = [0.0] * len(held)
        for name, colour in zip(STATUSES, ("#2a78b8", "#c9ced4", "#c0392b"), strict=True):
            counts = [night.get(name, 0.0) for night in held]
            axes.bar(days, counts, bottom=bottom, label=name.replace("_", " "), color=colour)
            bottom = [below + count for below, count in zip(bottom, counts, strict=True)]
        axes.set(title="Questions by status", ylabel="questions")
        axes.legend()

    def tokens(axes: "Axes") -> None:
        for kind in ("budget", "context_tokens", "answer_tokens"):
            means = [night.get(f"{kind}_mean", float("nan")) for night in held]
            axes.plot(days, means, marker="o", label=kind.removesuffix("_tokens"))
        axes.set(title="Tokens a question", ylabel="mean tokens", ylim=(0, None))
        axes.legend()

    def latency(axes: "Axes") -> None:
        for stage in ("search", "generate"):
            times = [night.get(f"latency_{stage}_p95", float("nan")) for night in held]
            axes.plot(days, times, marker="o", label=f"{stage}, p95")
        axes.set(title="Latency a question", ylabel="milliseconds", ylim=(0, None))
        axes.legend()

    return draw([_dated(panel, len(days)) for panel in (status, tokens, latency)])


def _dated(panel: Callable[["Axes"], None], days: int) -> Callable[["Axes"], None]:
    """The panel with so few dates below it that they can be read."""

    def drawn(axes: "Axes") -> None:
        panel(axes)
        step = max(1, days // 6)
        axes.set_xticks(range(0, days, step))
        axes.tick_params(axis="x", rotation=30)

    return drawn


def _stage(figures: Figures, stage: str) -> tuple[object, ...]:
    if f"latency_{stage}_p50" not in figures:
        return ()
    return (stage, figures[f"latency_{stage}_p50"], figures[f"latency_{stage}_p95"])


def _comparison(figures: Figures, earlier: Sequence[Figures]) -> str:
    rows = []
    for name in WATCHED:
        if name not in figures:
            continue
        before = [night[name] for night in earlier if name in night]
        band = usual_band(name, before)
        usual = f"{band[0]:.3g} to {band[1]:.3g}" if band else f"not known yet ({len(before)} nights)"
        last = before[-1] if before else None
        rows.append((name.replace("_", " "), float(figures[name]), last, usual))
    return table(("figure", "this night", "the night before", "usual band"), rows)


def _calm(nights: int) -> str:
    if nights:
        return f"Nothing unusual, compared with the last {nights} nights."
    return "The first night: there is nothing to compare it with yet."


def _sentences(figures: Figures, currency: str) -> list[str]:
    told = [
        f"{figures['questions']:.0f} questions: {figures.get('answered', 0):.0f} answered, "
        f"{figures.get('no_context', 0):.0f} without context, {figures.get('failed', 0):.0f} failed; "
        f"{figures.get('cut', 0):.0f} answers were cut at the length limit, {figures.get('empty', 0):.0f} are empty, "
        f"{figures.get('reused', 0):.0f} were kept from an earlier night.",
    ]
    if "context_tokens_mean" in figures:
        told += [
            f"Context: {figures['context_tokens_mean']:.0f} tokens a question of a budget of "
            f"{figures['budget_mean']:.0f}; {figures['prompt_tokens_total']:,.0f} prompt and "
            f"{figures['answer_tokens_total']:,.0f} answer tokens in all.",
            f"Configuration: {figures['share_agent']:.0%} by the agent, {figures['share_far']:.0%} fixed because the "
            f"question is far from its training, {figures['share_fixed']:.0%} fixed because there is no champion.",
        ]
    if "rouge_l" in figures:
        told.append(f"ROUGE-L {figures['rouge_l']:.3f} over {figures['rouge_l_scored']:.0f} questions with references.")
    if "questions_per_minute" in figures:
        told.append(f"{figures['questions_per_minute']:.1f} questions a minute.")
    if "cost" in figures:
        told.append(f"Cost: {figures['cost']:.2f} {currency}.")
    return told
