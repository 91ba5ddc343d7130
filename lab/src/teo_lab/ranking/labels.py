"""Whether a sampled rewrite says what the reference says: right, wrong, or not clear enough to learn from."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from teo.data.row import Row
from teo.units import holds_cjk
from teo_lab.rows.choices import word_set

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?|'s\b")
_SMALL = {
    False: word_set(
        """
        a an and are as at be by did do does for from had has have he her him his i in is it its me my of on or 's
        she so that the their them there these they this those to was were will with you your
        """
    ),
    True: frozenset("的了吗呢吧啊呀么那这个在是就都也还我你他她它们和跟把被给到"),
}
"""Words and characters that a rewrite may have or not have without meaning something else."""
_CLOSE = 0.8
"""A right rewrite is at least as like the reference."""
_ENOUGH = 0.6
"""Of the characters that the reference restores, a right Chinese rewrite has more: a name may be shortened."""
_FEW = 0.2
"""A rewrite is wrong if less of what it restores is in the reference: it has taken something else."""


def label(row: Row, text: str) -> bool | None:
    """Tell whether a rewrite is right; None if it is neither clearly right nor clearly wrong."""
    cjk = holds_cjk(row.rewrite)
    utterance, reference, found = (_units(part, cjk) for part in (row.dialogue.utterance, row.rewrite, text))
    if found == reference:
        return True
    if utterance in (found, reference):
        return False
    wanted, restored = (_restored(units, utterance, cjk) for units in (reference, found))
    common = sum((wanted & restored).values())
    if common < _FEW * sum(restored.values()):
        return False
    enough = common == sum(restored.values()) and common > (_ENOUGH if cjk else 1 - 1e-9) * sum(wanted.values())
    return True if enough and SequenceMatcher(None, found, reference).ratio() >= _CLOSE else None


def _restored(units: Sequence[str], utterance: Sequence[str], cjk: bool) -> Counter[str]:
    """Return what a rewrite has beyond the utterance, without small words."""
    return Counter(unit for unit in (Counter(units) - Counter(utterance)).elements() if unit not in _SMALL[cjk])


def _units(text: str, cjk: bool) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return [character for character in plain if character.isalnum()] if cjk else _WORD.findall(plain)
