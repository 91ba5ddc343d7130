import json

import pytest

from teo.data import Row
from teo.data.row import edit_record
from teo.dialogue import Dialogue
from teo.files import write_jsonl

ROW = Row("1", Dialogue(("Is Ben here ?",), "he said so"), "Ben said so to me")


@pytest.mark.parametrize(
    ("order", "operations"),
    [("position", "[D] he [R] Ben [I] to me"), ("insertions-first", "[I] to me [D] he [R] Ben")],
)
def test_edit_record_has_the_paper_string_and_positioned_edits(order, operations):
    record = edit_record(ROW, order)
    assert record["operations"] == operations
    assert record["edits"][0] == {"op": "replace", "start": 0, "end": 2, "old": "he", "new": "Ben"}
    assert record["utterance"] == "he said so"


def test_written_file_is_one_object_a_line(tmp_path):
    out = tmp_path / "rows.jsonl"
    assert write_jsonl(out, [ROW.to_dict(), {"id": "二"}]) == 2
    text = out.read_text(encoding="utf-8")
    assert [json.loads(line) for line in text.splitlines()] == [ROW.to_dict(), {"id": "二"}]
    assert "二" in text, "Chinese stays readable"


def test_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    out = tmp_path / "rows.jsonl"
    out.write_text("old\n")

    def records():
        yield {"id": "1"}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_jsonl(out, records())
    assert out.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [out]
