"""Pages: what is text stays text, numbers line up, nothing is loaded from elsewhere."""

from markupsafe import Markup

from corag.pages import page, paragraph, picture, section, table


def test_text_is_escaped_and_markup_is_not():
    """A question with tags in it is shown, not run; cells that are Markup stay markup."""
    shown = page("<script>alert(1)</script>", paragraph("a < b & c"), table(["x"], [[Markup("<b>bold</b>")], ["<i>"]]))
    assert "<script>alert(1)" not in shown
    assert "&lt;script&gt;" in shown
    assert "a &lt; b &amp; c" in shown
    assert "<b>bold</b>" in shown
    assert "&lt;i&gt;" in shown


def test_numbers_are_set_to_the_right_and_none_is_an_empty_cell():
    """A column is numeric where every cell is a number or missing; floats have three digits."""
    shown = table(["name", "score"], [["a", 0.5], ["b", None]])
    assert '<td class="number">0.500</td>' in shown
    assert '<td class="number"></td>' in shown
    assert "<td>a</td>" in shown


def test_a_page_asks_for_nothing():
    """Pictures are inside; the title of a section is escaped; scripts are the page's own."""
    shown = page("t", section("a & b", picture(b"\x89PNG", "it's a plot")), script="let one = 1 < 2;")
    assert "data:image/png;base64,iVBORw==" in shown
    assert "<h2>a &amp; b</h2>" in shown
    assert "<script>let one = 1 < 2;</script>" in shown
    assert "http" not in shown
