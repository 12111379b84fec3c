"""The page with a single text, in a real browser."""

import csv
import io
import json
import re

import numpy as np
import pytest

import treetop

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
TEXT = "The boat left the harbour with a full sail"


def labels(page):
    return page.locator("#labels > li")


def names(page):
    return labels(page).locator("b").all_text_contents()


def type_text(page, text=TEXT):
    page.fill("#text", text)
    expect(labels(page).first).to_be_visible()


def explain_first(page):
    labels(page).first.locator(".because").click()
    expect(labels(page).first.locator(".why .words")).to_be_visible()
    return labels(page).first.locator(".why")


def downloaded(page, button):
    with page.expect_download() as download:
        page.click(button)
    return download.value.path().read_text("utf-8")


def number(text):
    return float(text.replace("−", "-"))


def test_labels_and_scores_appear_while_typing(page, model_folder):
    page.locator("#text").press_sequentially(TEXT, delay=5)
    expect(labels(page)).to_have_count(6)
    expected = treetop.load(str(model_folder)).predict([TEXT], 6)[0]
    assert names(page) == [name for name, _ in expected]
    widths = [bar.bounding_box()["width"] for bar in labels(page).locator(".bar i").all()]
    assert widths == sorted(widths, reverse=True)
    assert labels(page).first.locator(".score").text_content() == f"{expected[0][1]:.3f}"
    expect(page.locator("#about")).to_have_text("6 labels, 240 training texts")
    expect(page.locator("#score-meaning")).to_have_text(
        "Score: From 0 to 1 (sigmoid of the raw scores). Not a calibrated probability."
    )
    page.fill("#text", "")
    expect(labels(page)).to_have_count(0)
    expect(page.locator("#empty")).to_be_visible()


def test_pointing_at_a_label_highlights_its_words(page):
    type_text(page)
    labels(page).first.hover()
    marked = page.locator("#marks mark:not(.against)")
    expect(marked.first).to_be_attached()
    assert {"boat", "harbour", "sail"} <= set(" ".join(marked.all_text_contents()).split())
    assert page.locator("#marks").text_content().rstrip("\n") == TEXT
    page.locator("h1").hover()
    expect(page.locator("#marks mark")).to_have_count(0)


def test_a_pointer_that_crosses_the_list_asks_for_one_explanation(page):
    type_text(page)
    expect(labels(page).nth(3)).to_be_visible()
    asked = []
    page.on(
        "request",
        lambda request: asked.append(request.post_data_json) if "explain" in request.url else 0,
    )
    # Without a pause between two labels, however busy the machine is.
    page.evaluate(
        """() => {
          const items = [...document.querySelectorAll("#labels > li")];
          for (const item of items) {
            item.dispatchEvent(new MouseEvent("mouseenter"));
            if (item !== items.at(-1)) item.dispatchEvent(new MouseEvent("mouseleave"));
          }
        }"""
    )
    expect(page.locator("#marks mark").first).to_be_attached()
    last = labels(page).last.get_attribute("data-label")
    assert [body["labels"] for body in asked] == [[last]]


def test_the_parts_of_an_explanation_add_up_to_the_score(page, model_folder):
    type_text(page)
    why = explain_first(page)
    values = map(number, why.locator(".sum td:not(.balance)").all_text_contents())
    shown = dict(zip(why.locator(".sum th").all_text_contents(), values, strict=True))
    assert set(shown) == {"Words", "Bias", "Raw score"}
    expected = treetop.load(str(model_folder)).explain(TEXT, k=1)[0]
    assert shown["Raw score"] == pytest.approx(expected.raw_score, abs=0.006)
    assert round(shown["Words"] + shown["Bias"], 2) == shown["Raw score"]
    chips = [chip.split()[-1] for chip in why.locator(".words li").all_text_contents()]
    assert sum(map(number, chips)) == pytest.approx(shown["Words"], abs=0.006 * (len(chips) + 1))
    formula = f"Score {expected.score:.3f}: the mean of sigmoid(raw score), over 3 models."
    expect(why.locator(".sum + p")).to_have_text(formula)


