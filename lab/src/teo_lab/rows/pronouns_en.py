"""English pronouns for what a request before named: there, then, it, him, her, that playlist."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from teo_lab.rows import english
from teo_lab.rows.choices import draw_reply, word_set
from teo_lab.rows.requests import Draft, Request, SlotValue

_MALE = word_set(
    """
    john tom mike patrick robert mark kenny sam dave david paul jim james bob bill joe jack steve peter george
    gary adam ben brian chris daniel eric frank fred greg harry henry jason jeff kevin larry matt michael nick
    ryan scott ted tim tony trump obama dad father brother uncle husband boyfriend grandfather john~smith
    brad~pitt tom~cruise barack~obama donald~trump bill~gates elvis~presley michael~jackson
    """
)
_FEMALE = word_set(
    """
    mary susan anna jen jennifer katherine sarah jane julie julia linda lisa laura emily emma amy angela alice
    carol diane donna helen jessica karen kate kathy kelly kim maria martha nancy rachel rebecca sally sandra
    sharon sophia tina mom mother sister aunt wife girlfriend grandmother madonna shakira beyonce adele
    taylor~swift
    """
)
_OBJECT_LEFT = word_set("to from with email call text about for by message contact ask tell invite phone")
_SUBJECT_LEFT = word_set("has is did does will was if that had")
_THING_LEFT = word_set("rate give find play see watch show get add for to of hear buy download is put")
_CITY_INTENTS = frozenset(["GetWeather", "BookRestaurant", "weather_query", "transport_ticket", "datetime_query"])
_VAGUE = re.compile(
    r"\b(?:area|station|location|here|nearby|city|town|place|my|state|airport|street|me|mall|theat\w+)\b"
)
_DAY = re.compile(
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|"
    r"next (?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:\w+ )?(?:january|february|march|"
    r"april|may|june|july|august|september|october|november|december)(?: \w+)?)$"
)
_SWITCH = re.compile(
    r"(.*\b(?:turn|switch|shut)) (off|on) ((?:the|my)(?: (?!now|to|in|at|for|by)\w+){1,3}?)((?: please)?)$"
)


_GROUPS = {
    "date": "day",
    "business_name": "company",
    "object_name": "thing",
    "movie_name": "film",
    "track": "song",
    "entity_name": "song",
    "artist": "artist",
}
_BOUND_LEFT = english.PREPOSITIONS | english.DETERMINERS | {"", "is", "of", "this", "next"}


@dataclass(frozen=True, slots=True)
class Replaceable:
    """A request, the span of it that a pronoun stands for, and the pronoun."""

    request: Request
    slot: SlotValue
    start: int
    pronouns: tuple[str, ...]


class EnglishPronoun:
    """A request about the place, day, person or thing that the request before it named."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.namings: dict[str, list[tuple[Request, SlotValue]]] = defaultdict(list)
        self.replaceables: dict[str, list[Replaceable]] = defaultdict(list)
        for request in requests:
            for slot in request.slots:
                group = _group(request, slot)
                if group:
                    self.namings[group].append((request, slot))
            for group, replaceable in _replaceables(request):
                self.replaceables[group].append(replaceable)
        self.switches = [request.text for request in requests if _SWITCH.match(request.text)]
        self.groups = [group for group in sorted(self.replaceables) if self.namings[group]]

    def draw(self, rng: random.Random) -> Draft | None:
        """Return a second request with a pronoun, after a first one that has the noun."""
        if self.switches and rng.random() < 0.03:
            return self._draw_switch(rng)
        if not self.groups:
            return None
        group = rng.choices(self.groups, [len(self.replaceables[name]) ** 0.5 for name in self.groups])[0]
        first, named = rng.choice(self.namings[group])
        replaceable = rng.choice(self.replaceables[group])
        second = replaceable.request
        if second.text == first.text or named.value.lower() in second.text[: replaceable.slot.start].lower():
            return None
        if group == "day" and english.left_word(first.text, named.start) != english.left_word(
            second.text, replaceable.slot.start
        ):
            return None
        if not _match(group, first, second):
            return None
        value, asked = named.value, first.text
        pronoun = _gendered(replaceable, value, rng)
        worded = _worded_list(first, named, pronoun) if group == "playlist" else _worded(replaceable, value)
        rewrite = second.replaced((replaceable.slot, worded))
        utterance = second.text[: replaceable.start] + pronoun + second.text[replaceable.slot.end :]
        if english.is_lower(asked) or english.is_lower(second.text):
            asked, utterance, rewrite, value = asked.lower(), utterance.lower(), rewrite.lower(), value.lower()
        names = (value,) if group not in ("day", "thing", "song", "film") else ()
        reply = None if rng.random() < 0.05 else draw_reply("en", english.topic(first.intent), rng)
        return english.finish([asked, utterance, rewrite], reply, rng, names)

    def _draw_switch(self, rng: random.Random) -> Draft | None:
        """Return `turn it off` after `turn on the lamp`."""
        match = _SWITCH.match(rng.choice(self.switches))
        if match is None or match.group(3).endswith("s"):
            return None
        verb, way, thing, please = match.groups()
        other = "off" if way == "on" else "on"
        first = f"{verb} {other} {thing}{please}"
        return english.finish(
            [first, f"{verb} it {way}{please}", f"{verb} {thing} {way}{please}"], draw_reply("en", "device", rng), rng
        )


