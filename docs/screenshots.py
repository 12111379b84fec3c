"""Takes the pictures of the page: docs/page-*.png. Needs a browser and the extras minilm and serve."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import treetop
from treetop.cli.demo import PACKAGES
from treetop.data.docstrings import load_docstrings

HERE = Path(__file__).parent
TEXT = (
    "Resample a signal to a new sampling rate along the given axis. The signal is low-pass filtered "
    "with a window first, so that frequencies above half the new rate do not come back as others. "
    "Values beyond the ends are taken to be zero. Returns an array of the same type; the number of "
    "samples is rounded."
)


def train(folder: Path) -> None:
    """A model of the documentation of scientific packages."""
    data = load_docstrings(PACKAGES).split("train")
    model = treetop.XRTransformer.from_preset("frozen", max_length=64, keep_documents=True)
    model.fit(data.texts, data.labels).save(folder)


def pictures(address: str) -> None:
    """The page in light and dark, on a phone, and explaining."""
    found = shutil.which("chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for name, options in {
            "light": {"viewport": {"width": 1200, "height": 760}},
            "explaining": {"viewport": {"width": 1200, "height": 820}},
            "dark": {"viewport": {"width": 1200, "height": 760}, "color_scheme": "dark"},
            "phone": {"viewport": {"width": 390, "height": 780}, "device_scale_factor": 2},
        }.items():
            page = browser.new_page(**options)
            page.goto(address)
            page.fill("#text", TEXT)
            labels = page.locator("#labels > li")
            labels.first.wait_for()
            if name == "explaining":
                labels.first.locator(".because").click()
                page.locator(".why h3").first.wait_for()
                labels.first.hover()
                page.locator("#marks mark").first.wait_for()
            if name == "dark":
                labels.nth(0).locator(".yes").click()
                labels.nth(2).locator(".no").click()
                page.fill("#query", "win")
                page.locator("#matches li").first.wait_for()
            page.wait_for_timeout(200)
            page.screenshot(path=HERE / f"page-{name}.png")
        browser.close()


def main() -> None:
    """Train, serve, look."""
    with tempfile.TemporaryDirectory() as spare:
        folder = Path(spare) / "scientific-python"
        train(folder)
        command = [sys.executable, "-m", "treetop", "serve", str(folder), "--port", "0"]
        journal = ["--feedback", str(Path(spare) / "decisions.jsonl")]
        server = subprocess.Popen([*command, *journal], stderr=subprocess.PIPE, text=True)
        assert server.stderr is not None
        address = next(re.findall(r"http://\S+", line)[0] for line in server.stderr if "http" in line)
        pictures(address)
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
