import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a small file into the test's folder; texts are hand-written, never rows of a dataset."""

    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    return put


@pytest.fixture
def task_file(write: Callable[[str, str], Path]) -> Callable[[Sequence[Any]], Path]:
    """Write TASK's file from dialogues of (complete, ellipsis, coreference, answer) turns, or raw objects."""

    def put(dialogues: Sequence[Any]) -> Path:
        items = [item if not isinstance(item, tuple) else task_dialogue(*item) for item in dialogues]
        return write("CamRest676_annotated.json", json.dumps(items))

    return put


def task_dialogue(number: int, turns: Sequence[tuple[str, str, str, str]]) -> dict[str, Any]:
    dial = [
        {
            "turn": position,
            "usr": {
                "transcript": complete,
                "transcript_complete": complete,
                "transcript_with_ellipsis": ellipsis,
                "transcript_with_coreference": coreference,
            },
            "sys": {"sent": answer},
        }
        for position, (complete, ellipsis, coreference, answer) in enumerate(turns)
    ]
    return {"dialogue_id": number, "dial": dial}