def _group(request: Request, slot: SlotValue) -> str:
    """Return what a slot's value is, as far as a pronoun can stand for it; empty if none can."""
    value, left = slot.value.lower(), english.left_word(request.text, slot.start)
    if slot.name == "playlist":
        return "playlist" if len(value.split()) > 1 else ""
    if not english.stands_free(request.text, slot.end) and not request.text[slot.end :].startswith("'s"):
        return ""
    if slot.name in english.PLACES:
        places = len(english.place_slots(request)) == 1 and request.intent in _CITY_INTENTS
        return "place" if places and left in ("in", "to", "for", "at") and not _VAGUE.search(value) else ""
    if slot.name in ("person", "relation"):
        return "person" if value in _MALE | _FEMALE and left != "my" else ""
    fits = {
        "date": _DAY.match(value) is not None and request.intent.startswith(("weather", "calendar", "alarm")),
        "business_name": request.intent == "qa_stock" and not value.endswith("s"),
        "object_name": not value.startswith(("this", "that", "the current")),
    }
    return _GROUPS.get(slot.name, "") if fits.get(slot.name, True) else ""


def _replaceables(request: Request) -> Iterator[tuple[str, Replaceable]]:
    """Yield what a request can be with a pronoun."""
    for slot in request.slots:
        group = _group(request, slot)
        left = english.left_word(request.text, slot.start)
        before = slot.start - len(left) - 1
        possessive = request.text[slot.end :].startswith("'s")
        if group == "place" and left in ("in", "at", "to"):
            yield group, Replaceable(request, slot, before, (" there",))
        elif group == "day" and left in ("on", "for") and not possessive:
            yield group, Replaceable(request, slot, slot.start, ("that day",))
        elif group == "day" and left not in _BOUND_LEFT:
            yield group, Replaceable(request, slot, slot.start, ("that day", "then"))
        elif group == "person" and slot.name == "person":
            form = _person_form(request, slot, left)
            if form is not None:
                yield group, Replaceable(request, form[0], slot.start, form[1])
        elif group == "company" and possessive:
            yield group, Replaceable(request, SlotValue(slot.name, slot.start, slot.end + 2, ""), slot.start, ("its",))
        elif group in ("film", "thing", "song") and left in _THING_LEFT and _alone(request, slot):
            if left == "is" and not re.match(r" (?:playing|showing|on)\b", request.text[slot.end :]):
                continue  # `what time is it` is a question of its own
            yield group, Replaceable(request, slot, slot.start, ("it",))
        elif group == "artist" and left == "by":
            yield group, Replaceable(request, slot, slot.start, ("this artist", "that artist", "the same artist"))
        elif group == "playlist":
            found = re.search(r"(?:\b(?:my|the) )$", request.text[: slot.start])
            rest = request.text[slot.end :]
            if found and rest.rstrip(".") == " playlist":
                wider = SlotValue(slot.name, found.start(), slot.end + len(" playlist"), "")
                yield group, Replaceable(request, wider, found.start(), ("that playlist", "it", "this playlist"))


def _alone(request: Request, slot: SlotValue) -> bool:
    """Tell whether a title stands without a word for its kind, such as `the novel`."""
    return not any(
        other.name in ("object_type", "music_item", "object_part_of_series_type", "artist")
        and abs(other.end - slot.start) < 3
        for other in request.slots
    )


def _person_form(request: Request, slot: SlotValue, left: str) -> tuple[SlotValue, tuple[str, ...]] | None:
    rest = request.text[slot.end :]
    if rest.startswith("'s"):
        return SlotValue(slot.name, slot.start, slot.end + 2, ""), ("his",)
    if left in _OBJECT_LEFT and (not rest or english.stands_free(request.text, slot.end)):
        return slot, ("him",)
    if left in _SUBJECT_LEFT and re.match(r" [a-z]+", rest):
        return slot, ("he",)
    return None


def _match(group: str, first: Request, second: Request) -> bool:
    """Tell whether two requests may follow each other."""
    if group == "song":
        return second.intent in ("AddToPlaylist", first.intent)
    return (
        group in ("company", "film", "day", "artist", "person")
        or first.intent != second.intent
        or (group == "playlist")
    )


def _gendered(replaceable: Replaceable, value: str, rng: random.Random) -> str:
    """Return the pronoun in the gender of the name."""
    pronoun = rng.choice(replaceable.pronouns)
    female = value.lower() in _FEMALE
    return {"his": "her", "him": "her", "he": "she"}.get(pronoun, pronoun) if female else pronoun


def _worded(replaceable: Replaceable, value: str) -> str:
    """Return the value with the possessive that the span has."""
    slot = replaceable.slot
    return f"{value}'s" if replaceable.request.text[slot.start : slot.end].endswith("'s") else value


def _worded_list(first: Request, named: SlotValue, pronoun: str) -> str:
    """Return a playlist as the first request names it; the word `playlist` comes with the pronoun that has it."""
    owner = re.search(r"\b(?:my|the|\w+'s) $", first.text[: named.start], re.IGNORECASE)
    rest = first.text[named.end :].lower()
    if pronoun == "it" and not rest.startswith(" playlist"):
        return (owner.group() if owner else "") + named.value
    return f"{owner.group() if owner else 'the '}{named.value} playlist"
