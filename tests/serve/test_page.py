"""The page, in a real browser."""

import csv
import io
import json
import re
import shutil
import time

import numpy as np
import pytest

import treetop
from tests.serve.conftest import documents

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
TEXT = "The boat left the harbour with a full sail"


@pytest.fixture(scope="module")
def browser():
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    with playwright.sync_playwright() as driver:
        try:
            made = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no browser: {error}")
        yield made
        made.close()


@pytest.fixture
def page(browser, server):
    """The page of the server. Every request must go to it, and nothing may be complained of."""
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    made = context.new_page()
    made.hosts, made.complaints = set(), []
    made.on("request", lambda request: made.hosts.add(request.url.split("/")[2]))
    made.on("console", lambda message: made.complaints.append(message.text))
    made.on("pageerror", lambda error: made.complaints.append(str(error)))
    made.goto(server.address)
    yield made
    assert made.hosts <= {server.address.removeprefix("http://"), ""}
    assert [line for line in made.complaints if "Failed to load resource" not in line] == []
    context.close()


def labels(page):
    return page.locator("#labels > li")


def type_text(page, text=TEXT):
    page.fill("#text", text)
    expect(labels(page).first).to_be_visible()


def test_typing_brings_labels_with_bars_and_scores(page, model_folder):
    page.locator("#text").press_sequentially(TEXT, delay=5)
    expect(labels(page)).to_have_count(6)
    shown = labels(page).locator("b").all_text_contents()
    expected = treetop.load(str(model_folder)).predict([TEXT], 6)[0]
    assert shown == [name for name, _ in expected]
    widths = [bar.bounding_box()["width"] for bar in labels(page).locator(".bar i").all()]
    assert widths == sorted(widths, reverse=True)
    assert labels(page).first.locator("span").first.text_content() == f"{expected[0][1]:.3f}"
    expect(page.locator("#about")).to_have_text("topics: 6 labels, 240 training texts")
    page.fill("#text", "")
    expect(labels(page)).to_have_count(0)


def test_pointing_at_a_label_marks_its_words(page):
    type_text(page)
    labels(page).first.hover()
    marked = page.locator("#marks mark:not(.against)")
    expect(marked.first).to_be_attached()
    assert {"boat", "harbour", "sail"} & set(" ".join(marked.all_text_contents()).split())
    assert page.locator("#marks").text_content().rstrip("\n") == TEXT
    page.locator("h1").hover()
    expect(page.locator("#marks mark")).to_have_count(0)


def test_why_tells_words_way_and_neighbours_and_stays_open(page):
    type_text(page)
    labels(page).first.get_by_role("button", name="Why sea").click()
    box = labels(page).first.locator(".why")
    expect(box).to_contain_text("Way through the tree")
    expect(box).to_contain_text("Training texts that are alike")
    expect(box.locator(".words li").first).to_contain_text("+")
    labels(page).first.get_by_role("button", name="Accept sea").click()
    expect(labels(page).first.locator(".why")).to_contain_text("Way through the tree")


def test_accept_reject_add_and_download(page):
    type_text(page)
    page.get_by_role("button", name="Accept sea").click()
    page.get_by_role("button", name="Reject fire").click()
    page.fill("#query", "frui")
    expect(page.locator("#matches li").first).to_contain_text("fruit")
    page.keyboard.press("Enter")
    expect(page.locator("#labels > li.accepted")).to_have_count(2)
    with page.expect_download() as got:
        page.click("#as-json")
    kept = json.loads(got.value.path().read_text())
    assert {one["label"] for one in kept["labels"]} == {"sea", "fruit"}
    with page.expect_download() as got:
        page.click("#as-csv")
    rows = list(csv.reader(io.StringIO(got.value.path().read_text())))
    assert rows[0] == ["label", "score"]
    assert {row[0] for row in rows[1:]} == {"sea", "fruit"}


def test_a_decision_is_kept_for_training(page, server):
    type_text(page, "a boat of mine")
    expect(page.locator("#keep")).to_be_disabled()
    page.get_by_role("button", name="Accept sea").click()
    page.get_by_role("button", name="Reject sky").click()
    page.click("#keep")
    expect(page.locator("#state")).to_have_text("saved")
    last = json.loads(server.journal.read_text().splitlines()[-1])
    assert (last["text"], last["labels"], last["rejected"]) == ("a boat of mine", ["sea"], ["sky"])


def test_everything_by_keyboard(page):
    page.locator("#text").focus()
    page.keyboard.type("apple pear and plum")
    expect(labels(page)).to_have_count(6)
    labels(page).first.focus()
    page.keyboard.press("a")
    expect(labels(page).first).to_have_class("accepted")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("r")
    expect(labels(page).nth(1)).to_have_class("rejected")
    expect(labels(page).nth(1)).to_be_focused()
    page.keyboard.press("w")
    expect(labels(page).nth(1).locator(".why")).to_contain_text("Way")
    page.locator("#one-tab").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#many")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#one")).to_be_visible()


def test_text_is_shown_and_never_run(page):
    evil = "hack code <script>document.title='run'</script> <img src=x onerror=document.title='run'>"
    type_text(page, evil)
    item = page.locator("#labels > li", has_text="<script>alert(1)</script>")
    item.hover()
    expect(page.locator("#marks mark").first).to_be_attached()
    item.get_by_role("button", name=re.compile("Why")).click()
    expect(item.locator(".why")).to_contain_text("Way")
    assert page.locator("#marks").text_content().rstrip("\n") == evil
    assert "run" not in page.title()