def test_the_parts_add_up_as_they_are_shown_whatever_rounding_does(page):
    type_text(page)

    def explain(route):
        answer = route.fetch().json()
        for reason in answer["labels"]:
            reason |= {"word_sum": 1.1541, "bias": -1.0783, "encoder": 0, "raw_score": 0.0758}
        route.fulfill(json=answer)

    page.route("**/v1/explain", explain)
    why = explain_first(page)
    assert why.locator(".sum td:not(.balance)").all_text_contents() == ["+1.16", "−1.08", "+0.08"]


def test_a_model_without_a_tree_does_not_mention_one(page):
    type_text(page)
    why = explain_first(page)
    assert why.locator("h4").all_text_contents() == ["Words", "Similar training texts"]
    assert "tree" not in why.text_content()


def test_the_paths_of_a_forest(open_page, tree_server):
    page = open_page(tree_server)
    type_text(page)
    why = explain_first(page)
    expect(why.locator("h4").nth(1)).to_have_text("Path through the label tree (1 of 2 trees)")
    expect(why.locator(".path").first.locator("li")).to_have_count(2)
    expect(why.locator(".path").first.locator("li").last).to_contain_text("sea")
    formula = "the mean of l3-ordered(raw score), multiplied along the path, over 2 trees."
    expect(why.locator(".sum + p")).to_contain_text(formula)
    why.locator("summary").click()
    expect(why.locator("details .path")).to_be_visible()


def test_an_explanation_stays_open_after_a_decision(page):
    type_text(page)
    explain_first(page)
    labels(page).first.get_by_role("button", name="Accept sea").click()
    expect(labels(page).first.locator(".why")).to_contain_text("Raw score")


def test_accept_reject_add_and_download(page):
    type_text(page)
    page.get_by_role("button", name="Accept sea").click()
    page.get_by_role("button", name="Reject fire").click()
    page.fill("#query", "frui")
    expect(page.locator("#matches li").first).to_contain_text("fruit")
    page.keyboard.press("Enter")
    expect(page.locator("#labels > li.accepted")).to_have_count(2)
    record = json.loads(downloaded(page, "#as-jsonl"))
    assert record["text"] == TEXT
    assert set(record["labels"]) == {"sea", "fruit"}
    lines = list(csv.reader(io.StringIO(downloaded(page, "#as-csv"))))
    assert lines[0] == ["label", "score"]
    assert {line[0] for line in lines[1:]} == {"sea", "fruit"}


def test_a_decision_is_saved_as_feedback(page, server):
    type_text(page, "a boat of mine")
    expect(page.locator("#keep")).to_be_disabled()
    page.get_by_role("button", name="Accept sea").click()
    page.get_by_role("button", name="Reject sky").click()
    page.click("#keep")
    expect(page.locator("#state")).to_have_text("Saved")
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
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("w")
    expect(labels(page).nth(1).locator(".why")).to_contain_text("Raw score")
    page.locator("#one-tab").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#many")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#one")).to_be_visible()


def test_texts_and_labels_are_never_parsed_as_html(page):
    evil = "hack code <script>document.title='run'</script> <img src=x onerror=document.title='run'>"
    type_text(page, evil)
    item = page.locator("#labels > li", has_text="<script>alert(1)</script>")
    item.hover()
    expect(page.locator("#marks mark").first).to_be_attached()
    item.get_by_role("button", name=re.compile("Why")).click()
    expect(item.locator(".why")).to_contain_text("Raw score")
    assert page.locator("#marks").text_content().rstrip("\n") == evil
    assert "run" not in page.title()


def test_text_from_right_to_left(page):
    type_text(page, "שלום boat harbour")
    direction = "one => getComputedStyle(one).direction"
    assert page.locator("#text").evaluate(direction) == "rtl"
    labels(page).first.hover()
    expect(page.locator("#marks mark").first).to_be_attached()
    assert page.locator("#marks").evaluate(direction) == "rtl"
    page.fill("#text", TEXT)
    assert page.locator("#text").evaluate(direction) == "ltr"


