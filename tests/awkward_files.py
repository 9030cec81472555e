"""Files that break careless readers, each with what must become of it: texts by document id, refusals by line."""

import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.test_reader_libraries import MILL, NAVIGATION, page, pdf

FRENCH = "Le café était déjà fermé quand la fenêtre s'ouvrit ; le garçon, très étonné, leva la tête. " * 5
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
BLOB = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * 3000


@dataclass(frozen=True)
class Awkward:
    """A file: its name, its bytes or what makes it, the texts that are stored, and (line, reason) of refusals."""

    name: str
    made: bytes | Callable[[Path], object]
    texts: dict[str, str] = field(default_factory=dict)
    refused: tuple[tuple[int | None, str], ...] = ()

    def make(self, folder: Path) -> None:
        """Make the file below `folder`."""
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(self.made, bytes):
            path.write_bytes(self.made)
        else:
            self.made(path)


def one(name: str, made: bytes | Callable[[Path], object], text: str) -> Awkward:
    """A file of one document."""
    return Awkward(name, made, {name: text})


def none(name: str, made: bytes | Callable[[Path], object], reason: str) -> Awkward:
    """A file that is refused as a whole."""
    return Awkward(name, made, refused=((None, reason),))


def lines(*records: object) -> bytes:
    """JSON lines; bytes stand as they are."""
    rows = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
    return b"\n".join(rows) + b"\n"


def parquet(rows: list[dict], **options: object) -> Callable[[Path], None]:
    """Writes rows as Parquet."""

    def write(path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path, **options)

    return write


def word(*paragraphs: str) -> bytes:
    """A Word file of these paragraphs."""
    import docx

    document, raw = docx.Document(), io.BytesIO()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    document.save(raw)
    return raw.getvalue()


def locked_pdf(path: Path) -> None:
    """A PDF behind a password."""
    import pypdf

    writer = pypdf.PdfWriter()
    writer.add_blank_page(200, 200)
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(path)


def link_to(target: str) -> Callable[[Path], None]:
    """A link to `target`, which need not be there."""
    return lambda path: path.symlink_to(target)


TEXT_FILES = (
    one("bom.txt", b"\xef\xbb\xbfMarked text.", "Marked text."),
    one("crlf.txt", b"One line.\r\nAnother line.\r\n", "One line.\r\nAnother line."),
    one("mixed-ends.txt", b"One.\r\nTwo.\rThree.\nFour.", "One.\r\nTwo.\rThree.\nFour."),
    one("separators.txt", "One\u2028two\x0bthree\x1cfour\x85five.".encode(), "One\u2028two\x0bthree\x1cfour\x85five."),
    one("nul.txt", b"A nul \x00 inside.", "A nul \ufffd inside."),
    one("utf16.txt", "Wide text.".encode("utf-16"), "Wide text."),
    one("utf16-no-mark.txt", "Wide text without mark.".encode("utf-16-le"), "Wide text without mark."),
    one("utf32.txt", "Wider text.".encode("utf-32"), "Wider text."),
    one("latin1.txt", FRENCH.encode("latin-1"), FRENCH.strip()),
    one("cyrillic.txt", ("Мельница в Арлене построена давно. " * 8).encode("cp1251"), "Мельница в Арлене"),
    one("gb18030.txt", ("北京是中国的首都，有很多古老的建筑和公园。" * 8).encode("gb18030"), "北京是中国的首都"),
    none("torn-utf8.txt", "été à la mer, déjà vu ".encode() + b"\xff rest", "not UTF-8"),
    none("noise.txt", bytes(range(256)) * 40, "not UTF-8"),
    none("zero.txt", b"", "empty"),
    none("blank.md", b" \r\n\t\n ", "empty"),
    none("only-bom.txt", b"\xef\xbb\xbf", "empty"),
    one("blob.txt", BLOB.encode(), BLOB),
    one("chinese.txt", ("夜里的河水很安静" * 3000).encode(), "夜里的河水很安静" * 3000),
    one("thai.txt", ("โรงสีอยู่ริมแม่น้ำ" * 300).encode(), "โรงสีอยู่ริมแม่น้ำ" * 300),
    one("emoji.txt", (FAMILY * 400).encode(), FAMILY * 400),
    one("marks.txt", ("e" + "\u0301" * 500 + " end.").encode(), "e" + "\u0301" * 500 + " end."),
    one("spaces.txt", ("word" + " " * 9000 + "far.").encode(), "far."),
    one("control.txt", b"bell \x07 escape \x1b[31m delete \x7f.", "bell \x07 escape \x1b[31m delete \x7f."),
    one("right-to-left.txt", "\u202eטקסט \u200fבעברית.".encode(), "\u202eטקסט \u200fבעברית."),
    one("one-character.txt", b"x", "x"),
    one("code.md", b"```\n# no heading\n```\n# Heading\n\nText.", "Text."),
    one("UPPER.TXT", b"Loud ending.", "Loud ending."),
    one('it\'s "quoted"; DROP TABLE chunks.txt', b"Odd name.", "Odd name."),
    one("space and #0001.txt", b"Looks like a chunk id.", "Looks like a chunk id."),
    one("夜/深/名.txt", b"Nested name.", "Nested name."),
    one("a" * 200 + ".txt", b"Long name.", "Long name."),
    one("007.txt", b"Bond.", "Bond."),
)

