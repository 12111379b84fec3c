"""The page with a file of texts: detection, decisions, keyboard and downloads, in a real browser."""

import csv
import io
import json

import pytest

import treetop
from tests.serve.conftest import documents

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
HEAD = ["id", "kind", "body", "url"]


def rows(page):
    return page.locator("#rows > li")


def open_table(page, name, content):
    page.click("#many-tab")
    page.set_input_files("#table", {"name": name, "mimeType": "text/csv", "buffer": content})


def label_all(page):
    page.click("#start")
    expect(page.locator("#start")).to_have_text("Start again", timeout=30_000)
    expect(page.locator("#start")).to_be_enabled()


def downloaded(page, button):
    with page.expect_download() as download:
        page.click(button)
    return download.value.suggested_filename, download.value.path().read_bytes()


def table(count, delimiter=",", newline="\r\n", texts=None):
    """A file with a column of texts that is neither the first nor named text."""
    texts = texts or documents(count)[0]
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=newline)
    writer.writerow(HEAD)
    for number, text in enumerate(texts):
        url = f"https://example.org/some/long/address/of/item/{number}"
        writer.writerow([number, "review" if number % 2 else "letter", text, url])
    return file.getvalue()


def test_a_table_is_labeled_row_by_row(page, model_folder):
    texts, _ = documents(50)
    texts[0] = 'with "quotes", commas\nand a second line apple'
    open_table(page, "in.csv", table(50, texts=texts).encode())
    expect(page.locator("#detected")).to_have_text(
        "50 rows, 4 columns. Detected: comma-separated, UTF-8, texts in column “body”."
    )
    page.fill("#many-count", "2")
    label_all(page)
    expect(page.locator("#done")).to_have_text("50 of 50 rows")
    assert page.locator("#progress").evaluate("one => one.value") == 1
    name, content = downloaded(page, "#fetch")
    assert name == "in-labels.csv"
    records = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    assert list(records[0]) == [*HEAD, "labels", "scores"]
    assert [record["body"] for record in records] == texts
    expected = treetop.load(str(model_folder)).predict(texts, 2)
    assert [record["labels"].split(";") for record in records] == [
        [label for label, _ in prediction] for prediction in expected
    ]
    name, content = downloaded(page, "#fetch-jsonl")
    assert name == "in-labels.jsonl"
    records = [json.loads(line) for line in content.decode().splitlines()]
    assert [record["text"] for record in records] == texts
    assert records[3]["labels"] == [label for label, _ in expected[3]]
    assert (records[3]["id"], records[3]["kind"]) == ("3", "review")
    assert "body" not in records[3]


@pytest.mark.parametrize(
    ("encoding", "delimiter", "newline", "mark", "described"),
    [
        ("cp1252", ";", "\r\n", b"", "semicolon-separated, Windows-1252 (Western European)"),
        ("utf-8", "\t", "\n", b"", "tab-separated, UTF-8"),
        ("utf-8", ",", "\r\n", b"\xef\xbb\xbf", "comma-separated, UTF-8"),
        ("utf-16-le", "\t", "\r\n", b"\xff\xfe", "tab-separated, UTF-16 (little-endian)"),
        ("utf-16-be", ";", "\n", b"\xfe\xff", "semicolon-separated, UTF-16 (big-endian)"),
    ],
)
def test_delimiter_encoding_and_newlines_are_kept(page, encoding, delimiter, newline, mark, described):
    texts = [f"Äpfel und Käse; apple, pear\n“plum” – {number}" for number in range(4)]
    content = table(4, delimiter, newline, texts)
    open_table(page, "in.csv", mark + content.encode(encoding))
    expect(page.locator("#detected")).to_have_text(
        f"4 rows, 4 columns. Detected: {described}, texts in column “body”."
    )
    expect(rows(page).first.locator("p")).to_contain_text("Äpfel und Käse; apple, pear")
    page.fill("#many-count", "1")
    label_all(page)
    _, written = downloaded(page, "#fetch")
    assert written.startswith(mark)
    read = written.removeprefix(mark).decode(encoding)
    lines = list(csv.reader(io.StringIO(read, newline=""), delimiter=delimiter))
    assert [line[:4] for line in lines] == list(
        csv.reader(io.StringIO(content, newline=""), delimiter=delimiter)
    )
    assert [line[4] for line in lines] == ["labels"] + ["fruit"] * 4
    assert read.count(newline) == len(lines) + (4 if newline == "\n" else 0)


