import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from teo.cli import app as cli
from teo.cli import options
from teo.cli.data import data_app
from teo.data import READERS, download
from teo.data.download import MIRROR_VARIABLE
from teo.data.registry import REGISTRY
from teo.errors import InputError

LINES = "你去哪\t\t去北京\t\t为什么去\t\t为什么去北京\n坏\n能吃吗\t\t苹果\t\t它能\t\t苹果能\n"


@pytest.fixture
def corpus(tmp_path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(LINES, encoding="utf-8")
    return path


def run(*arguments):
    return CliRunner().invoke(data_app, [str(argument) for argument in arguments])


def test_convert_writes_rows_and_reports_skipped_ones_on_stderr(corpus, tmp_path):
    out = tmp_path / "rows.jsonl"
    result = run("convert", "rewrite", corpus, out)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        f"skipped {corpus}:2: expected 4 columns with a double tab between, found 1",
        "1 malformed rows skipped (--strict makes them an error)",
        f"2 rows written to {out}",
    ]
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert rows[0] == {
        "id": "rewrite-00001",
        "history": ["你去哪", "去北京"],
        "utterance": "为什么去",
        "rewrite": "为什么去北京",
    }


@pytest.mark.parametrize("verb", ["convert", "edits"])
@pytest.mark.parametrize(
    ("source", "out", "found"),
    [
        ("d/own.jsonl", "d/own.jsonl", "the file that is read"),
        ("d/own.jsonl", "d/../d/own.jsonl", "the file that is read"),
        ("d/own.jsonl", "link.jsonl", "the file that is read"),
        ("d", "d/own.jsonl", "a file in the folder that is read"),
        ("d", "d/new.jsonl", "a file in the folder that is read"),
        ("d/own.jsonl", "d/new.jsonl", None),
        ("d", "new.jsonl", None),
    ],
)
def test_the_data_that_is_read_is_never_replaced(tmp_path, verb, source, out, found):
    (tmp_path / "d").mkdir()
    text = '{"history": ["Ben"], "utterance": "he", "rewrite": "Ben"}\n'
    for name in ("own", "train"):
        (tmp_path / "d" / f"{name}.jsonl").write_text(text)
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "d" / "own.jsonl")
    result = run(verb, "jsonl", tmp_path / source, f"{tmp_path}/{out}")
    if found is None:
        assert result.exit_code == 0
        assert (tmp_path / out).exists()
    else:
        assert isinstance(result.exception, InputError)
        assert f"{out}: expected a file outside the data that is read, found {found}" in str(result.exception)
        assert not (tmp_path / "d" / "new.jsonl").exists()
    assert (tmp_path / "d" / "own.jsonl").read_text() == text


def test_convert_to_standard_output_can_be_read_back(corpus, tmp_path):
    first = run("convert", "rewrite", corpus, "-")
    file = tmp_path / "rows.jsonl"
    file.write_text(first.stdout, encoding="utf-8")
    assert run("convert", "jsonl", file, "-").stdout == first.stdout
    assert len(first.stdout.splitlines()) == 2


