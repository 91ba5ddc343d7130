"""Take the pictures of the page in docs/images, from a running server.

`teo serve &`, then `python tests/server/take_screenshots.py http://127.0.0.1:8000 docs/images`.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, sync_playwright

LARGEST = 200_000


@dataclass(frozen=True, slots=True)
class Picture:
    """What is to be seen on one picture."""

    name: str
    sample: str
    width: int = 1240
    scheme: Literal["light", "dark"] = "light"
    language: str = "en-US"
    others: bool = False
    """Whether the other rewrites are listed."""

    @property
    def phone(self) -> bool:
        return self.width < 500


PICTURES = [
    Picture("page-wide", "mona"),
    Picture("page-dark", "curie", scheme="dark", others=True),
    Picture("page-phone", "zhou", width=390, language="zh-CN"),
]


def take(browser: Browser, url: str, path: Path, picture: Picture) -> None:
    """Take one picture, with the last edit explained where there is room for a pointer."""
    context = browser.new_context(
        viewport={"width": picture.width, "height": 844 if picture.phone else 800},
        color_scheme=picture.scheme,
        locale=picture.language,
        reduced_motion="reduce",
        is_mobile=picture.phone,
        has_touch=picture.phone,
    )
    page = context.new_page()
    page.goto(url)
    page.click(f'[data-sample="{picture.sample}"]')
    page.wait_for_selector("#answer:not([hidden])")
    with page.expect_response("**/v1/rewrite"):  # again: the first answer of a server takes longer than any other
        page.click("#rewrite")
    page.wait_for_selector("#answer:not([hidden])")
    if picture.others:
        page.click("#more")
        page.wait_for_selector("#others-note:not(:empty)")
    elif not picture.phone and page.locator("#text .edit").count():
        page.locator("#text .edit").last.hover()
    page.wait_for_timeout(300)
    page.screenshot(path=path, full_page=not picture.phone)  # on a phone: what is in view after the answer came
    context.close()
    if path.stat().st_size > LARGEST:
        raise SystemExit(f"{path}: expected at most {LARGEST} bytes, found {path.stat().st_size}")


def main(url: str, folder: Path) -> None:
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for picture in PICTURES:
            take(browser, url, folder / f"{picture.name}.png", picture)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
