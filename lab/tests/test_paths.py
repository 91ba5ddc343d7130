"""Where the lab finds its data: beside the package, or in the checkout that the command runs in."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import teo_lab
from teo_lab.paths import LAB, ROWS

CODE = """
import sys; sys.path.insert(0, sys.argv[1])
from teo_lab.paths import LAB
from teo_lab.rows.build import make_rows
from teo_lab.rows.settings import RowsRecipe
try:
    print(LAB, len(make_rows(RowsRecipe(counting_en=3))))
except Exception as error:
    print(error)
"""


def test_a_checkout_has_all_folders() -> None:
    assert Path(__file__).parents[1] == LAB
    assert (ROWS / "README.md").is_file()


@pytest.mark.process
def test_a_package_that_is_installed_apart_finds_the_checkout_it_runs_in(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "site-packages"
    shutil.copytree(Path(teo_lab.__file__).parent, site / "teo_lab")
    command = [sys.executable, "-c", CODE, str(site)]
    inside, outside = (
        subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout.strip()
        for folder in (LAB.parent, tmp_path)
    )
    assert inside == f"{LAB} 3"
    assert outside.startswith(f"{tmp_path / 'lab' / 'rows'}: no such folder; expected the lab's rows: run teo-lab in")