def test_only_the_first_skipped_rows_are_named(tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(LINES + "坏\n" * 30, encoding="utf-8")
    errors = run("convert", "rewrite", corpus, "-").stderr.splitlines()
    assert len(errors) == 11
    assert errors[-1].startswith("31 malformed rows skipped")


def test_edits(corpus):
    records = [json.loads(line) for line in run("edits", "rewrite", corpus, "-").stdout.splitlines()]
    assert [record["operations"] for record in records] == ["[I] 北京", "[D] 它 [R] 苹果"]
    assert records[1]["edits"] == [{"op": "replace", "start": 0, "end": 1, "old": "它", "new": "苹果"}]


def test_order_of_operations(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"history": ["Ben"], "utterance": "he said so", "rewrite": "Ben said so to me"}\n')
    by_order = {
        order: json.loads(run("edits", "jsonl", file, "-", "--order", order).stdout)["operations"]
        for order in ("position", "insertions-first")
    }
    assert by_order == {"position": "[D] he [R] Ben [I] to me", "insertions-first": "[I] to me [D] he [R] Ben"}


def test_stats_table_and_json(corpus, tmp_path):
    file = tmp_path / "rows.jsonl"
    run("convert", "rewrite", corpus, file)
    table = run("stats", "jsonl", file).stdout
    assert "replacements                         1" in table
    assert json.loads(run("stats", "jsonl", file, "--json").stdout)["splits"]["all"]["insertions"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convert", "rewrite", "CORPUS", "-", "--strict"], "1 malformed in all"),
        (["convert", "rewrite", "CORPUS", "-", "--split", "test"], "the split 'test' of rewrite has no rows"),
        (["convert", "rewrite", "CORPUS", "-", "--history", "full"], "history: the dataset rewrite has no options"),
        (["convert", "rewrite", "CORPUS", "-", "--forms", "both"], "forms: the dataset rewrite has no options"),
        (["edits", "task", "CORPUS", "-"], "the format of the dataset 'rewrite'; use 'rewrite' instead"),
        (["stats", "nothing", "CORPUS"], "dataset: expected one of rewrite"),
        (["download", "jsonl"], "dataset: expected one of rewrite"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(corpus, arguments, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["teo", "data", *(a.replace("CORPUS", str(corpus)) for a in arguments)])
    monkeypatch.delenv("TEO_DEBUG", raising=False)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    [line] = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("skipped")]
    assert line.startswith("teo: ")
    assert message in line


def test_options_of_task(tmp_path):
    turn = {
        "transcript_complete": "Is it open ?",
        "transcript_with_ellipsis": "Open ?",
        "transcript_with_coreference": "It ?",
    }
    dialogue = {"dialogue_id": 1, "dial": [{"usr": turn, "sys": {"sent": "Yes."}}] * 3}
    file = tmp_path / "CamRest676_annotated.json"
    file.write_text(json.dumps([dialogue]))
    result = run("convert", "task", tmp_path, "-", "--split", "train+dev", "--history", "last-two", "--forms", "both")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == 6
    assert max(len(row["history"]) for row in rows) == 2


def test_list_names_page_and_licence():
    lines = run("list").stdout.splitlines()
    assert lines[2].split() == ["task", "en", "MIT", "https://github.com/terryqj0107/GECOR"]
    assert len(lines) == 5


def test_download_prints_files_and_where_to_ask_for_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "download_dataset", lambda dataset, folder: [folder / dataset.files[0].name])
    result = run("download", "canard", "--to", tmp_path)
    assert result.stdout.splitlines() == [str(tmp_path / "dev.json")]
    assert "CANARD, licence: CC BY-SA 4.0, published at https://" in result.stderr
    assert "please cite: Elgohary et al." in result.stderr
    assert "not downloaded: train.json is in the full release" in result.stderr


def test_download_goes_to_a_folder_of_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "download_dataset", lambda dataset, folder: [folder / "x"])
    assert run("download", "rewrite").stdout == "rewrite/x\n"


def test_interrupted_download_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupt(dataset, folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(download, "download_dataset", interrupt)
    result = run("download", "rewrite", "--to", tmp_path)
    assert result.exit_code == 130
    assert f"interrupted; to resume, run the command again (the part so far is in {tmp_path})" in result.stderr


@pytest.mark.process
def test_failed_download_is_one_line_and_exit_1(tmp_path):
    environment = {**os.environ, MIRROR_VARIABLE: "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
    arguments = [sys.executable, "-m", "teo", "data", "download", "rewrite", "--to", str(tmp_path)]
    result = subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=60)
    assert result.returncode == 1
    assert result.stdout == ""
    last = result.stderr.splitlines()[-1]
    assert last.startswith("teo: http://127.0.0.1:9/rewrite/corpus.txt: the connection failed (")


@pytest.mark.process
def test_readers_need_only_the_standard_library():
    code = "import sys, teo.data.stats; print({'typer', 'pydantic', 'rapidfuzz', 'torch'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "set()"


def test_help_names_every_dataset():
    published = options.PUBLISHED.replace(" or ", ", ").split(", ")
    assert published == list(REGISTRY)
    assert options.DATASETS.replace(" or ", ", ").removesuffix(" (rows of your own)").split(", ") == list(READERS)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("/dev/full", "teo: /dev/full: cannot be written: No space left on device; free some space or write elsewhere"),
        ("/proc/x.jsonl", "teo: /proc/x.jsonl: cannot be written: /proc takes no new files; write to a folder that"),
        ("/nowhere/x.jsonl", "teo: /nowhere/x.jsonl: expected an existing folder, found no /nowhere; make the folder"),
    ],
)
def test_what_cannot_be_written_is_one_line(tmp_path, monkeypatch, capsys, out, message):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"history": ["Ben"], "utterance": "he", "rewrite": "Ben"}\n')
    monkeypatch.setattr(sys, "argv", ["teo", "data", "convert", "jsonl", str(rows), out])
    monkeypatch.delenv("TEO_DEBUG", raising=False)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(message)
