"""English follow-ups from requests with slots: another value, two other values, a pronoun, an answer to a question."""

from __future__ import annotations

import itertools
import random
import re
from collections import defaultdict
from collections.abc import Sequence

from teo_lab.rows import english
from teo_lab.rows.choices import draw_reply, replies, word_set
from teo_lab.rows.requests import Draft, Request, SlotValue

_SLOTS = word_set(
    """
    city state country geographic_poi timeRange artist track album genre service year entity_name object_name
    rating_value restaurant_type cuisine served_dish party_size_number restaurant_name movie_name location_name
    place_name date time person business_name currency_name food_type definition_word artist_name game_name
    audiobook_name podcast_name house_place color_type news_topic song_name
    """
)
"""Slots that a follow-up can name anew."""
_VALUES = {
    "date": re.compile(
        r"(?:(?:on |this |next |the )*(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|weekend|week|month)|today|tomorrow|"
        r"(?:\w+ ){0,2}(?:january|february|march|april|may|june|july|august|september|october|november|december)"
        r"(?: \w+){0,2})$",
        re.IGNORECASE,
    ),
    "time": re.compile(r"(?:\w+ ){1,3}(?:am|pm|o'clock)$|noon$|midnight$", re.IGNORECASE),
    "timeRange": re.compile(r"(?!.*\b(?:this|that|now|same)\b).+", re.IGNORECASE),
    "place_name": re.compile(r"(?!.*\b(?:area|location|here|nearby|city|town|place|my|state|neighborhood|me)\b).+"),
    "object_name": re.compile(r"(?!(?:this|that|current|the (?:book|last|current))\b).+", re.IGNORECASE),
    "year": re.compile(r"(?:19|20)\d\d$"),
}
_AMENDS = word_set("timeRange time date party_size_number rating_value color_type")
_ADDS = frozenset(["entity_name", "track", "song_name", "artist"])
_ASKED = {
    "city": "city",
    "place_name": "place",
    "date": "date",
    "time": "time",
    "artist": "artist",
    "artist_name": "artist",
    "service": "service",
    "person": "person",
    "party_size_number": "size",
    "location_name": "theatre",
    "color_type": "color",
}
_BOUND_LEFT = english.DETERMINERS | word_set("is of next this last every coming until are was")
_NO_DATE = ("datetime", "general", "social", "qa", "play", "music")
"""Intents that nobody asks the day of."""
_BOUND_VERBS = word_set(
    """
    turn switch use log open close next near according due listen go get going drive close-by closest at set be
    """
)
"""Words that keep the preposition after them: without its place, `close to` is no phrase."""
_QUESTION_FORMS = ("what about {}", "what about {}", "how about {}", "and {}", "and {}", "and what about {}", "{}")


def usable(request: Request, slot: SlotValue) -> bool:
    """Tell whether a slot's value is a whole phrase that another may stand in for."""
    if slot.name not in _SLOTS or len(slot.value.split()) > 6 or not english.stands_free(request.text, slot.end):
        return False
    pattern = _VALUES.get(slot.name)
    if pattern is not None and not pattern.match(slot.value):
        return False
    left = english.left_word(request.text, slot.start)
    if left in ("\0", "and", "or", "than") or (slot.name == "restaurant_type" and left not in ("a", "an")):
        return False
    return not (slot.name in english.PLACES and (len(english.place_slots(request)) > 1 or len(slot.value) < 3))


class Donors:
    """Values by slot and by the word before them, so that a value fits where another stood."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.values: dict[tuple[str, str, str, bool], list[str]] = defaultdict(list)
        self.open: list[tuple[Request, SlotValue]] = []
        for request in requests:
            for slot in request.slots:
                if usable(request, slot):
                    self.open.append((request, slot))
                    key = self._key(request, slot)
                    self.values[key].append(slot.value)

    @staticmethod
    def _key(request: Request, slot: SlotValue) -> tuple[str, str, str, bool]:
        left = english.left_word(request.text, slot.start)
        return request.intent, slot.name, left, english.is_lower(request.text)

    def draw_value(self, request: Request, slot: SlotValue, rng: random.Random) -> str | None:
        """Return a value of another request for the slot."""
        value = rng.choice(self.values[self._key(request, slot)])
        if value.lower() in request.text.lower() or slot.value.lower() in value.lower():
            return None
        return value


def _phrase(request: Request, slot: SlotValue, value: str, rng: random.Random) -> str:
    """Return the value with the preposition or article that it has in the request."""
    left = english.left_word(request.text, slot.start)
    if left in english.DETERMINERS or (left in english.PREPOSITIONS and rng.random() < 0.55):
        return f"{left} {value}"
    return value


def _reply(request: Request, rng: random.Random) -> str | None:
    return None if rng.random() < 0.06 else draw_reply("en", english.topic(request.intent), rng)


class EnglishSubstitution:
    """`what about Boston` after a request that named another city."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.donors = Donors([request for request in requests if request.slots])

    def draw(self, rng: random.Random) -> Draft | None:
        """Return a follow-up that names one other value."""
        if not self.donors.open:
            return None
        request, slot = rng.choice(self.donors.open)
        value = self.donors.draw_value(request, slot, rng)
        if value is None:
            return None
        utterance, rewrite = self._say(request, slot, value, rng)
        names = (value, slot.value) if slot.name in english.NAMES else ()
        return english.finish([request.text, utterance, rewrite], _reply(request, rng), rng, names)

    def _say(self, request: Request, slot: SlotValue, value: str, rng: random.Random) -> tuple[str, str]:
        rewrite = request.replaced((slot, value))
        phrase = _phrase(request, slot, value, rng)
        bare = request.text.rstrip(".?! ") == request.text and not request.text.endswith("please")
        if not english.is_order(request.text) or rng.random() < 0.4:
            return rng.choice(_QUESTION_FORMS).format(phrase), rewrite
        opening = rewrite[:1].lower() + rewrite[1:] if not rewrite.startswith(("I ", "I'")) else rewrite
        forms = [("no, {}", f"no, {opening}"), ("actually {}", f"actually {opening}")]
        if bare:
            forms += [("{} instead", f"{rewrite} instead"), ("{} please", f"{rewrite} please")]
        if bare and slot.name in _ADDS:
            forms += [("and {} too", f"{rewrite} too"), ("also {}", f"also {opening}")]
        if slot.name in _AMENDS:
            forms += [(f"make it {value}", rewrite)] * 2
        form, complete = rng.choice(forms)
        return form.format(phrase), complete


