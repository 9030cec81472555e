"""One document a Word file: its paragraphs and tables in order."""

from pathlib import Path
from typing import TYPE_CHECKING

from corag.quarantine import Rejected
from corag.readers.text_files import first_line
from corag.values import Document

if TYPE_CHECKING:
    from docx.table import Table
    from docx.text.paragraph import Paragraph


BETWEEN_BLOCKS = "\n\n"


def read_docx_file(path: Path, doc_id: str) -> Document | Rejected:
    """The text of the body, a blank line between paragraphs and a line for each row of a table, by python-docx."""
    import docx
    from docx.table import Table

    if not path.stat().st_size:
        return Rejected(str(path), None, "empty")
    with path.open("rb") as file:
        word = docx.Document(file)
    blocks: list[str] = []
    headings: list[tuple[int, str]] = []
    place = 0
    for block in word.iter_inner_content():
        written = _rows(block) if isinstance(block, Table) else block.text
        if not written.strip():
            continue
        if not isinstance(block, Table) and _is_heading(block):
            headings.append((place, " ".join(written.split())))
        blocks.append(written)
        place += len(written) + len(BETWEEN_BLOCKS)
    text = BETWEEN_BLOCKS.join(blocks)
    if not text:
        return Rejected(str(path), None, "no text: the file holds nothing but pictures or text boxes")
    title = word.core_properties.title.strip() or first_line(text) or path.stem
    below = tuple(heading for heading in headings if heading[1] != title)
    return Document(doc_id, title, text, {"source": doc_id}, below)


def _is_heading(paragraph: "Paragraph") -> bool:
    style = paragraph.style
    return style is not None and (style.name or "").startswith("Heading")


def _rows(table: "Table") -> str:
    """One line a row, cells parted by a bar; a merged cell counts once."""
    lines = []
    for row in table.rows:
        cells = list({cell._tc: " ".join(cell.text.split()) for cell in row.cells}.values())
        if any(cells):
            lines.append(" | ".join(cells))
    return "\n".join(lines)
