"""Lists and the n-th of their items: dialogues in which only counting tells what is meant.

The items, their number, the form of the list, the ordinal and the question are all drawn, so that nothing but the
position can be learned. `counting/{en,zh}.txt` has the wordings: a section `[category + category]` with the questions
that a list answers (`?`) and what may be said of an item (`@` in its place); the sections `[list]`, `[numbered]`,
`[own]` and `[remark]` have the forms.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from teo.data.row import Row
from teo.errors import DataError
from teo_lab.paths import ROWS
from teo_lab.rows.choices import Language, draw_reply
from teo_lab.rows.typos import Typed, add_typos
from teo_lab.rows.words import WordList, read_words

MOST = 6
"""Items of a list, at most."""
REMARKS, OWN = 0.3, 0.2
"""Share of the lists with a remark behind each item, and of those that the speaker gives himself."""
NUMBERED = 0.4
"""Share of the lists that are numbered or have a line for each item."""
_FORMS = ("list", "numbered", "own", "remark")
_ENGLISH = ("first", "second", "third", "fourth", "fifth", "sixth")
_SHORT = ("1st", "2nd", "3rd", "4th", "5th", "6th")
_CHINESE = "一二三四五六"
_SPEAKERS = "UAU"
_OWN_ITEM = re.compile(r"^(?:my\b|我)")
_SIDES = {"my": "your", "我": "你"}
_COUNT = {"en": ("", "one", "two", "three", "four", "five", "six"), "zh": "零一两三四五六"}


@dataclass(slots=True)
class _Group:
    """Categories of items, with what is asked for them and said of one of them."""

    categories: tuple[str, ...]
    counter: str = "个"
    quoted: bool = False
    asked: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


def counting_rows(language: Language, count: int, seed: int) -> Iterator[Row]:
    """Yield `count` rows; equal arguments give equal rows."""
    groups, forms, words = _read(language)
    for number in range(count):
        rng = random.Random(f"counting/{language}/{seed}/{number}")
        group = rng.choice(groups)
        items = _draw_items(group, words, rng)
        turns, own = _draw_turns(group, items, forms, language, rng)
        position = rng.randrange(len(items))
        template = rng.choice(group.said)
        ordinal = _draw_ordinal(position, len(items), group.counter, language, rng)
        utterance = _capitalize(template.replace("the @", ordinal).replace("@", ordinal), template)
        item = items[position] if own else _other_side(items[position])
        rewrite = _capitalize(template.replace("@", item), template)
        typed = add_typos(Typed((*turns, utterance), _SPEAKERS, rewrite), language, rng)
        yield Row(f"counting-{language}-{number}", typed.dialogue, typed.rewrite)


def _draw_items(group: _Group, words: dict[str, WordList], rng: random.Random) -> list[str]:
    entries = words[rng.choice(group.categories)].entries
    wanted = min(rng.choice((2, 3, 3, 3, 4, 4, 5, MOST)), len(entries))
    values = [entry.value for entry in rng.sample(entries, wanted)]
    return [f"《{value}》" for value in values] if group.quoted else values


def _other_side(item: str) -> str:
    """Return an item as the other speaker says it: my sister is your sister to him."""
    return _OWN_ITEM.sub(lambda found: _SIDES[found[0]], item)


def _draw_turns(
    group: _Group, items: Sequence[str], forms: dict[str, list[str]], language: Language, rng: random.Random
) -> tuple[list[str], bool]:
    """Return the turns before the utterance, and whether its speaker is the one who lists the items."""
    if rng.random() < OWN:
        own = _join(rng.choice(forms["own"]), items, language)
        return [own, draw_reply(language, "generic", rng)], True
    question = rng.choice(group.asked)
    numbered = rng.random() < NUMBERED
    shown = list(items)
    if rng.random() < REMARKS and not any(map(_OWN_ITEM.match, items)):  # nobody has a price
        # In running text a remark stands in brackets, or its commas would be those of the list.
        remark = rng.choice([form for form in forms["remark"] if numbered or form.endswith((")", "）"))])
        shown = [remark.replace("@", item).replace("#", str(rng.randint(2, 9))) for item in items]
    if not numbered:
        return [question, _join(rng.choice(forms["list"]), shown, language)], False
    head, _, form = rng.choice(forms["numbered"]).rpartition("/ ")
    head = head.strip().replace("#", _COUNT[language][len(items)])
    separator = " " if form.startswith("#)") else "\n"
    lines = [form.replace("#", str(k)).replace("@", item) for k, item in enumerate(shown, 1)]
    return [question, separator.join([head, *lines] if head else lines)], False


def _join(form: str, items: Sequence[str], language: Language) -> str:
    """Return a form with the items in the place of `@` (and) or `|` (or), and their number in that of `#`."""
    comma = ", " if language == "en" else "、"
    words = {"@": " and ", "|": " or "} if language == "en" else {"@": "和", "|": "或者"}
    text = form.replace("#", _COUNT[language][len(items)])
    for sign, word in words.items():
        text = text.replace(sign, comma.join(items[:-1]) + word + items[-1])
    return _capitalize(text, form)


def _draw_ordinal(position: int, length: int, counter: str, language: Language, rng: random.Random) -> str:
    """Return one way to say which item is meant."""
    if language == "zh":
        nth = _CHINESE[position]
        ways = [f"第{nth}{counter}"] * 4 + [f"第{nth}个", f"第{position + 1}{counter}"]
        ways += [f"最后一{counter}", f"最后那{counter}"] * 2 if position == length - 1 else []
        ways += [f"倒数第二{counter}"] if position == length - 2 and length > 2 else []
        ways += [f"头一{counter}"] if position == 0 else []
        ways += [f"中间那{counter}"] * 2 if length == 3 and position == 1 else []
        ways += (
            [("前者", "后者")[position], (f"前面那{counter}", f"后面那{counter}")[position]] * 2 if length == 2 else []
        )
        return rng.choice(ways)
    nth = _ENGLISH[position]
    ways = [f"the {nth} one"] * 4 + [f"the {nth}"] * 2
    ways += [f"the {_SHORT[position]} one", f"number {position + 1}", f"option {position + 1}"]
    ways += ["the last one", "the last one", "the last", "the final one"] if position == length - 1 else []
    ways += ["the last but one", "the second to last"] if position == length - 2 and length > 2 else []
    ways += ["the middle one"] * 2 if length == 3 and position == 1 else []
    ways += [("the former", "the latter")[position]] * 5 if length == 2 else []
    return rng.choice(ways)


def _capitalize(text: str, template: str) -> str:
    """Return the text with a capital if its template starts with an item or a capital."""
    return text[:1].upper() + text[1:] if template[:1] in "@|" or template[:1].isupper() else text


@cache
def _read(language: Language) -> tuple[list[_Group], dict[str, list[str]], dict[str, WordList]]:
    """Return the groups of categories and the forms of a language, and its word lists."""
    words = read_words(ROWS / "words" / f"{language}.txt")
    path = ROWS / "counting" / f"{language}.txt"
    groups: list[_Group] = []
    forms: dict[str, list[str]] = {name: [] for name in _FORMS}
    form = ""
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = raw.strip().replace("\\n", "\n")
        if not line or raw.startswith("# "):
            continue
        if line.startswith("["):
            name, _, mark = line.strip("[]").partition(":")
            form = name if name in _FORMS else ""
            if not form:
                categories = tuple(part.strip() for part in name.split("+"))
                unknown = [part for part in categories if part not in words]
                if unknown:
                    raise DataError(f"{path.name}:{number}: expected word lists that exist, found {unknown[0]}")
                groups.append(_Group(categories, mark.strip("《 ") or "个", quoted="《" in mark))
        elif form:
            forms[form].append(line)
        else:
            (groups[-1].asked if line.startswith("? ") else groups[-1].said).append(line.removeprefix("? "))
    return groups, forms, words
