"""English forms that the follow-ups share: what stands around a slot, topics of intents, capitals and marks."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence

from teo_lab.rows.choices import word_set
from teo_lab.rows.requests import Draft, Request, SlotValue

PREPOSITIONS = word_set("in at for to from by on with near around")
DETERMINERS = frozenset(["the", "a", "an", "my"])
PLACES = frozenset({"city", "state", "country", "geographic_poi", "place_name"})
NAMES = PLACES | {"person", "artist_name", "business_name", "game_name", "song_name", "movie_name", "podcast_name"}
"""Slots whose values take capitals if the writer takes care."""
_RIGHT = PREPOSITIONS | {"please", "today", "tomorrow", "tonight", "now"}
_QUESTION = re.compile(
    r"(?:what|what's|whats|when|when's|where|where's|who|who's|which|how|how's|why|is|are|am|do|does|did|will|would|can|"
    r"could|should|has|have|was|were|may)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(r"(?:can|could|would|will) (?:you|i)\b|would you\b", re.IGNORECASE)
_CAPITALS = re.compile(
    r"\b(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|april|june|july|august|september|"
    r"october|november|december|english|french|spanish|german|italian|chinese|japanese|i|i'm|i'd|i'll|i've)\b"
)
_ABOUT = re.compile(r"(?:and )?(?:what|how) about\b", re.IGNORECASE)
_FINAL = frozenset(".?!")
_NEAT, _PLAIN = 0.4, 0.6
_TOPICS = {
    "GetWeather": "weather",
    "PlayMusic": "music",
    "BookRestaurant": "restaurant",
    "AddToPlaylist": "playlist",
    "RateBook": "rating",
    "SearchCreativeWork": "search",
    "SearchScreeningEvent": "screening",
    "weather": "weather",
    "play": "music",
    "music": "music",
    "calendar": "calendar",
    "alarm": "alarm",
    "transport": "transport",
    "iot": "device",
    "email": "contact",
    "social": "contact",
    "qa": "facts",
    "recommendation": "search",
    "cooking": "facts",
    "news": "search",
    "datetime": "facts",
}


def topic(intent: str) -> str:
    """Return the topic of replies to an intent."""
    return _TOPICS.get(intent) or _TOPICS.get(intent.partition("_")[0], "generic")


def left_word(text: str, start: int) -> str:
    """Return the word before a place of the text, lower-cased; empty at its start."""
    words = text[:start].split()
    return words[-1].lower() if words and text[:start].endswith(" ") else ("" if not start else "\0")


def stands_free(text: str, end: int) -> bool:
    """Tell whether a phrase that ends here is whole: nothing follows, or a word that starts another phrase."""
    rest = text[end:].strip()
    return rest in ("", "?", ".") or (text[end : end + 1] == " " and rest.split()[0].lower() in _RIGHT)


def is_question(text: str) -> bool:
    """Tell whether a request asks; `can you ...` asks for something to be done, but is still a question."""
    return _QUESTION.match(text) is not None


def is_order(text: str) -> bool:
    """Tell whether a request wants something done."""
    return _ORDER.match(text) is not None or not is_question(text)


def is_lower(text: str) -> bool:
    """Tell whether a text was written without capitals."""
    return text == text.lower()


def place_slots(request: Request) -> list[SlotValue]:
    """Return the slots that name places; two of them belong together, or are two ends of a way."""
    return [slot for slot in request.slots if slot.name in PLACES]


def finish(
    user: Sequence[str], reply: str | None, rng: random.Random, names: Iterable[str] = (), *, answers: bool = False
) -> Draft:
    """Return the draft of a user's requests, the last reply, the utterance and the rewrite, in one of three ways.

    As the first request is written; with capitals and final marks (then `names` take capitals, too); or with neither.
    An utterance that `answers` a question ends in a full stop, whatever the request ends in.
    """
    draw = rng.random()
    user = [re.sub(r"  +", " ", text).strip() for text in user]
    if draw < _NEAT:
        texts = [neat(text, names) for text in user]
    elif draw < _PLAIN:
        texts = [text.lower().rstrip("?.! ") for text in user]
    else:
        texts = [_alike(text, user[0]) for text in user]
    *before, utterance, rewrite = texts
    if utterance[-1:] in _FINAL:
        mark = "?" if _ABOUT.match(utterance) else "." if answers else rewrite[-1]
        utterance = utterance[:-1] + (mark if mark in _FINAL else ".")
    history = tuple(before) if reply is None else (*before, reply)
    return Draft(history, utterance, rewrite)


def _alike(text: str, model: str) -> str:
    """Return the text with or without capital and final mark, as the model has them."""
    marked = model.endswith(tuple(_FINAL))
    text = text if marked else text.rstrip("".join(_FINAL))
    if model[:1].isupper():
        text = text[:1].upper() + text[1:]
    return _with_mark(text) if marked else text


def _with_mark(text: str) -> str:
    if text.endswith(tuple(_FINAL)):
        return text
    return text + ("?" if is_question(text) or _ABOUT.match(text) else ".")


def neat(text: str, names: Iterable[str] = ()) -> str:
    """Return a text with capitals, also for the names in it, and a final mark."""
    for name in names:
        if is_lower(name):
            text = re.sub(rf"\b{re.escape(name)}\b", _capitalised(name), text)
    text = _CAPITALS.sub(lambda match: match.group()[:1].upper() + match.group()[1:], text)
    text = text[:1].upper() + text[1:]
    return _with_mark(text)


def _capitalised(name: str) -> str:
    small = {"of", "the", "and", "in", "on", "to", "a", "an", "for", "de"}
    words = name.split(" ")
    return " ".join(word if word in small and k else word[:1].upper() + word[1:] for k, word in enumerate(words))