class TwoSlots:
    """`and for eight in Boston` after `book a table for six in Paris`."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.donors = Donors(requests)
        by_request: dict[Request, list[SlotValue]] = defaultdict(list)
        for request, slot in self.donors.open:
            by_request[request].append(slot)
        self.pairs = [
            (request, first, second)
            for request, slots in by_request.items()
            for first, second in itertools.pairwise(slots)
            if self._is_tail(request, first, second)
        ]

    @staticmethod
    def _is_tail(request: Request, first: SlotValue, second: SlotValue) -> bool:
        between = request.text[first.end : second.start].strip().lower()
        left = english.left_word(request.text, first.start)
        ends = request.text[second.end :].strip() in ("", ".", "?")
        return left in english.PREPOSITIONS and between in english.PREPOSITIONS and ends

    def draw(self, rng: random.Random) -> Draft | None:
        """Return a follow-up that names two other values."""
        if not self.pairs:
            return None
        request, first, second = rng.choice(self.pairs)
        values = [self.donors.draw_value(request, slot, rng) for slot in (first, second)]
        if values[0] is None or values[1] is None:
            return None
        rewrite = request.replaced((first, values[0]), (second, values[1]))
        left = english.left_word(request.text, first.start)
        start = first.start - len(left) - 1
        tail = rewrite[start:].rstrip(".?! ")
        forms = ["and {}", "what about {}", "how about {}"]
        if re.search(
            r"\b(?:book|reserve|need|want|find|order|get|set) (?:me )?an? \w+ $", request.text[:start], re.IGNORECASE
        ):
            forms += (
                ["and one {}", "and another one {}"] if not re.search(r"\bwant|need", request.text) else ["and one {}"]
            )
        utterance = rng.choice(forms).format(tail)
        if utterance.startswith("and another one"):
            rewrite = re.sub(r"\ban? (?=\w+ $)", "another ", rewrite[:start]) + rewrite[start:]
        names = [
            text
            for slot, value in ((first, values[0]), (second, values[1]))
            if slot.name in english.NAMES
            for text in (slot.value, value)
        ]
        return english.finish([request.text, utterance, rewrite], _reply(request, rng), rng, names)


class EnglishClarification:
    """`Boston` after `book a table for six` and `In which city?`."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.open = [
            (request, slot)
            for request in requests
            for slot in request.slots
            if slot.name in _ASKED and usable(request, slot) and self.shorten(request, slot) is not None
        ]

    @staticmethod
    def shorten(request: Request, slot: SlotValue) -> str | None:
        """Return the request without the slot and its preposition; none if that is no request."""
        left = english.left_word(request.text, slot.start)
        if left not in english.PREPOSITIONS and not (
            slot.name == "date" and request.text[slot.end :].strip() in ("", "?")
        ):
            return None
        if left in _BOUND_LEFT or (slot.name == "date" and request.intent.startswith(_NO_DATE)):
            return None
        before = request.text[: slot.start].lower().split()[-2:-1]
        if left in english.PREPOSITIONS and before and before[0] in _BOUND_VERBS:
            return None
        start = slot.start - len(left) - 1 if left in english.PREPOSITIONS else slot.start
        text = f"{request.text[:start].rstrip()} {request.text[slot.end :].lstrip()}".strip()
        text = re.sub(r" ([.?])$", r"\1", text)
        words = text.rstrip(".?").lower().split()
        ends_open = not words or words[-1] in english.PREPOSITIONS | english.DETERMINERS | {
            "of",
            "is",
            "like",
            "song",
            "and",
        }
        return None if len(words) < 3 or ends_open else text

    def draw(self, rng: random.Random) -> Draft | None:
        """Return an answer to the question that asks for what a request left out."""
        if not self.open:
            return None
        request, slot = rng.choice(self.open)
        short = self.shorten(request, slot)
        if short is None:
            return None
        left = english.left_word(request.text, slot.start)
        forms = ["{}", "{}", "{}", "{} please"]
        if left in english.PREPOSITIONS:
            forms += [f"{left} {{}}"]
        utterance = rng.choice(forms).format(slot.value)
        asked = rng.choice(replies("en")[_ASKED[slot.name]])
        rewrite = request.text
        if utterance.endswith("please"):
            rewrite = rewrite if "please" in rewrite or rewrite[-1] in ".?" else f"{rewrite} please"
            if not rewrite.endswith("please"):
                utterance = slot.value
        names = (slot.value,) if slot.name in english.NAMES else ()
        return english.finish([short, utterance, rewrite], asked, rng, names, answers=True)
