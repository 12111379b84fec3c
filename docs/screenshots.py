"""Take the pictures of the web page: docs/page-*.png.

    python docs/screenshots.py [MODEL]

Without MODEL a model of the demo's records is trained first, which requires the extras minilm and
demo. Requires the extra serve, Playwright and a browser (see tests/serve/install_browser.sh).
"""

import csv
import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

import treetop
from treetop.data.fairsharing import load_fairsharing

HERE = Path(__file__).parent
TEXT = (
    "Temperature and salinity of the ocean, measured by autonomous floats down to 2,000 metres. The "
    "archive holds all profiles since 1999, checked for quality and updated every day, for research "
    "on the climate and for weather services."
)
TEXTS = (
    "Genome sequences and annotations of wheat, barley and their wild relatives.",
    "Three-dimensional structures of membrane proteins, determined by electron microscopy.",
    "Interview transcripts and survey data on health care in rural communities.",
    "A nomenclature of minerals with their chemical composition and crystal structure.",
    "Interactions between drugs and their targets, with side effects and doses.",
    "Observations of birds and other animals by volunteers, with maps of their distribution.",
    "A repository of open source software and scripts for the analysis of images.",
)


def train(folder: Path) -> None:
    """Train a model on descriptions of scientific databases and their keywords."""
    data = load_fairsharing().dataset.split("train")
    model = treetop.XRTransformer.from_preset("frozen", max_length=64, keep_documents=True)
    model.fit(data.texts, data.labels).save(folder)


def semicolon_table() -> bytes:
    """A CSV file as spreadsheets write it in much of Europe."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=";")
    writer.writerow(["No.", "Received", "Résumé"])
    writer.writerows((number, f"{number + 2}.11.2026", text) for number, text in enumerate(TEXTS, 1))
    return file.getvalue().encode("cp1252")


def show_labels(page: Page) -> None:
    page.fill("#text", TEXT)
    page.locator("#labels > li").first.wait_for()


def show_explanation(page: Page) -> None:
    show_labels(page)
    first = page.locator("#labels > li").first
    first.locator(".because").click()
    first.locator(".words").wait_for()
    first.hover()
    page.locator("#marks mark").first.wait_for()
    page.evaluate("scrollTo(0, 0)")


def show_decisions(page: Page) -> None:
    show_labels(page)
    page.locator("#labels .yes").nth(3).click()
    page.locator("#labels .no").nth(2).click()
    page.mouse.move(0, 0)
    page.fill("#query", "weather")
    page.locator("#matches li").first.wait_for()


def show_batch(page: Page) -> None:
    page.click("#many-tab")
    buffer = semicolon_table()
    page.set_input_files("#table", {"name": "abstracts.csv", "mimeType": "text/csv", "buffer": buffer})
    page.fill("#many-count", "4")
    page.fill("#threshold", "0.1")
    page.click("#start")
    page.get_by_role("button", name="Start again").wait_for()
    page.locator("#rows > li").nth(0).focus()
    page.keyboard.press("a")
    page.locator("#rows > li").nth(1).locator(".chip").nth(0).click()
    page.locator("#rows > li").nth(1).locator(".chip").last.click(click_count=2)
    page.mouse.move(0, 0)
    page.keyboard.press("ArrowDown")
    page.evaluate("scrollTo(0, 0)")


PICTURES: dict[str, tuple[Callable[[Page], None], dict[str, Any]]] = {
    "light": (show_labels, {"viewport": {"width": 1200, "height": 800}}),
    "explaining": (show_explanation, {"viewport": {"width": 1200, "height": 960}}),
    "dark": (show_decisions, {"viewport": {"width": 1200, "height": 800}, "color_scheme": "dark"}),
    "batch": (show_batch, {"viewport": {"width": 1200, "height": 960}}),
    "phone": (show_labels, {"viewport": {"width": 390, "height": 780}, "device_scale_factor": 2}),
}


def take_pictures(address: str) -> None:
    """Take every picture of the page at `address`."""
    with sync_playwright() as driver:
        program = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, (show, options) in PICTURES.items():
            page = browser.new_page(**options)
            page.goto(address)
            page.locator("#about:not(:empty)").wait_for()
            show(page)
            page.wait_for_timeout(200)
            page.screenshot(path=HERE / f"page-{name}.png")
        browser.close()


@contextmanager
def serving(model: Path, feedback: Path) -> Iterator[str]:
    """Serve a model, and give the address of its page."""
    command = [sys.executable, "-m", "treetop", "serve", str(model), "--port", "0"]
    server = subprocess.Popen(
        [*command, "--feedback", str(feedback)], stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    try:
        yield next(match[0] for line in server.stderr if (match := re.search(r"http://\S+", line)))
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Train a model unless one is given, serve it, and take the pictures."""
    with tempfile.TemporaryDirectory() as temporary:
        model = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary) / "databases"
        if len(sys.argv) == 1:
            train(model)
        with serving(model, Path(temporary) / "decisions.jsonl") as address:
            take_pictures(address)


if __name__ == "__main__":
    main()
