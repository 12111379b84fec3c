"""Every state of the page is checked with axe: no violation in light, in dark and on a phone."""

import pytest

from tests.serve.test_page import TEXT, explain_first, labels, type_text
from tests.serve.test_page_batch import label_all, open_table, rows

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
)
expect = playwright.expect
PHONE = {"viewport": {"width": 375, "height": 740}, "has_touch": True}
VIEWS = {"light": {"color_scheme": "light"}, "dark": {"color_scheme": "dark"}, "phone": PHONE}
HEBREW = "סירה בנמל boat harbour"


def assert_accessible(page, state):
    violations = axe.Axe().run(page).response["violations"]
    found = [
        f"{rule['id']} ({rule['help']}): {node['html']} {node.get('failureSummary', '')}"
        for rule in violations
        for node in rule["nodes"]
    ]
    assert not found, f"{state}: " + "\n".join(found)


@pytest.fixture(params=VIEWS)
def view(request):
    return VIEWS[request.param]


def test_axe_finds_violations(page):
    page.evaluate("document.querySelector('main').append(new Image())")
    with pytest.raises(AssertionError, match="image-alt"):
        assert_accessible(page, "an image without alternative text")


def test_a_single_text(open_page, server, view):
    page = open_page(server, **view)
    expect(page.locator("#about")).to_contain_text("labels")
    assert_accessible(page, "empty")
    type_text(page)
    page.get_by_role("button", name="Accept sea").click()
    page.get_by_role("button", name="Reject sky").click()
    explain_first(page)
    labels(page).first.focus()
    expect(page.locator("#marks mark").first).to_be_attached()
    assert_accessible(page, "labels, decisions and an explanation")
    page.fill("#query", "f")
    expect(page.locator("#matches li").first).to_be_visible()
    assert_accessible(page, "matching labels")
    page.fill("#query", "no such label")
    expect(page.locator("#no-match")).to_contain_text("No label")
    page.route("**/v1/predict", lambda route: route.abort())
    page.fill("#text", HEBREW)
    expect(page.locator("#problem")).to_be_visible()
    assert_accessible(page, "no matching label, text from right to left, error")


def test_paths_through_trees(open_page, tree_server):
    page = open_page(tree_server)
    type_text(page)
    explain_first(page).locator("summary").click()
    assert_accessible(page, "paths of two trees")


def test_a_batch(open_page, server, view):
    page = open_page(server, **view)
    expect(page.locator("#about")).to_contain_text("labels")
    page.click("#many-tab")
    assert_accessible(page, "no file")
    lines = [TEXT, HEBREW, *["apple pear"] * 30]
    open_table(page, "in.csv", ("text\n" + "\n".join(lines) + "\n").encode())
    label_all(page)
    page.get_by_role("button", name="Accept all labels of row 1", exact=True).click()
    page.get_by_role("button", name="Reject all labels of row 2", exact=True).click()
    rows(page).nth(1).focus()
    assert_accessible(page, "labels and decisions")


def test_the_token_dialog(open_page, token_server, view):
    page = open_page(token_server, **view)
    expect(page.locator("#token")).to_be_visible()
    page.fill("#token-value", "wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#token-wrong")).not_to_be_empty()
    assert_accessible(page, "invalid token")
