"""English follow-ups from questions without slots: a noun phrase that two share, or a head that many share."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence

from teo_lab.rows import english
from teo_lab.rows.choices import draw_reply, word_set
from teo_lab.rows.requests import Draft, Request

_FUNCTION = word_set(
    """
    a an the my your our i you we me us is are am was were be been do does did have has had will would can could
    should may might must to of in on at for from by with about into onto near around and or but if when where
    what which who how why not no any some please up out off over as than until before after while since without
    get got now today tomorrow tonight still yet just already ever never really very much many more most so like
    asap again using
    """
)
_NOT_NOUNS = word_set(
    """
    way time best most right next last first same day latest current new only amount number whole rest nearest
    closest total difference name word exact whole following previous left top bottom end start weather past
    week month year pending reason own person market dollar one ones answer question meaning need future average
    timezone employer web morning evening afternoon night date assistance forecast
    """
)
_NOUN_PHRASE = re.compile(r"\b(?:the|my) [a-z]+(?: [a-z]+)?\b")
_PEOPLE = word_set(
    """
    dad mom mother father brother sister daughter son wife husband kid kids child children doctor boss friend
    friends family girlfriend boyfriend parents uncle aunt grandma baby people dentist manager president
    """
)
_PLACES = word_set(
    """
    hospital airport bank store usa us mall beach office restaurant hotel gym library school area city country
    park house kitchen bedroom philippines netherlands uk
    """
)
_PREDICATES = word_set(
    """
    still not been already be work arrive come expire cost take due ready safe available open close going
    declined being frozen blocked lost anymore stolen pending worth valid expired working need have show run
    last look start stop
    """
)
"""Words that a subject is followed by; they end a noun phrase that they might seem to belong to."""
_AUXILIARY = word_set("is does did will can could was has should would")
_TAKES_OBJECT = word_set(
    """
    use get find change activate replace cancel order check freeze pay return fix renew update lose lost report
    see open close top track stop need block receive of for with to on about from in renew cook make play read
    wash start move delete remove verify unblock reset book schedule got received ordered stolen using
    """
)


_TAKES_PLACE = word_set(
    """
    get go uber taxi cab travel traveling flight flights ticket tickets train bus directions drive way set name
    language lights text email message call setting voice color
    """
)
"""Words after which `to` has a noun, not a verb."""


class EnglishSharedPhrase:
    """`when will it arrive` after another question about my new card."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.places: dict[tuple[str, str], list[tuple[Request, int, int]]] = defaultdict(list)
        for request in requests:
            if request.source not in ("clinc150", "banking77") or len(request.text) > 90:
                continue
            text = request.text.lower()
            for start, end in _noun_phrases(text):
                self.places[(request.source, text[start:end])].append((request, start, end))
        # A phrase's weight grows slowly with its questions, so that `my card` does not drown the others.
        self.phrases = [key for key, found in self.places.items() if len(found) > 1]
        self.weights = [len(self.places[key]) ** 0.6 for key in self.phrases]
        self.bounds = _accumulate(self.weights)

    def draw(self, rng: random.Random) -> Draft | None:
        """Return a question with a pronoun for the noun phrase of the question before it."""
        if not self.phrases:
            return None
        key = rng.choices(self.phrases, cum_weights=self.bounds)[0]
        (first, _, _), (second, start, end) = rng.sample(self.places[key], 2)
        text = second.text
        pronoun = _pronoun(text.lower(), start, end)
        if first.text.lower() == text.lower() or pronoun is None or len(_noun_phrases(first.text.lower())) > 1:
            return None
        reply = draw_reply("en", "help" if first.source == "banking77" else "generic", rng)
        return english.finish([first.text, text[:start] + pronoun + text[end:], text], reply, rng)


def _noun_phrases(text: str) -> list[tuple[int, int]]:
    """Return where `the` or `my` starts a phrase of one or two nouns that ends at a function word or the end."""
    found = []
    for match in _NOUN_PHRASE.finditer(text):
        words = match.group().split()[1:]
        if len(words) == 2 and (words[1] in _FUNCTION | _PREDICATES or words[1].endswith("ed")):
            words = words[:1]
        end = match.start() + len(match.group().split()[0]) + sum(len(word) + 1 for word in words)
        rest = text[end:].lstrip(" ")
        ends = not rest.rstrip("?. ") or re.split(r"[ ?.,]", rest)[0] in _FUNCTION | _PREDICATES
        if ends and not any(
            word in _FUNCTION or word in _NOT_NOUNS or word in _PEOPLE or len(word) < 3 for word in words
        ):
            found.append((match.start(), end))
    return found


def _pronoun(text: str, start: int, end: int) -> str | None:
    """Return the pronoun for a noun phrase, if its position allows one."""
    noun = text[start:end]
    before, rest = english.left_word(text, start), text[end:].strip(" ?.")
    plural = noun.endswith("s") and not noun.endswith(("ss", "us", "is"))
    head = noun.split()[-1]
    if len(text.split()) - len(noun.split()) < 3 or text.count(head) > 1 or head in _PLACES:
        return None
    if before in _TAKES_OBJECT and (not rest or rest.split()[0] in english.PREPOSITIONS | {"if", "when", "please"}):
        return "them" if plural else "it"
    if before in _AUXILIARY and rest and not plural and rest.split()[0] in _PREDICATES:
        return "it"
    return None


class SharedHead:
    """`what about new york` after a question that many ask of other places and things."""

    def __init__(self, requests: Sequence[Request]) -> None:
        heads: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for request in requests:
            split = _split_head(request.text.lower().rstrip("?. "))
            if split is not None and not request.intent.startswith("reminder"):
                heads[(request.source, request.intent, split[0])].append(split[1])
        self.heads = {key: sorted(set(tails)) for key, tails in heads.items() if len(set(tails)) > 1}
        self.keys = list(self.heads)
        self.bounds = _accumulate([len(self.heads[key]) ** 0.5 for key in self.keys])

    def draw(self, rng: random.Random) -> Draft | None:
        """Return a follow-up that only has another end."""
        if not self.keys:
            return None
        key = rng.choices(self.keys, cum_weights=self.bounds)[0]
        first, second = rng.sample(self.heads[key], 2)
        if set(first.split()) & set(second.split()) - {"the", "a", "my"}:
            return None
        _, intent, head = key
        prefix = head.split()[-1] if head.split()[-1] in english.PREPOSITIONS and rng.random() < 0.5 else ""
        phrase = f"{prefix} {second}".strip()
        utterance = rng.choice(("what about {}", "what about {}", "how about {}", "and {}", "and {}")).format(phrase)
        reply = draw_reply("en", english.topic(intent), rng)
        return english.finish([f"{head} {first}", utterance, f"{head} {second}"], reply, rng)


def _split_head(text: str) -> tuple[str, str] | None:
    """Return a question as its head up to the last preposition, and the short phrase after it."""
    words = text.split()
    for place in range(len(words) - 2, 2, -1):
        if words[place] in english.PREPOSITIONS | {"of"}:
            tail = words[place + 1 :]
            nouns = tail[1:] if tail[0] in ("the", "a", "an", "my") else tail
            whole = 1 <= len(nouns) <= 3 and not any(word in _FUNCTION or not word.isalpha() for word in nouns)
            if words[place] in ("to", "on") and tail is nouns and words[place - 1] not in _TAKES_PLACE:
                return None
            return (" ".join(words[: place + 1]), " ".join(tail)) if whole else None
    return None


def _accumulate(weights: Sequence[float]) -> list[float]:
    total, sums = 0.0, []
    for weight in weights:
        total += weight
        sums.append(total)
    return sums
