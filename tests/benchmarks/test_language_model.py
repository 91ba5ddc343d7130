"""The comparison with a language model as one command: the everyday dialogues, an endpoint, the embedded model."""

from __future__ import annotations

import json

import pytest

import gguf_server
import language_model
from language_model import main, search_answers
from scripted_endpoint import Script, chat
from teo.data import load_rows
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.loading import has_default

ROWS = [
    ("What time does the pool open?", "At 8.", "And the gym?", "What time does the gym open?"),
    ("Who wrote Dune?", "Frank Herbert did.", "When did he write it?", "When did Frank Herbert write Dune?"),
]


def write_rows(file, rows):
    file.parent.mkdir(parents=True, exist_ok=True)
    need = {"need": [["gym", "Dune"]]}
    lines = [{"history": [*history], "utterance": text, "rewrite": full, **need} for *history, text, full in rows]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.mark.process
@pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model")
def test_a_run_stores_every_system_beside_ours(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    monkeypatch.setattr(language_model, "FOLDER", tmp_path / "everyday")
    write_rows(tmp_path / "everyday" / "en.jsonl", ROWS)
    examples = [(f"I am in city {number}.", "Is it big?", f"Is city {number} big?") for number in range(5)]
    write_rows(tmp_path / "everyday" / "dev" / "en.jsonl", examples)
    script = Script()
    script.answer = lambda _number, _body: chat("What time does the gym open?")
    try:
        words = ["data", str(tmp_path / "out"), "--endpoint", f"tiny={script.url}", "--about", "tiny=1 weight"]
        main([*words, "--prompts", "shots", "--datasets", "everyday", "--runs", str(tmp_path / "runs")])
    finally:
        script.server.shutdown()
        script.server.server_close()
    assert capsys.readouterr().out.strip() == str(tmp_path / "out" / "everyday.json")
    stored = json.loads((tmp_path / "out" / "everyday.json").read_text(encoding="utf-8"))
    assert stored["models"] == {"tiny": "1 weight"}
    assert stored["systems"]["tiny, shots"]["meaning"]["counts"]["right"] == 2, "by keys, whatever the wording"
    assert stored["systems"]["tiny, shots"]["em"] == 0.5
    assert stored["systems"]["default"]["rows"] == 2
    assert stored["systems"]["default"]["median_seconds"] > 0
    assert "a key" not in json.dumps(stored)
    assert {headers["Authorization"] for headers in script.headers} == {"Bearer a key"}
    assert all(body["max_tokens"] == 64 and body["stop"] == ["\n"] for body in script.bodies)


def test_every_nth_everyday_dialogue_can_be_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(language_model, "FOLDER", tmp_path / "everyday")
    write_rows(tmp_path / "everyday" / "en.jsonl", [*ROWS, *ROWS, ROWS[0]])
    words = [
        "data",
        "out",
        "--endpoint",
        "tiny=http://127.0.0.1:1/v1",
        "--runs",
        str(tmp_path / "runs"),
        "--every",
        "2",
    ]
    dataset = language_model.choose_dataset("everyday", language_model.make_parser().parse_args(words))
    rows = load_rows(dataset.data, dataset.path, dataset.split).rows
    assert [row.dialogue.utterance for row in rows] == ["And the gym?"] * 3


def dialogue_of(thing, maker):
    """Return a question, and the next one, whose history has the answer."""
    history = (thing, "Who made it?", f"The {thing} was made by {maker}.")
    first = Row(f"{thing} 1", Dialogue(history[:1], "Who made it?"), f"Who made the {thing}?")
    return [first, Row(f"{thing} 2", Dialogue(history, "When?"), f"When was the {thing} made?")]


def test_a_query_that_names_the_thing_finds_its_answer_first():
    """One that names no thing fits both answers alike: the first answer is found first, the other one second."""
    rows = [*dialogue_of("Colosseum theatre", "Titus"), *dialogue_of("Milvian bridge", "Scaurus")]
    raw, gold = [row.dialogue.utterance for row in rows], [row.rewrite for row in rows]
    found = search_answers(rows, rows, {"raw": raw, "gold": gold})
    assert {name: (measured["mrr"], measured["questions"]) for name, measured in found.items()} == {
        "raw": (0.75, 2),
        "gold": (1.0, 2),
    }
    assert search_answers(rows, rows[2:], {"raw": raw[2:]})["raw"]["mrr"] == 0.5, "among the answers of all rows"


def test_an_endpoint_without_an_address_is_explained():
    with pytest.raises(SystemExit, match="expected NAME=VALUE, found 'tiny'"):
        main(["data", "out", "--endpoint", "tiny"])


def test_a_server_without_a_file_is_explained(monkeypatch):
    monkeypatch.setattr("sys.argv", ["gguf_server.py", "nowhere.gguf", "8080"])
    with pytest.raises(SystemExit, match=r"expected a GGUF file and a port, found nowhere.gguf 8080"):
        gguf_server.main()
