"""Rows that are close to a dialogue of benchmarks/everyday, of any part, must not be trained on."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from teo_lab.paths import EVERYDAY
from teo_lab.rows.choices import Language

PARTS = ("", "dev", "held")
_READ = 300
"""Characters of the history, from its end, that are compared."""
_FEWEST = 8
"""So many runs may be shared by chance."""
_SHARE = 0.5
"""Of the runs of the shorter one: a row that shares more is close."""


def runs(text: str) -> set[str]:
    """Return runs of characters: three of Chinese text, six of other."""
    text = re.sub(r"\W", "", text.lower())
    size = 3 if re.search("[\u4e00-\u9fff]", text) else 6
    return {text[k : k + size] for k in range(len(text) - size + 1)}


class Benchmark:
    """The dialogues of a language, by what they are made of."""

    def __init__(self, language: Language, parts: Sequence[str] = PARTS) -> None:
        files = [EVERYDAY / part / f"{language}.jsonl" for part in parts]
        texts = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        self.ids = [str(text["id"]) for text in texts]
        self.known = [_dialogue_runs(text["history"], text["utterance"]) for text in texts]
        self.holders: dict[str, list[int]] = {}
        for number, found in enumerate(self.known):
            for run in found:
                self.holders.setdefault(run, []).append(number)

    def find_close(self, history: Sequence[str], utterance: str) -> str | None:
        """Return the id of a dialogue that shares half of its runs with these turns; None if there is none."""
        own = _dialogue_runs(history, utterance)
        shared = Counter(number for run in own for number in self.holders.get(run, ()))
        for number, count in shared.most_common(3):
            if count > max(_FEWEST, _SHARE * min(len(own), len(self.known[number]))):
                return self.ids[number]
        return None


@cache
def whole_benchmark(language: Language) -> Benchmark:
    """Return all parts of a language's benchmark."""
    return Benchmark(language)


def _dialogue_runs(history: Sequence[str], utterance: str) -> set[str]:
    return runs(" ".join(history)[-_READ:] + utterance)
