"""Take the pictures of a report for docs/howto/report.md, with Debian's Chromium or Playwright's own.

python docs/report_pictures.py REPORT.html              # light, wrong, dark
python docs/report_pictures.py REPORT.html confidence   # this picture alone
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1120, 900
# Name of a picture: the section it begins with, and the options of the page.
PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "light": ("header", {}),
    "wrong": ("#worst-documents .document:nth-last-of-type(2)", {}),
    "dark": ("#confidence", {"color_scheme": "dark"}),
    "confidence": ("#confidence", {}),
}


def take(page: Page, start: str, path: Path) -> None:
    """Take a picture of the part of the page that begins with the element `start`."""
    page.evaluate("document.querySelectorAll('details.tree').forEach((one, n) => one.open = n == 0)")
    top = page.locator(start).first.evaluate("one => one.getBoundingClientRect().top + scrollY")
    clip = {"x": 0, "y": max(0, top - 12), "width": WIDTH, "height": HEIGHT}
    page.screenshot(path=path, full_page=True, clip=clip)


def main() -> None:
    """Take pictures of the report that is given."""
    address = Path(sys.argv[1]).resolve().as_uri()
    with sync_playwright() as driver:
        program = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name in sys.argv[2:] or ["light", "wrong", "dark"]:
            start, options = PICTURES[name]
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, **options)
            page.goto(address)
            take(page, start, HERE / f"report-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