LIBRARY_FILES = (
    one("page.html", page(f"{NAVIGATION}<article>{MILL}</article>").encode(), "The mill of Arlen was mended in 1700"),
    one(
        "page-latin1.htm",
        page(f"<article>{MILL}<p>Le café était fermé.</p></article>", head='<meta charset="iso-8859-1">').encode(
            "latin-1"
        ),
        "Le café était fermé.",
    ),
    none("script.html", page("<script>x()</script>").encode(), "no main text"),
    none("deep.html", b"<div>" * 5000, "no main text"),
    none("zero.html", b"", "empty"),
    one("text.pdf", pdf("The code is QX-77."), "The code is QX-77."),
    none("scan.pdf", pdf(""), "text recognition"),
    none("torn.pdf", pdf("The code is QX-77.")[:60], "cannot read it"),
    none("zero.pdf", b"", "empty"),
    none("locked.pdf", locked_pdf, "encrypted"),
    one("word.docx", word("First paragraph.", "", "Second paragraph."), "First paragraph.\n\nSecond paragraph."),
    none("pictures.docx", word(), "no text"),
    none("torn.docx", b"PK\x03\x04 torn", "cannot read it"),
    none("really-text.pdf", b"Plain text with another ending. " * 5, "cannot read it"),
)

RECORD_FILES = (
    Awkward(
        "ids.jsonl",
        lines({"doc_id": "007", "text": "Bond."}, {"doc_id": "18_19", "text": "Years."}, {"id": 1e3, "text": "Float."}),
        {"007": "Bond.", "18_19": "Years.", "1000.0": "Float."},
    ),
    Awkward(
        "quoted.jsonl",
        lines({"doc_id": "o'x\" OR 1=1 --", "text": "Quoted id."}, {"doc_id": "a\nb", "text": "Two-line id."}),
        {"o'x\" OR 1=1 --": "Quoted id.", "a\nb": "Two-line id."},
    ),
    Awkward(
        "mended.jsonl",
        b"\xef\xbb\xbf"
        + lines({"doc_id": "m1", "text": "One\u2028line."}, b"", b'{"doc_id":"m2","text":"bad \\ud83d end"}')
        + b'{"doc_id":"m3","te',
        {"m1": "One\u2028line.", "m2": "bad \ufffd end"},
        ((4, "not JSON"),),
    ),
    Awkward(
        "holes.jsonl",
        lines(
            {"doc_id": "h1", "text": ""},
            {"doc_id": "h2", "text": "   \n"},
            {"doc_id": "h3", "text": None},
            {"doc_id": "h4"},
            {"doc_id": "h5", "text": 7},
            {"doc_id": "h6", "text": "Good."},
        ),
        {"h6": "Good."},
        ((1, "empty"), (2, "empty"), (3, "NoneType"), (4, "no field"), (5, "int")),
    ),
    Awkward(
        "shapes.jsonl",
        lines(
            b"[1, 2]",
            b'"text"',
            b"null",
            b"\xff\xfe",
            b"[" * 100_000,
            {"doc_id": ["l"], "text": "x"},
            {"doc_id": "s7", "text": "Good."},
        ),
        {"s7": "Good."},
        ((1, "list"), (2, "str"), (3, "NoneType"), (4, "not UTF-8"), (5, "nested"), (6, "doc_id")),
    ),
    Awkward(
        "late-field.jsonl",
        lines(
            *({"doc_id": f"n{number}", "text": f"Row {number}.", "meta": None} for number in range(300)),
            {"doc_id": "n300", "text": "Row 300.", "meta": {"src": "x"}},
        ),
        {"n0": "Row 0.", "n299": "Row 299.", "n300": "Row 300."},
    ),
    Awkward(
        "long-line.jsonl", lines({"doc_id": "long", "text": "word " * 60_000}), {"long": ("word " * 60_000).strip()}
    ),
    Awkward(
        "twice.jsonl",
        lines({"doc_id": "t", "text": "Same."}, {"doc_id": "t", "text": "Same."}),
        {"t": "Same."},
        ((None, "the same record"),),
    ),
    none("zero.jsonl", b"", "no records"),
    Awkward(
        "multi-line.csv",
        b'doc_id,text,title\r\nc007,"two\r\nlines, one comma",T\r\n0018_19,plain,\r\n',
        {"c007": "two\r\nlines, one comma", "0018_19": "plain"},
    ),
    Awkward(
        "faulty.csv",
        b'doc_id,text\nf1,"good"\nf2,"bad" tail\nf3,good,too many\nf4,\xff\nf5,fine\n',
        {"f1": "good", "f5": "fine"},
        ((3, "not CSV"), (4, "more fields"), (5, "not UTF-8")),
    ),
    Awkward(
        "open-quote.csv", b'doc_id,text\no1,fine\no2,"never closed\no3,lost\n', {"o1": "fine"}, ((3, "never closed"),)
    ),
    none("header-only.csv", b"doc_id,text\n", "no records"),
    Awkward(
        "typed.parquet",
        parquet([{"doc_id": "p007", "text": "Row.", "year": 1702}, {"doc_id": "p008", "text": None, "year": None}]),
        {"p007": "Row."},
        ((2, "no field"),),
    ),
    none("torn.parquet", b"PAR1 torn PAR1", "parquet"),
)

LINKS = (
    none("dangling.txt", link_to("gone.txt"), "leads nowhere"),
    none("loop.txt", link_to("loop.txt"), "cannot be read"),
    Awkward("loop-folder", link_to(".")),
    none("pipe.txt", os.mkfifo, "no regular file"),
    Awkward("folder.txt", lambda path: path.mkdir()),
    Awkward(".hidden.txt", b"Hidden."),
    Awkward("picture.png", b"\x89PNG"),
)

AWKWARD = TEXT_FILES + LIBRARY_FILES + RECORD_FILES + LINKS
