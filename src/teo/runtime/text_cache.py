"""TextCache: the ids of the texts that were asked for last, bounded by characters."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

Ids = tuple[int, ...]


class TextCache:
    """Keeps at most `most` characters; a text longer than a 64th of that is not kept. Threads may share it."""

    def __init__(self, encode: Callable[[str], Ids], most: int) -> None:
        self._encode, self._most = encode, most
        self._kept: OrderedDict[str, Ids] = OrderedDict()
        self._lock = threading.Lock()
        self.characters = 0
        """How many characters the kept texts have."""

    def __call__(self, text: str) -> Ids:
        """Return the ids of a text."""
        with self._lock:
            if text in self._kept:
                self._kept.move_to_end(text)
                return self._kept[text]
        ids = self._encode(text)
        if len(text) <= self._most // 64:
            self._keep(text, ids)
        return ids

    def _keep(self, text: str, ids: Ids) -> None:
        with self._lock:
            if text not in self._kept:
                self.characters += len(text)
            self._kept[text] = ids
            while self.characters > self._most:
                self.characters -= len(self._kept.popitem(last=False)[0])