def test_labels_that_the_encoding_cannot_represent_make_it_utf8(page):
    page.route(
        "**/v1/predict",
        lambda route: route.fulfill(
            json={"model": "m", "results": [{"labels": [{"label": "日本", "score": 0.9}]}]}
        ),
    )
    open_table(page, "in.csv", "text;id\nKäse;1\n".encode("cp1252"))
    label_all(page)
    _, written = downloaded(page, "#fetch")
    assert written.decode("utf-8-sig") == "text;id;labels;scores\nKäse;1;日本;0.9\n"
    assert written.startswith(b"\xef\xbb\xbf")
    expect(page.locator("#tally")).to_contain_text("Written as UTF-8")


def test_what_was_detected_can_be_changed(page):
    open_table(page, "in.csv", "naïve|crème brûlée\ncafé|apple pear\n".encode("cp1252"))
    expect(page.locator("#detected")).to_contain_text("1 row, 2 columns. Detected: pipe-separated")
    page.get_by_label("First row has column names").uncheck()
    expect(page.locator("#detected")).to_contain_text("2 rows, 2 columns. Read as: pipe-separated")
    expect(page.locator("#column option")).to_have_text(["column 1", "column 2"])
    page.select_option("#column", "0")
    expect(rows(page).locator("p")).to_have_text(["naïve", "café"])
    page.select_option("#encoding", "windows-1251")
    expect(rows(page).first.locator("p")).to_have_text("crиme brыlйe")
    page.select_option("#encoding", "windows-1252")
    page.select_option("#delimiter", "|")
    expect(rows(page)).to_have_count(2)


def test_labels_below_the_minimum_score_are_left_out(page, model_folder):
    texts = ["apple pear", "boat wave", "apple boat qqq"]
    open_table(page, "in.csv", ("text\n" + "\n".join(texts) + "\n").encode())
    page.fill("#many-count", "6")
    label_all(page)
    expect(rows(page).first.locator(".chip")).to_have_count(6)
    scores = treetop.load(str(model_folder)).predict(texts, 6)
    threshold = round(max(scores[0][1][1], scores[2][0][1]) + 1e-3, 3)
    page.fill("#threshold", str(threshold))
    kept = [[label for label, score in row if score >= threshold] for row in scores]
    assert len(kept[0]) == 1
    expect(rows(page).first.locator(".chip")).to_have_count(1)
    expect(rows(page).nth(2)).to_contain_text("no label reaches the minimum score")
    _, content = downloaded(page, "#fetch-jsonl")
    assert [json.loads(line)["labels"] for line in content.decode().splitlines()] == kept


def test_probabilities_have_a_slider(open_page, serving, calibrated_folder):
    page = open_page(serving(calibrated_folder))
    expect(page.locator("#threshold-name")).to_have_text("Minimum probability")
    open_table(page, "in.csv", b"text\napple pear\nboat wave\n")
    page.fill("#many-count", "6")
    label_all(page)
    expect(rows(page).first.locator(".chip")).to_have_count(6)
    rated = treetop.load(str(calibrated_folder)).predict(["apple pear"], 6, probability=True)[0]
    page.locator("#threshold").fill("0.5")
    expect(page.locator("#threshold-value")).to_have_text("0.50")
    expect(rows(page).first.locator(".chip")).to_have_count(sum(p >= 0.5 for _, p in rated))


def test_scores_without_a_minimum_are_not_left_out(open_page, server):
    def unbounded(route):
        model = route.fetch().json()
        route.fulfill(json={**model, "scores": {**model["scores"], "minimum": None}})

    page = open_page(server)
    page.route("**/v1/model", unbounded)
    page.reload()
    expect(page.locator("#threshold")).to_have_value("")
    labels = [{"label": "sea", "score": -3.5}]
    answer = {"model": "m", "results": [{"labels": labels}]}
    page.route("**/v1/predict", lambda route: route.fulfill(json=answer))
    open_table(page, "in.csv", b"text\napple\n")
    label_all(page)
    expect(rows(page).first.locator(".chip")).to_have_text("○sea -3.50")


