"""Web pages, PDFs and Word files: their text, and the reason where there is none."""

import sys

import pytest

from corag.readers import read_documents

NAVIGATION = '<nav><ul><li><a href="/">Home</a></li><li><a href="/about">About us</a></li></ul></nav>'
MILL = "".join(
    f"<p>The mill of Arlen was mended in {year} by Sefa Dorn, who came over the hills with eleven mules.</p>"
    for year in range(1700, 1706)
)


def page(body, title="The mill", head=""):
    """A web page."""
    return f"<html><head>{head}<title>{title}</title></head><body>{body}</body></html>"


def pdf(line):
    """A PDF of one page that shows a line, or nothing."""
    shown = f"BT /F1 12 Tf 20 100 Td ({line}) Tj ET".encode() if line else b""
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(shown), shown),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    raw, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, start=1):
        places.append(len(raw))
        raw += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(raw)
    return raw + b"xref\n0 6\n0000000000 65535 f \n" + table + end


def read(folder):
    """The reading of a folder that also holds a good neighbour, which always comes through."""
    (folder / "z.txt").write_text("Good.")
    reading = read_documents([str(folder)], ("**/*",), ())
    assert reading.documents[-1].doc_id == "z.txt"
    assert reading.read == len(reading.documents) + len(reading.rejected)
    return reading.documents[:-1], reading.rejected


def test_the_main_text_of_a_page_is_read(tmp_path):
    """Navigation, scripts and the foot of the page are left out."""
    pytest.importorskip("trafilatura")
    body = f"{NAVIGATION}<article>{MILL}</article><script>var secret = 1</script><footer>All rights reserved</footer>"
    (tmp_path / "mill.html").write_text(page(body))
    (document,), rejected = read(tmp_path)
    assert not rejected
    assert (document.doc_id, document.title) == ("mill.html", "The mill")
    assert "mended in 1703 by Sefa Dorn" in document.text
    assert not any(part in document.text for part in ("About us", "secret", "All rights", "<"))


@pytest.mark.parametrize(
    ("declared", "encoding", "text"),
    [
        ("windows-1252", "cp1252", "Le prix d’été : 5 €."),
        ("iso-8859-1", "cp1252", "Le prix d’été : 5 €."),
        ("iso-8859-2", "iso-8859-2", "Příliš žluťoučký kůň úpěl ďábelské ódy."),
        ("koi8-r", "koi8-r", "Мельница стоит у реки."),
        ("no-such-encoding", "utf-8", "Le prix d’été : 5 €."),
        ("iso-8859-1", "utf-8", "Le prix d’été : 5 €."),
    ],
)
def test_a_page_names_its_own_encoding(tmp_path, declared, encoding, text):
    """What the page says of itself is believed where it is not UTF-8."""
    pytest.importorskip("trafilatura")
    raw = page(f"<p>{text}</p>", head=f'<meta charset="{declared}">').encode(encoding)
    (tmp_path / "one.htm").write_bytes(raw)
    (document,), _ = read(tmp_path)
    assert document.text == text


@pytest.mark.parametrize("raw", [b"", b"  ", page("").encode(), page("<script>x</script>").encode(), b"<div>" * 5000])
def test_a_page_without_text_is_told(tmp_path, raw):
    """It does not become an empty document."""
    pytest.importorskip("trafilatura")
    (tmp_path / "one.html").write_bytes(raw)
    documents, rejected = read(tmp_path)
    assert not documents
    assert [one.source for one in rejected] == [str(tmp_path / "one.html")]


def test_the_text_layer_of_a_pdf_is_read(tmp_path):
    """A page's text becomes the document's."""
    pytest.importorskip("pypdf")
    (tmp_path / "one.pdf").write_bytes(pdf("The code is QX-77."))
    (document,), rejected = read(tmp_path)
    assert not rejected
    assert (document.doc_id, document.text) == ("one.pdf", "The code is QX-77.")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (pdf(""), "text recognition"),
        (b"", "empty"),
        (b"%PDF-1.7\nnonsense", "cannot read it"),
        (b"x" * 99, "cannot read"),
    ],
    ids=["scan", "zero bytes", "damaged", "no PDF"],
)
def test_a_pdf_without_text_is_told(tmp_path, raw, reason):
    """A scan, an empty file and a damaged one are each named with what is wrong."""
    pytest.importorskip("pypdf")
    (tmp_path / "one.pdf").write_bytes(raw)
    documents, (refused,) = read(tmp_path)
    assert not documents
    assert reason in refused.reason


def test_a_locked_pdf_is_told(tmp_path):
    """Without its password there is nothing to read."""
    pypdf = pytest.importorskip("pypdf")
    writer = pypdf.PdfWriter()
    writer.add_blank_page(200, 200)
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "one.pdf")
    _, (refused,) = read(tmp_path)
    assert "encrypted" in refused.reason


def test_paragraphs_and_tables_of_a_word_file_are_read_in_order(tmp_path):
    """A row of a table is a line; a merged cell counts once; the title comes from the properties."""
    docx = pytest.importorskip("docx")
    word = docx.Document()
    word.core_properties.title = "Mills"
    word.add_heading("Arlen", 1)
    table = word.add_table(2, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "built", "1702"
    table.cell(1, 0).merge(table.cell(1, 1)).text = "by Sefa Dorn"
    word.add_paragraph("It grinds rye.")
    word.save(str(tmp_path / "one.docx"))
    (document,), rejected = read(tmp_path)
    assert not rejected
    assert document.title == "Mills"
    assert document.text == "Arlen\n\nbuilt | 1702\nby Sefa Dorn\n\nIt grinds rye."
    assert document.headings == ((0, "Arlen"),)


@pytest.mark.parametrize("raw", [b"", b"PK\x03\x04 torn", b"plain text"])
def test_a_damaged_word_file_is_told(tmp_path, raw):
    """It stops no other file."""
    pytest.importorskip("docx")
    (tmp_path / "one.docx").write_bytes(raw)
    documents, (refused,) = read(tmp_path)
    assert not documents
    assert refused.source == str(tmp_path / "one.docx")


def test_a_word_file_of_pictures_is_told(tmp_path):
    """No text is no document."""
    docx = pytest.importorskip("docx")
    docx.Document().save(str(tmp_path / "one.docx"))
    _, (refused,) = read(tmp_path)
    assert "no text" in refused.reason


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [("a.html", "trafilatura", "trafilatura"), ("a.pdf", "pypdf", "pypdf"), ("a.docx", "docx", "python-docx")],
)
def test_a_missing_library_is_named(tmp_path, monkeypatch, name, module, package):
    """Whoever did not install it learns which to install, and the other files are read."""
    # None is how the import system itself marks a module that is not to be had.
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(b"x")
    _, (refused,) = read(tmp_path)
    assert f"pip install {package}" in refused.reason
