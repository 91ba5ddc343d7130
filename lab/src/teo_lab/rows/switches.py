"""Utterances that stay unchanged after any dialogue: a complete request about something else, or a reaction."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo_lab.rows import english
from teo_lab.rows.choices import Language, draw_reaction, draw_reply, language_of

History = tuple[str, ...]
_LONGEST = 10
"""Turns of a history, at most."""
_FEWEST = 2
"""More requests than these make a language."""
_AFTER_DIALOGUE = 0.65
"""Share of the requests that come after a dialogue; the others come after one or two other requests."""


def row_histories(rows: Sequence[Row]) -> list[History]:
    """Return the turns of every row up to its own utterance, made complete."""
    return [(*row.dialogue.history, row.rewrite)[-_LONGEST:] for row in rows if row.rewrite.strip()]


def switch_rows(histories: Sequence[History], requests: Sequence[str], count: int, seed: int = 0) -> Iterator[Row]:
    """Yield complete requests after unrelated dialogues or other requests of the same language."""
    by_language: dict[Language, list[str]] = defaultdict(list)
    for text in requests:
        by_language[language_of(text)].append(text)
    turns = _by_language(histories)
    languages = [language for language, texts in by_language.items() if len(texts) > _FEWEST]
    rng = random.Random(f"switches/{seed}")
    for number in range(count if languages else 0):
        language = languages[number % len(languages)]
        texts = rng.sample(by_language[language], 3)
        if turns[language] and rng.random() < _AFTER_DIALOGUE:
            history = with_reply(rng.choice(turns[language]), language, rng, share=0.5)
        else:
            history = ()
            for text in texts[1 : rng.choice((2, 3))]:
                history = with_reply((*history, _typed(text, language, rng)), language, rng, share=0.75)
        utterance = _typed(texts[0], language, rng)
        yield Row(f"switch-{number}", Dialogue(history, utterance), utterance)


def reaction_rows(histories: Sequence[History], count: int, seed: int = 0) -> Iterator[Row]:
    """Yield reactions after dialogues, as many in either language as there are histories of both."""
    turns = _by_language(histories)
    languages = [language for language in turns if turns[language]]
    rng = random.Random(f"reactions/{seed}")
    for number in range(count if languages else 0):
        language = languages[number % len(languages)]
        history = with_reply(rng.choice(turns[language]), language, rng, share=0.5)
        utterance = draw_reaction(language, rng)
        yield Row(f"reaction-{number}", Dialogue(history, utterance), utterance)


def with_reply(history: History, language: Language, rng: random.Random, *, share: float) -> History:
    """Return the history, for a share of the cases with a reply of the assistant at its end."""
    return (*history, draw_reply(language, "generic", rng)) if rng.random() < share else history


def _by_language(histories: Sequence[History]) -> dict[Language, list[History]]:
    found: dict[Language, list[History]] = {"en": [], "zh": []}
    for history in histories:
        if history:
            found[language_of("".join(history))].append(history)
    return found


def _typed(text: str, language: Language, rng: random.Random) -> str:
    """Return a request as it is, or with capital and final mark, or with neither."""
    draw = rng.random()
    if language == "zh":
        return text.rstrip("？?。") if draw < 0.6 else text
    if draw < 0.35:
        return english.neat(text)
    return text.lower().rstrip("?.! ") if draw < 0.55 else text