def test_an_error_is_shown_and_the_request_can_be_repeated(page):
    page.route("**/v1/predict", lambda route: route.abort())
    page.fill("#text", TEXT)
    expect(page.locator("#problem")).to_contain_text("The server cannot be reached.")
    page.unroute("**/v1/predict")
    page.get_by_role("button", name="Try again").click()
    expect(labels(page).first).to_be_visible()
    expect(page.locator("#problem")).to_be_hidden()


def test_error_messages_of_the_server_are_shown(page):
    page.fill("#text", "x" * 300_000)
    message = "Request body exceeds the limit of 200,000 bytes"
    expect(page.locator("#problem")).to_contain_text(message)
    page.get_by_role("button", name="Dismiss").click()
    expect(page.locator("#problem")).to_be_hidden()


def test_a_slow_response_is_announced_and_an_outdated_one_is_ignored(page):
    held = []

    def hold_slow(route):
        if "slow" in route.request.post_data:
            held.append(route)
        else:
            route.continue_()

    page.route("**/v1/predict", hold_slow)
    page.fill("#text", "slow boat harbour")
    expect(page.locator("#state")).to_have_text("Waiting for the server…")
    page.fill("#text", "apple pear plum")
    expect(labels(page).first.locator("b")).to_have_text("fruit")
    for route in held:
        route.continue_()
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


def test_it_fits_a_phone(open_page, server):
    page = open_page(server, viewport={"width": 360, "height": 740}, has_touch=True)
    page.fill("#text", TEXT)
    labels(page).first.get_by_role("button", name="Why sea?").tap()
    expect(labels(page).first.locator(".why")).to_contain_text("Raw score")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    expect(page.locator("#legend")).to_be_visible()  # it makes the card higher
    card, legend = (page.locator(name).bounding_box() for name in (".writing", "#legend"))
    assert legend["y"] + legend["height"] <= card["y"] + card["height"]
    name, score = (labels(page).first.locator(part).bounding_box() for part in (".label > b", ".score"))
    assert name["width"] > 250
    assert name["y"] + name["height"] <= score["y"]
    boxes = [button.bounding_box() for button in labels(page).first.locator("button").all()]
    assert all(min(box["width"], box["height"]) >= 36 for box in boxes)
    page.click("#many-tab")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_theme_is_remembered(open_page, server):
    page = open_page(server, color_scheme="dark")
    color = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(color)
    page.click("#theme")
    assert page.evaluate(color) != dark
    page.reload()
    assert page.evaluate(color) != dark


def test_the_token_is_requested_once(open_page, token_server):
    page = open_page(token_server)
    expect(page.locator("#token")).to_be_visible()
    page.fill("#token-value", "wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#token-wrong")).to_have_text("The token is wrong.")
    page.fill("#token-value", "secret")
    page.keyboard.press("Enter")
    expect(page.locator("#about")).to_contain_text("6 labels")
    type_text(page)
    page.reload()
    expect(page.locator("#about")).to_contain_text("6 labels")


def test_thousands_of_labels_are_searched_while_typing(open_page, serving, tmp_path):
    names = [[f"subject {number:04d}"] for number in range(5000)]
    random = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in random.integers(0, 300, 5)) for _ in names]
    treetop.XRLinear(trees=1, ngrams="word:1-1").fit(texts, names).save(tmp_path / "many")
    page = open_page(serving(tmp_path / "many", "--workers", "1"))
    page.locator("#query").press_sequentially("4711")
    expect(page.locator("#matches li")).to_have_count(1)
    page.fill("#query", "subject 12")
    expect(page.locator("#matches li")).to_have_count(30)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(labels(page).locator("b")).to_have_text(["subject 1201"])
    page.fill("#query", "nothing like it")
    expect(page.locator("#results")).to_contain_text("No label name contains this.")