def test_decisions_by_keyboard(page, server):
    open_table(page, "in.csv", b"text\napple pear\nboat wave\nflame smoke\n")
    page.fill("#many-count", "2")
    label_all(page)
    rows(page).first.focus()
    page.keyboard.press("Enter")
    expect(rows(page).first.locator("p")).to_have_class("open")
    page.keyboard.press("a")
    expect(rows(page).first.locator(".chip.accepted")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(rows(page).nth(1).locator(".chip").first).to_be_focused()
    page.keyboard.press("a")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("r")
    page.keyboard.press("u")
    page.keyboard.press("r")
    expect(rows(page).nth(1).locator(".chip").nth(1)).to_be_focused()
    expect(rows(page).nth(1).locator(".chip.rejected")).to_have_count(1)
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    expect(page.locator("#tally")).to_have_text(
        "3 rows of 3 with labels; 3 labels accepted, 1 rejected"
    )
    _, content = downloaded(page, "#fetch")
    records = list(csv.DictReader(io.StringIO(content.decode())))
    assert [record["labels"].count(";") for record in records] == [1, 0, 1]
    assert records[1]["labels"] == records[1]["accepted"] == "sea"
    assert records[1]["rejected"] != ""
    page.click("#save-all")
    expect(page.locator("#tally")).to_have_text("Decisions on 2 rows saved.")
    saved = [json.loads(line) for line in server.journal.read_text().splitlines()[-2:]]
    assert [record["text"] for record in saved] == ["apple pear", "boat wave"]
    assert saved[1]["labels"] == ["sea"]


def test_decisions_by_mouse(page):
    open_table(page, "in.csv", b"text\napple pear\nboat wave\n")
    page.fill("#many-count", "1")
    label_all(page)
    chip = rows(page).first.locator(".chip")
    for state in ("accepted", "rejected", "not decided"):
        chip.click()
        assert chip.get_attribute("aria-label").endswith(state)
    page.get_by_role("button", name="Reject all labels of row 2").click()
    expect(rows(page).nth(1).locator(".chip")).to_have_class("chip rejected")
    _, content = downloaded(page, "#fetch-jsonl")
    assert [json.loads(line)["labels"] for line in content.decode().splitlines()] == [["fruit"], []]


def test_decisions_on_a_phone(open_page, server):
    """Nothing moves under the finger: neither the text nor the labels change their size."""
    page = open_page(server, viewport={"width": 375, "height": 740}, has_touch=True)
    open_table(page, "in.csv", ("text\n" + "apple pear boat flame " * 40 + "\n").encode())
    page.fill("#many-count", "6")
    label_all(page)
    rows(page).first.focus()
    page.keyboard.press("r")
    page.keyboard.press("u")
    for chip in rows(page).first.locator(".chip").all():
        chip.tap()
        expect(chip).to_have_class("chip accepted")
    expect(page.locator("#tally")).to_have_text("1 row of 1 with labels; 6 labels accepted, 0 rejected")
    text = rows(page).first.locator("p")
    before = text.bounding_box()["height"]
    text.tap()
    expect(text).to_have_class("open")
    assert text.bounding_box()["height"] > 2 * before


def test_long_tables_have_pages(page):
    open_table(page, "in.csv", table(60).encode())
    expect(page.locator("#place")).to_have_text("Rows 1–25 of 60")
    rows(page).last.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#place")).to_have_text("Rows 26–50 of 60")
    expect(rows(page).first).to_be_focused()
    page.click("#next")
    expect(rows(page)).to_have_count(10)
    expect(page.locator("#next")).to_be_disabled()


def test_a_file_without_rows(page):
    open_table(page, "in.csv", b"")
    message = "in.csv has no rows: it needs one text per row."
    expect(page.locator("#problem")).to_contain_text(message)


def test_a_batch_waits_while_the_server_is_busy(page):
    answers = []

    def busy_once(route):
        answers.append(route)
        if len(answers) == 1:
            body = json.dumps({"error": {"code": "busy", "message": "busy"}})
            route.fulfill(status=503, headers={"retry-after": "1"}, body=body)
        else:
            route.continue_()

    page.route("**/v1/predict", busy_once)
    open_table(page, "in.csv", b"text\napple\nboat\n")
    label_all(page)
    expect(page.locator("#done")).to_have_text("2 of 2 rows")
    assert len(answers) == 2


def test_a_batch_can_be_resumed_after_an_error(page):
    calls = []

    def fail_second(route):
        calls.append(len(json.loads(route.request.post_data)["texts"]))
        if len(calls) == 2:
            route.abort()
        else:
            route.continue_()

    page.route("**/v1/predict", fail_second)
    open_table(page, "in.csv", table(40).encode())
    page.click("#start")
    expect(page.locator("#problem")).to_contain_text("The server cannot be reached.")
    expect(page.locator("#start")).to_have_text("Resume")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#done")).to_have_text("40 of 40 rows")
    assert calls == [16, 16, 16, 8]


def test_fields_that_a_spreadsheet_would_run_are_not_formulas(page):
    fields = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "-0.25", "1,5", "apple", "a=b", "\t=1"]
    line = page.evaluate("fields => import('./csv.js').then((csv) => csv.writeRow(fields))", fields)
    written = next(csv.reader(io.StringIO(line)))
    assert written == ["'=1+1", "'+cmd", "'-2+3", "'@SUM(A1)", "-0.25", "1,5", "apple", "a=b", "'\t=1"]
