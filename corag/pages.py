"""Self-contained HTML pages: one style for every report, light and dark, without a request to anywhere.

Parts are `Markup`: what is text is escaped on the way in, so that a question or an answer is never read as HTML.
"""

import base64
import json
from collections.abc import Sequence

from markupsafe import Markup, escape

STYLE = """
:root { color-scheme: light dark; --ink: light-dark(#1c2024, #e6e8eb); --soft: light-dark(#5b636c, #9aa3ad);
  --line: light-dark(#d9dde2, #343a41); --paper: light-dark(#fff, #15181b); --panel: light-dark(#f5f7f9, #1e2226);
  --accent: light-dark(#0b62c4, #6db3ff); --mark: light-dark(#fff1b8, #5a4a00); --bad: light-dark(#b3261e, #ff8a80);
  --good: light-dark(#1b7f3b, #7fd69a); }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 15px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .2rem 0 1rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
p.note, figcaption, td.note { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
th.number, td.number { text-align: right; white-space: nowrap; }
figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; background: #fff; border-radius: 6px;
  padding: 6px; } figure img.themed { background: none; padding: 0; }
pre, code { font: 13px/1.5 ui-monospace, monospace; } pre { white-space: pre-wrap; overflow-wrap: anywhere;
  background: var(--panel); padding: .8rem; border-radius: 6px; }
mark { background: var(--mark); color: inherit; } .bad { color: var(--bad); } .good { color: var(--good); }
"""


def page(title: str, *parts: str, style: str = "", script: str = "") -> str:
    """A whole page: `parts` below the title; `style` and `script` are the page's own, put in as they are."""
    ending = Markup("<script>{}</script>").format(Markup(script)) if script else ""
    return str(
        Markup(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
            "<title>{title}</title><style>{style}</style></head>\n<body>\n<h1>{title}</h1>\n{body}\n{ending}</body></html>\n"
        ).format(title=title, style=Markup(STYLE + style), body=Markup("\n").join(parts), ending=ending)
    )


def section(title: str, *parts: str) -> Markup:
    """A heading and what stands below it."""
    return Markup("<section><h2>{}</h2>\n{}</section>").format(title, Markup("\n").join(parts))


def paragraph(text: str, kind: str = "") -> Markup:
    """A paragraph of text; `kind` is a class of the style: note, bad or good."""
    return Markup('<p class="{}">{}</p>').format(kind, text)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """A table; numbers are set to the right. Cells that are already Markup stay as they are; None is an empty cell."""
    numeric = [
        bool(rows) and all(row[column] is None or isinstance(row[column], int | float) for row in rows)
        for column in range(len(header))
    ]

    def cells(tag: str, values: Sequence[object]) -> Markup:
        return Markup("").join(
            Markup("<{tag}{kind}>{value}</{tag}>").format(
                tag=Markup(tag), kind=Markup(' class="number"') if number else "", value=_cell(value)
            )
            for value, number in zip(values, numeric, strict=True)
        )

    lines = Markup("\n").join(Markup("<tr>{}</tr>").format(cells("td", row)) for row in rows)
    return Markup('<div class="scroll"><table><thead><tr>{}</tr></thead>\n<tbody>{}</tbody></table></div>').format(
        cells("th", header), lines
    )


def picture(png: bytes, caption: str, dark: bytes | None = None) -> Markup:
    """A PNG carried inside the page, with the caption below it and as its alternative text.

    `dark` is the same picture for a dark page; without it the one for a light page stands on white.
    """
    source = Markup("")
    if dark is not None:
        source = Markup('<source media="(prefers-color-scheme: dark)" srcset="{}">').format(_png_url(dark))
    return Markup('<figure><picture>{}<img{} src="{}" alt="{}"></picture><figcaption>{}</figcaption></figure>').format(
        source, Markup(' class="themed"' if dark is not None else ""), _png_url(png), caption, caption
    )


def data_block(name: str, value: object) -> Markup:
    """`value` as JSON for a script of the page, which finds it by the id `name`; NaN and infinities are refused.

    What could end the block or begin another tag is written as an escape of JSON.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup('<script type="application/json" id="{}">{}</script>').format(name, Markup(text))


def _cell(value: object) -> Markup:
    if value is None:
        return Markup("")
    return escape(f"{value:.3f}" if isinstance(value, float) else value)


def _png_url(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
