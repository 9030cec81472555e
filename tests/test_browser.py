"""The pages in a real browser: opened from disk, no error, no request to anywhere, and the tree answers to clicks."""

import shutil

import pytest

from corag.explain_page import as_page
from corag.report_page import draw_report
from tests.explanations import explained
from tests.report_tables import write_tables

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(params=["light", "dark"])
def tab(request):
    """A tab in light and in dark mode; `problems` collects errors and requests."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(color_scheme=request.param, viewport={"width": 1366, "height": 768})
        opened.problems = []
        opened.on("console", lambda one: opened.problems.append(one.text) if one.type == "error" else None)
        opened.on("pageerror", lambda error: opened.problems.append(str(error)))
        opened.on("request", lambda one: opened.problems.append(one.url) if one.url.startswith("http") else None)
        yield opened
        browser.close()


def test_a_click_on_a_node_tells_its_utility(tab, tmp_path):
    """The chosen node's numbers are there at once; another node's after a click, and after Enter."""
    told = explained()
    path = tmp_path / "explain.html"
    path.write_text(as_page(told), encoding="utf-8")
    tab.goto(path.as_uri())
    assert f"{told.tree.value(told.tree.best):.3f}" in tab.inner_text("#node")
    root = tab.locator('[data-node="0"]')
    root.click()
    assert f"{told.tree.utility(0):.3f}" in tab.inner_text("#node") or "infinite" in tab.inner_text("#node")
    child = next(node for node in range(1, len(told.tree.order)) if told.tree.children[node] is not None)
    tab.locator(f'[data-node="{child}"]').focus()
    tab.keyboard.press("Enter")
    assert f"{told.tree.utility(child):.3f}" in tab.inner_text("#node")
    assert tab.problems == []


def test_folded_nodes_unfold_and_the_drawing_zooms(tab, tmp_path):
    """A click on +n shows what was folded; the buttons change what is seen."""
    path = tmp_path / "explain.html"
    path.write_text(as_page(explained(texts=[f"Text number {number}." for number in range(8)])), encoding="utf-8")
    tab.goto(path.as_uri())
    before = tab.locator("[data-node]").count()
    tab.locator("[data-fold]").first.click()
    assert tab.locator("[data-node]").count() > before
    view = tab.get_attribute("#tree", "viewBox")
    tab.click("#in")
    assert tab.get_attribute("#tree", "viewBox") != view
    assert tab.problems == []


def test_the_report_opens(tab, tmp_path):
    """The page of an evaluation shows its plots, and a case's context when it is asked for."""
    write_tables(tmp_path)
    tab.goto(draw_report(tmp_path).as_uri())
    assert tab.evaluate("[...document.images].every((one) => one.complete && one.naturalWidth > 0)")
    context = tab.locator(".case details").first
    context.click()
    assert context.get_attribute("open") is not None
    assert tab.problems == []
