"""Copies of rows with a difference that should not matter: unrelated turns, polite words, typos, another name.

What the difference adds to an utterance it adds to its rewrite, too, so the model learns to look past it.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import EditScript
from teo.units import holds_cjk, unit_texts
from teo_lab.paths import ROWS
from teo_lab.rows.choices import Language, language_of, read_sections, word_set
from teo_lab.rows.typos import STARTERS, Typed, drop_capitals, drop_final_marks, mistype

Vary = Callable[[Row, random.Random], Row | None]
"""A row -> the row with a difference, in its rewrite too; None if the difference does not apply to it."""

_MOST_TURNS = 3
"""Unrelated turns in front of a dialogue, at most; an odd number gives the utterance to the other speaker."""
_QUESTION_ZH = re.compile(r"[吗呢？?]|谁|什么|哪|怎么|多少|几|多久|多长|为啥|为何|多[大高远重]")
_FINAL_MARK = re.compile(r"[.?!。？！]?$")
_INSIDE = re.compile(r"(?<=[\w,;] )[A-Z][^\W\d_]+")
"""English words with a capital that do not begin a sentence."""
_NO_NAMES = STARTERS | word_set(
    """
    mr mrs ms miss dr sir madam god internet tv monday tuesday wednesday thursday friday saturday sunday january
    february march april may june july august september october november december spring summer autumn winter
    christmas easter
    """
)
"""English words whose capital makes no name of them."""
_PRONOUNS_ZH = word_set("他 她 它 他们 她们 它们 这里 那里 这儿 那儿 这个 那个 这家 那家 这部 那部 这本 那本 这首 那首")
_TITLE_ZH = re.compile(r"《([^《》]+)》")
_CHINESE_NAME = re.compile(
    r"(?![我你您他她它这那哪谁每某几两一二三四五六七八九十])[\u4e00-\u9fff·]{2,8}(?<![了着过得地的呢吗吧])"
)
"""What may be a Chinese name by its length and characters; what is longer is a phrase."""
_SYLLABLES: dict[Language, str] = {
    "en": "ba bel bor cal cor da del dor fen gar hal jo ka kel kir la lin lor mel mor na nel pa pel rin ro sel tal va",
    "zh": "安 巴 贝 布 达 德 迪 恩 格 哈 赫 霍 吉 卡 克 拉 兰 勒 里 林 卢 洛 罗 玛 麦 曼 米 莫 纳 尼 诺",
}
"""What made-up names consist of."""


def vary_rows(kind: str, rows: Sequence[Row], share: float, vary: Vary, seed: int = 0) -> Iterator[Row]:
    """Yield varied copies of a share of the rows. Every row draws for itself, so their order does not matter."""
    for row in rows:
        rng = random.Random(f"{kind}/{seed}/{row.id}")
        if rng.random() < share and (varied := vary(row, rng)) is not None:
            yield varied


def unrelated_rows(rows: Sequence[Row], share: float, seed: int = 0) -> Iterator[Row]:
    """Yield rows after one to three turns of another dialogue of the same language."""
    histories: dict[bool, list[tuple[str, ...]]] = defaultdict(list)
    for row in rows:
        histories[holds_cjk(row.rewrite)].append((*row.dialogue.history, row.rewrite))

    def vary(row: Row, rng: random.Random) -> Row | None:
        turns = rng.choice(histories[holds_cjk(row.rewrite)])[-rng.randint(1, _MOST_TURNS) :]
        if row.dialogue.utterance in turns or row.rewrite in turns or not all(turn.strip() for turn in turns):
            return None
        dialogue = Dialogue((*turns, *row.dialogue.history), row.dialogue.utterance)
        return Row(f"unrelated:{row.id}", dialogue, row.rewrite)

    return vary_rows("unrelated", rows, share, vary, seed)


def polite_rows(rows: Sequence[Row], share: float, seed: int = 0) -> Iterator[Row]:
    """Yield rows with polite words around the utterance, which stay in the rewrite."""
    return vary_rows("polite", rows, share, add_polite_words, seed)


def add_polite_words(row: Row, rng: random.Random) -> Row | None:
    """Return the row with polite words before or after the utterance; None if utterance and rewrite end differently."""
    utterance, rewrite = row.dialogue.utterance, row.rewrite
    if _final_mark(utterance) != _final_mark(rewrite):
        return None
    language = language_of(row.rewrite)
    sections = read_sections(ROWS / "polite.txt")
    fronts = list(sections[f"{language}-front"])
    if language == "zh" and _QUESTION_ZH.search(utterance):
        fronts += sections["zh-question"]
    if rng.random() < 0.7:
        words = rng.choice(fronts) + (" " if language == "en" else "")
        utterance, rewrite = words + utterance, words + rewrite
    else:
        words = rng.choice(sections[f"{language}-end"])
        utterance, rewrite = _before_mark(utterance, words), _before_mark(rewrite, words)
    return Row(f"polite:{row.id}", Dialogue(row.dialogue.history, utterance), rewrite)


def typed_rows(rows: Sequence[Row], share: float, seed: int = 0) -> Iterator[Row]:
    """Yield rows as somebody in a hurry types them: without final marks or capitals, or with a typing error."""

    def vary(row: Row, rng: random.Random) -> Row | None:
        language = language_of(row.rewrite)
        changes: list[Callable[[Typed], Typed]] = [drop_final_marks, lambda typed: mistype(typed, language, rng)]
        if language == "en":
            changes.append(lambda typed: drop_capitals(typed, rng))
        varied = change_typing(row, rng.choice(changes))
        return None if varied.dialogue == row.dialogue else replace(varied, id=f"typed:{row.id}")

    return vary_rows("typed", rows, share, vary, seed)


def change_typing(row: Row, change: Callable[[Typed], Typed]) -> Row:
    """Return a row as its user types it, with whom another one takes turns."""
    typed = change(Typed.taking_turns(row.dialogue, row.rewrite))
    return replace(row, dialogue=typed.dialogue, rewrite=typed.rewrite)


def renamed_rows(rows: Sequence[Row], share: float, seed: int = 0) -> Iterator[Row]:
    """Yield rows in which what the rewrite takes from the history has a made-up name, so that it must be copied."""

    def vary(row: Row, rng: random.Random) -> Row | None:
        name = copied_name(row)
        if name is None:
            return None
        made_up = "".join(rng.sample(_SYLLABLES[language_of(row.rewrite)].split(), rng.randint(2, 3)))
        return replace(rename(row, name, made_up.capitalize()), id=f"renamed:{row.id}")

    return vary_rows("renamed", rows, share, vary, seed)


def copied_name(row: Row) -> str | None:
    """Return the longest name that the rewrite takes from the history; None if nothing there is surely a name."""
    edits = derive_edits(row.dialogue.utterance, row.rewrite)
    texts = (*row.dialogue.history, row.dialogue.utterance, row.rewrite)
    names = _chinese_names(edits, texts) if holds_cjk(row.rewrite) else _english_names(edits, texts)
    copied = [name for name in names if any(name in turn for turn in row.dialogue.history)]
    return max(copied, key=lambda name: (len(name), name), default=None)


def _english_names(edits: EditScript, texts: Sequence[str]) -> set[str]:
    """Return the added words that have a capital within a sentence, and never come without one."""
    added = {word for edit in edits for word in unit_texts(edit.new) if word[0].isupper() and len(word) > 1}
    small = {word for text in texts for word in unit_texts(text) if word == word.lower()}
    inside = {word for text in texts for word in _INSIDE.findall(text)}
    return {word for word in added if word.lower() not in small | _NO_NAMES and word in inside}


def _chinese_names(edits: EditScript, texts: Sequence[str]) -> set[str]:
    """Return what stands for a pronoun or in title marks, unless it looks like a phrase or a part of it is left."""
    names = {edit.new for edit in edits if edit.old in _PRONOUNS_ZH}
    names |= {title for edit in edits for title in _TITLE_ZH.findall(edit.new)}
    return {name for name in names if _CHINESE_NAME.fullmatch(name) and not _is_split(name, texts)}


def _is_split(name: str, texts: Sequence[str]) -> bool:
    """Tell whether two characters of a name come without the others, so that it has no clear borders."""
    pairs = [name[k : k + 2] for k in range(len(name) - 1)]
    return any(pair in text.replace(name, "|") for text in texts for pair in pairs)


def rename(row: Row, name: str, other: str) -> Row:
    """Return a row that has another name in the place of one."""
    whole = re.escape(name) if holds_cjk(name) else rf"\b{re.escape(name)}\b"
    return change_texts(row, lambda text: re.sub(whole, other, text))


def change_texts(row: Row, change: Callable[[str], str]) -> Row:
    """Return a row with the same change in every turn and in the rewrite."""
    dialogue = Dialogue(tuple(map(change, row.dialogue.history)), change(row.dialogue.utterance))
    return replace(row, dialogue=dialogue, rewrite=change(row.rewrite))


def _final_mark(text: str) -> str:
    found = _FINAL_MARK.search(text)
    return found[0] if found else ""


def _before_mark(text: str, words: str) -> str:
    """Return the text with words before its final mark."""
    mark = _final_mark(text)
    return text[: len(text) - len(mark)] + words + mark
