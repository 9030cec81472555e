"""Panels drawn side by side into one PNG."""

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOTS_PER_INCH = 110


def draw(panels: Sequence[Callable[["Axes"], None]]) -> bytes:
    """The PNG of the panels."""
    # A Figure without pyplot: no global state, no display.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5 * len(panels), 4.2), layout="constrained")
    for index, panel in enumerate(panels):
        panel(figure.add_subplot(1, len(panels), index + 1))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()
