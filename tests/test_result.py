"""Rewrite: the record."""

import dataclasses
import json

import pytest

from teo.edits import EditScript, Insert, Replace
from teo.layouts import Truncation
from teo.result import Alternative, Rewrite


def test_the_record_is_the_one_of_the_contract() -> None:
    edits = EditScript((Replace(6, 8, "he", "Ben Affleck"), Insert(18, " as Batman")))
    result = Rewrite(
        "It is Ben Affleck who acted as Batman.",
        True,
        edits,
        "[D] he [R] Ben Affleck [I] as Batman",
        0.87,
        Truncation(),
    )
    assert json.loads(json.dumps(result.to_dict())) == {
        "rewrite": "It is Ben Affleck who acted as Batman.",
        "changed": True,
        "edits": [
            {"op": "replace", "start": 6, "end": 8, "old": "he", "new": "Ben Affleck"},
            {"op": "insert", "start": 18, "end": 18, "old": "", "new": " as Batman"},
        ],
        "operations": "[D] he [R] Ben Affleck [I] as Batman",
        "confidence": 0.87,
        "reason": None,
        "truncated": {"turns": 0, "characters": 0},
    }
    assert list(result.to_dict()) == ["rewrite", "changed", "edits", "operations", "confidence", "reason", "truncated"]
    assert edits.apply("It is he who acted.") == str(result)


def test_an_utterance_that_is_kept() -> None:
    kept = Rewrite("hello", truncated=Truncation(2, 30), reason="reaction")
    assert kept.to_dict() == {
        "rewrite": "hello",
        "changed": False,
        "edits": [],
        "operations": "",
        "confidence": None,
        "reason": "reaction",
        "truncated": {"turns": 2, "characters": 30},
    }


def test_alternatives_are_shown_where_there_are_some() -> None:
    result = Rewrite(
        "a b", True, alternatives=(Alternative("a b", EditScript((Insert(1, " b"),)), "[I] b", 0.5, -0.7),)
    )
    record = result.to_dict()
    assert list(record)[-1] == "alternatives"
    assert record["alternatives"] == [
        {
            "rewrite": "a b",
            "edits": [{"op": "insert", "start": 1, "end": 1, "old": "", "new": " b"}],
            "operations": "[I] b",
            "confidence": 0.5,
            "score": -0.7,
        }
    ]


def test_it_is_a_value() -> None:
    assert Rewrite("a") == Rewrite("a")
    assert hash(Rewrite("a")) == hash(Rewrite("a"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Rewrite("a").rewrite = "b"  # type: ignore[misc]