def test_a_table_is_labelled_row_by_row(page, tmp_path, model_folder):
    texts, _ = documents(50)
    texts[0] = 'with "quotes", commas\nand a second line apple'
    table = tmp_path / "in.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "text"], *([str(n), text] for n, text in enumerate(texts))])
    page.click("#many-tab")
    page.set_input_files("#table", table)
    expect(page.locator("#done")).to_have_text("50 rows")
    page.fill("#many-count", "2")
    page.click("#start")
    expect(page.locator("#done")).to_have_text("50 of 50 rows")
    assert page.locator("#progress").evaluate("one => one.value") == 1
    with page.expect_download() as got:
        page.click("#fetch")
    with got.value.path().open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == texts
    expected = treetop.load(str(model_folder)).predict(texts, 2)
    assert [row["labels"].split(";") for row in rows] == [[name for name, _ in one] for one in expected]


def test_a_table_that_is_none(page, tmp_path):
    (tmp_path / "in.csv").write_text("only a head\n")
    page.click("#many-tab")
    page.set_input_files("#table", tmp_path / "in.csv")
    expect(page.locator("#problem")).to_contain_text("The file has no rows")


def test_a_busy_server_makes_the_table_wait_and_go_on(page, tmp_path):
    (tmp_path / "in.csv").write_text("text\napple\nboat\n")
    answers = []

    def busy_once(route):
        answers.append(route)
        if len(answers) == 1:
            body = json.dumps({"error": {"code": "busy", "message": "busy"}})
            route.fulfill(status=503, headers={"retry-after": "1"}, body=body)
        else:
            route.continue_()

    page.route("**/v1/predict", busy_once)
    page.click("#many-tab")
    page.set_input_files("#table", tmp_path / "in.csv")
    page.click("#start")
    expect(page.locator("#done")).to_have_text("2 of 2 rows")
    assert len(answers) == 2


def test_an_error_is_shown_and_can_be_tried_again(page):
    page.route("**/v1/predict", lambda route: route.abort())
    page.fill("#text", TEXT)
    expect(page.locator("#problem")).to_contain_text("The server cannot be reached.")
    page.unroute("**/v1/predict")
    page.get_by_role("button", name="Try again").click()
    expect(labels(page).first).to_be_visible()
    expect(page.locator("#problem")).to_be_hidden()


def test_the_servers_own_words_are_shown(page):
    page.fill("#text", "x" * 300_000)
    expect(page.locator("#problem")).to_contain_text("the body is larger than 200,000 bytes")


def test_a_slow_answer_is_announced_and_an_old_one_never_shown(page):
    def slow(route):
        if "slow" in route.request.post_data:
            time.sleep(1.5)
        route.continue_()

    page.route("**/v1/predict", slow)
    page.fill("#text", "slow boat harbour")
    expect(page.locator("#state")).to_have_text("working …")
    page.fill("#text", "apple pear plum")
    expect(labels(page).first.locator("b")).to_have_text("fruit")
    page.wait_for_timeout(500)
    expect(labels(page).first.locator("b")).to_have_text("fruit")


def test_a_text_file_can_be_opened(page, tmp_path):
    (tmp_path / "in.txt").write_text("apple pear plum orchard")
    page.set_input_files("#file", tmp_path / "in.txt")
    expect(labels(page).first.locator("b")).to_have_text("fruit")


def test_a_file_can_be_dropped(page):
    page.evaluate("""() => {
        const data = new DataTransfer();
        data.items.add(new File(["apple pear plum"], "a.txt", {type: "text/plain"}));
        document.getElementById("paper").dispatchEvent(new DragEvent("drop", {dataTransfer: data}));
    }""")
    expect(labels(page).first.locator("b")).to_have_text("fruit")


def test_it_fits_a_phone(browser, server):
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True)
    page = context.new_page()
    page.goto(server.address)
    page.fill("#text", TEXT)
    labels(page).first.get_by_role("button", name="Why sea").tap()
    expect(labels(page).first.locator(".why")).to_contain_text("Way")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360
    small = [b.bounding_box() for b in labels(page).first.locator("button").all()]
    assert all(min(box["width"], box["height"]) >= 32 for box in small)
    context.close()


def test_light_and_dark(browser, server):
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(server.address)
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.click("#theme")
    assert page.evaluate(colour) != dark
    page.reload()
    assert page.evaluate(colour) != dark
    context.close()


def test_the_token_is_asked_for_once(browser, serving, model_folder):
    server = serving(model_folder, "--workers", "1", "--token", "secret")
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.address)
    expect(page.locator("#token")).to_be_visible()
    page.fill("#token-value", "secret")
    page.keyboard.press("Enter")
    expect(page.locator("#about")).to_contain_text("6 labels")
    type_text(page)
    page.reload()
    expect(page.locator("#about")).to_contain_text("6 labels")
    context.close()


def test_five_thousand_labels_are_searched_while_typing(browser, serving, tmp_path):
    names = [[f"subject {number:04d}"] for number in range(5000)]
    random = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in random.integers(0, 300, 5)) for _ in names]
    treetop.XRLinear(trees=1, ngrams="word:1-1").fit(texts, names).save(tmp_path / "many")
    server = serving(tmp_path / "many", "--workers", "1")
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.address)
    page.locator("#query").press_sequentially("4711")
    expect(page.locator("#matches li")).to_have_count(1)
    page.fill("#query", "subject 12")
    expect(page.locator("#matches li")).to_have_count(30)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(labels(page).locator("b")).to_have_text(["subject 1201"])
    page.fill("#query", "nothing like it")
    expect(page.locator("#matches")).to_contain_text("No label has this in its name.")
    context.close()
