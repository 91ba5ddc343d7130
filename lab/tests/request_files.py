"""Requests that the tests of rows are made from, and the folder that holds them."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

from teo_lab.rows.requests import Request, SlotValue


def make_request(text: str, intent: str = "GetWeather", **values: str) -> Request:
    """Return a request whose slots are the values, each where the text has it first."""
    slots = (
        SlotValue(name, text.index(value), text.index(value) + len(value), value) for name, value in values.items()
    )
    return Request(text, "snips", intent, tuple(sorted(slots, key=lambda slot: slot.start)))


WEATHER = [
    make_request("what is the weather in Boston", city="Boston"),
    make_request("will it rain in Denver", city="Denver"),
    make_request("give me the forecast for Rome", city="Rome"),
    make_request("show the weather in Oslo on friday", city="Oslo"),
]


def write_requests(folder: Path) -> Path:
    english = [{"text": r.text, "source": r.source, "intent": r.intent, "slots": _slots(r)} for r in WEATHER]
    chinese = [
        {"text": f"{city}天气怎么样。", "source": "oppo", "intent": "", "slots": []}
        for city in ("北京", "上海", "广州")
    ]
    for language, values in (("en", english), ("zh", chinese)):
        with lzma.open(folder / f"{language}.jsonl.xz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    return folder


def _slots(request: Request) -> list[dict[str, object]]:
    return [{"name": s.name, "start": s.start, "end": s.end, "value": s.value} for s in request.slots]
