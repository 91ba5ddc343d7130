"""Sampled rows to learn from: those the teacher is sure of and the dialogue bears out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from teo.dialogue import Dialogue
from teo.units import unit_texts
from teo_lab.rows.choices import word_set

_STEM = 4
_RUN = 4
_FREE = word_set(
    """
    a an the of in on at to for from with by about as than and or is are was were be been being am do does did done has
    have had having will would can could should may might must that which who whose whom what when where why how it its
    i me my mine myself we us our ours you your yours yourself he him his she her they them their 's 're 'm 'd 'll 've
    not n't no any some one ones so such there then this these those if while after before too also either neither both
    get got go goes went gone more most much many long often ever never already still yet again only just
    """
)
"""Words that grammar may ask for although no turn has them."""


_FORMS = """
    leave left / buy bought / see saw seen / take took taken / give gave given / come came / find found
    think thought / know knew known / tell told / say said / make made / feel felt / keep unchanged / lose lost
    meet met / pay paid / sell sold / send sent / speak spoke spoken / spend spent / stand stood / teach taught
    win won / write wrote written / run ran / sing sang sung / drink drank drunk / drive drove driven
    eat ate eaten / fall fell fallen / fly flew flown / hear heard / hold held / begin began begun
    break broke broken / bring brought / build built / catch caught / choose chose chosen
    forget forgot forgotten / grow grew grown / have has had / lend lent / ride rode ridden / sit sat
    sleep slept / steal stole stolen / swim swam swum / throw threw thrown / understand understood
    wear wore worn / die died dying / lie lay lying / rise rose risen / shut shutting / get got getting
    cost costs / good better best / bad worse worst / man men / woman women / child children / person people
    foot feet / tooth teeth / mouse mice / wife wives / knife knives
"""
_STEMS = {form: forms.split()[0] for line in _FORMS.splitlines() for forms in line.split("/") for form in forms.split()}
"""Forms that do not begin alike, and the one that stands for them."""


@dataclass(frozen=True, slots=True)
class ScreenLimits:
    """What a sampled row must reach."""

    logprob: float = -0.6
    """Sum of the log probabilities of a changed rewrite, at least."""
    lowest: float = -0.5
    """Log probability of its least likely token, at least."""
    unchanged: float = -0.1
    """Log probability that the utterance stays unchanged, at least, if it does."""
    utterance: int = 32
    """Words of an utterance, at most."""
    longer: int = 20
    """Words that a rewrite may have more than its utterance."""


def find_flaw(dialogue: Dialogue, rewrite: str, logprob: float, lowest: float, limits: ScreenLimits) -> str | None:
    """Return why a sampled row is not taken; none if it is."""
    before, after = _words(dialogue.utterance), _words(rewrite)
    turns = [_words(turn) for turn in dialogue.history]
    unchanged = rewrite == dialogue.utterance
    unsure = logprob < limits.unchanged if unchanged else logprob < limits.logprob or lowest < limits.lowest
    flaws = {
        "empty": not all((before, after, *turns)),
        "repeats itself": any(repeats(words) for words in (*turns, before, after)),
        "long utterance": len(before) > limits.utterance,
        "unsure": unsure,
        "only marks or case": not unchanged and before == after,
        "too long": len(after) - len(before) > limits.longer,
        "copy of a turn": not unchanged and after in turns,
        "word from nowhere": not unchanged and _invents(after, [*turns, before]),
    }
    return next((flaw for flaw, found in flaws.items() if found), None)


def _invents(words: Sequence[str], known: Sequence[Sequence[str]]) -> bool:
    """Tell whether a word comes from nowhere; forms of a word of the dialogue are known."""
    stems = {_stem(word) for turn in known for word in turn}
    return any(word not in _FREE and _stem(word) not in stems for word in words)


def _stem(word: str) -> str:
    return _STEMS.get(word, word)[:_STEM]


def repeats(words: Sequence[str]) -> bool:
    """Tell whether a run of words comes three times, as a model does that has lost its thread."""
    runs = [tuple(words[k : k + _RUN]) for k in range(len(words) - _RUN + 1)]
    return any(runs.count(run) > 2 for run in set(runs))


def _words(text: str) -> list[str]:
    return [unit for unit in unit_texts(text.lower()) if unit[:1].isalnum() or unit.startswith("'")]
