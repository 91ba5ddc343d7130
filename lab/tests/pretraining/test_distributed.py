"""Pretraining in two processes: they share the shards and give one model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from launching import launch_two

PRETRAINING = """
shards = {{ "{shard}" = 1.0 }}
output = "{output}"
vocabulary = 600
frequent = 5
workers = 0
buckets = [{{ source = 48, target = 96, rows = 4 }}]
size = {{ d_model = 32, encoder_layers = 1, decoder_layers = 1, heads = 2, d_ff = 64 }}
loop = {{ steps = {steps}, learning_rate = 3e-3, warmup = 5, minutes = 10, log_every = 5, save_every = 10 }}
"""


@pytest.mark.slow
def test_two_processes_pretrain_one_model_and_resume(tmp_path: Path) -> None:
    shard, config = tmp_path / "shard.jsonl", tmp_path / "pretrain.toml"
    turns = ["Do you know the film Batman?", "Yes, the film Batman is great.", "Who acted in the film Batman?", "Ben."]
    shard.write_text("".join(json.dumps({"turns": [f"{turn} {k}" for turn in turns]}) + "\n" for k in range(40)))
    for steps in (20, 40):
        config.write_text(PRETRAINING.format(shard=shard, output=tmp_path / "run", steps=steps))
        out = launch_two("teo_lab", "pretrain", str(config))
        assert out == f"{tmp_path / 'run' / 'model'}\n", "one of the processes answers"
    assert json.loads((tmp_path / "run" / "record.json").read_text())["processes"] == 2
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(5, 45, 5)), (
        "one of the processes logs; the second run resumes"
    )
    assert lines[-1]["decoder_loss"] < lines[0]["decoder_loss"]
