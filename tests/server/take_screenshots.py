"""Take the pictures of the page in docs/images, from a running server.

`teo serve &`, then `python tests/server/take_screenshots.py http://127.0.0.1:8000 docs/images`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

LARGEST = 200_000


def take(browser: Browser, url: str, path: Path, *, width: int, scheme: str, language: str, sample: str) -> None:
    """Take one picture, with the last edit explained where there is room for a pointer."""
    context = browser.new_context(
        viewport={"width": width, "height": 760},
        color_scheme=scheme,
        locale=language,  # type: ignore[arg-type]
    )
    page = context.new_page()
    page.goto(url)
    page.click(f'[data-sample="{sample}"]')
    page.wait_for_selector("#answer:not([hidden])")
    if width > 500 and page.locator("#text .edit").count():
        page.locator("#text .edit").last.hover()
    page.wait_for_timeout(300)
    page.screenshot(path=path, full_page=True)
    context.close()
    if path.stat().st_size > LARGEST:
        raise SystemExit(f"{path}: expected at most {LARGEST} bytes, found {path.stat().st_size}")


def main(url: str, folder: Path) -> None:
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take(browser, url, folder / "page-wide.png", width=1240, scheme="light", language="en-US", sample="joker")
        take(browser, url, folder / "page-phone.png", width=390, scheme="light", language="zh-CN", sample="zhou")
        take(browser, url, folder / "page-dark.png", width=1240, scheme="dark", language="en-US", sample="curie")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
