"""Take the pictures of `teo-lab judge` and `teo-lab report`, from two folders that `teo evaluate` wrote.

`python lab/tests/judging/take_screenshots.py runs/fast runs/fused lab/docs/images`, with rows that may be shown.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

LARGEST = 200_000
TEO_LAB = (sys.executable, "-c", "from teo_lab.cli.app import main; main()")


def take_judge(browser: Browser, files: list[Path], work: Path, picture: Path) -> None:
    """Take the page that a rater sees."""
    command = [*TEO_LAB, "judge", *map(str, files), "--out", str(work / "judging"), "--port", "0"]
    with subprocess.Popen([*command, "--sample", "10"], stderr=subprocess.PIPE, text=True) as process:
        lines = iter(process.stderr or ())
        url = next(found[0] for line in lines if (found := re.search(r"http://[\d.:]+", line)))
        page = browser.new_page(viewport={"width": 1000, "height": 640})
        for _ in range(100):
            try:
                page.goto(url)
                break
            except Exception:  # not listening yet
                page.wait_for_timeout(100)
        page.fill("#name", "Ann")
        page.keyboard.press("Enter")
        page.wait_for_selector("#item:not([hidden])")
        page.keyboard.press("1")
        page.wait_for_selector("#item[data-number='2']")
        save(page, picture)
        process.terminate()


def take_report(browser: Browser, files: list[Path], work: Path, folder: Path) -> None:
    """Take the report where it compares the stages, and where it lists rows."""
    command = [*TEO_LAB, "report", "--out", str(work / "report")]
    subprocess.run([*command, *(word for file in files for word in ("--predictions", str(file)))], check=True)
    page = browser.new_page(viewport={"width": 1160, "height": 900})
    page.goto((work / "report" / "report.html").as_uri())
    page.select_option("#right", "false")
    for section in ("stages", "explorer"):
        page.evaluate(f"document.getElementById('{section}').scrollIntoView()")
        save(page, folder / f"report-{section}.png")


def save(page: object, picture: Path) -> None:
    """Write what is in view."""
    page.wait_for_timeout(300)  # type: ignore[attr-defined]
    page.screenshot(path=picture)  # type: ignore[attr-defined]
    if picture.stat().st_size > LARGEST:
        raise SystemExit(f"{picture}: expected at most {LARGEST} bytes, found {picture.stat().st_size}")


def main(runs: list[Path], folder: Path) -> None:
    """Take all pictures."""
    files = [run / "predictions.jsonl" for run in runs]
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as work:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take_judge(browser, files, Path(work), folder / "judge.png")
        take_report(browser, files, Path(work), folder)
        browser.close()


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:3]], Path(sys.argv[3]))
