"""What an assistant wrote in Markdown or HTML, as the plain text that a model reads.

Marks go, what they mark stays: emphasis, headings, bullets (the numbers of a list stay), quotes, rules, tables (cells
in order; names of columns above several rows go), links and images (their text), footnotes, code fences and back ticks,
tags, entities, emoji shortcodes and zero-width characters. A bare URL stays: it is what was said.

Text without marks comes out as it was, and so does what only looks like a mark: `2 * 3 * 4`, `a_b_c`, `x**2`, `C#`,
`<3`, `#1`, `[1]`, `__init__`. No Markdown parser is used: they take some of these for marks, and miss bold text beside
Chinese punctuation. Reading is repeated until nothing changes, so that it is idempotent; every step takes time in
proportion to the text.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import replace
from itertools import compress

from teo.dialogue import Dialogue
from teo.html_text import read_html
from teo.units import holds_cjk

_PASSES = 6
"""How deep marks may be nested; deeper ones are no writing, and all characters of marks are deleted."""
_INVISIBLE = "\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_SHORTCODE = r":(?:[a-z][a-z0-9_+-]{1,30}|[+-]1):"
_MAY_MARK = re.compile(rf"[*_`#\[\]<>&|~\\†{_INVISIBLE}\u200c\u200d]|{_SHORTCODE}|^[ \t]*[-+•‣◦▪=]", re.MULTILINE)
_ALL_MARKS = re.compile(rf"[*_`#\[\]<>&|~\\†:+=•‣◦▪{_INVISIBLE}\u200c\u200d-]")

# A joiner belongs to emoji and to some scripts, but not beside ASCII or Chinese.
_UNSEEN = re.compile(
    rf"[{_INVISIBLE}]|(?<=[\x00-\x7f\u3000-\u9fff])[\u200c\u200d]+|[\u200c\u200d]+(?=[\x00-\x7f\u3000-\u9fff]|\Z)"
)
_LINE_START = re.compile(
    r"[ \t]*(?:(?:>(?=[ \t>]|$)|[-*+](?=[ \t])|[•‣◦▪])[ \t]*)+"
    r"(?:\[[ xX]\][ \t]+|\[!(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION)\][ \t]*)?"
)
_HEADING = re.compile(r"[ \t]*(?:#{1,6}[ \t]+(?!of\b)|#{2,6}(?=[^\s#]))")
_FENCE = re.compile(r"[ \t]*(?:`{3,}[^`]*|~{3,}[ \t]*[\w+-]*[ \t]*)$")
_DEFINITION = re.compile(r"[ \t]{0,3}\[(\^?)([^\[\]]{1,99})\]:[ \t]*(?=(\S*))")
_ADDRESS = re.compile(r"<?(?:[a-z][a-z0-9+.-]*://|www\.|mailto:|[/#]|\.\.?/)", re.IGNORECASE)
_LATER_LINE = re.compile(r"\n(?=[A-Za-zÀ-ɏ])")
_CELL_END = re.compile(r"(?<!\\)\|")

_TICKS = re.compile(r"`+")
# Marks that a cut-off answer did not close. In "``quoted''", "char **argv", "f(**kwargs)" and "2 **3" they are none.
_OPEN_TICK = re.compile(r"(?<![A-Za-z0-9_(\[{（'\"`\\])`(?=[A-Za-z_./$@-])")
_QUOTE_END = re.compile(r"\w'(?!\w)")
_OPEN_BOLD = re.compile(
    r"(?<![!-~])(?<!\bchar )(?<!\bint )(?<!\bvoid )\*\*"
    r"(?=[^\W\d_]{2}|[\u3040-\u9fff])(?!(?:args|kw|kwargs|kwds|options|opts|params)\b)(?![a-z_]\w*[ \t]*[),;=\]}])"
)
_ONE_TAG = re.compile(r"</?([A-Za-z][\w-]*)[^<>]*>")
_ESCAPE = re.compile(
    r"((?<![A-Za-z])[A-Za-z]:\\[!-~]*)|(?<![¯*_])\\([*_`#\[\]~>])|^([ \t]*\d{1,9})\\(?=[.)])", re.MULTILINE
)
"""A path of Windows, which stays; or an escape, of which the character stays."""
_CITATION = re.compile(r"【\d{1,3}(?::\d{1,3})?†[^【】]{0,200}】")
_FOOTNOTE = re.compile(r"\[\^([\w-]{1,40})\]")
_BRACKET = re.compile(r"!?\[|\]")
# No destination may hold a bracket: no two attempts to match one read the same text.
_DESTINATION = re.compile(
    r"\([ \t]*(?P<address><[^<>\n\[\]]*>|[^\s()<>\[\]]*(?:\([^\s()<>\[\]]*\)[^\s()<>\[\]]*)*)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*\)"
)
_LABEL = re.compile(r"\[([^\[\]\n]*)\]")
_RUN = re.compile(r"\*+|_+|~~+|\n")
_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"[^\W_]")
_DUNDER = re.compile(r"[a-z0-9_]{1,40}")
_EMOJI = re.compile(rf"[ \t]?(?<![A-Za-z0-9_:/]){_SHORTCODE}(?![A-Za-z0-9_:/])")
_OPENING, _CLOSING = "([{（「『《【“‘", ")]}.,;:!?，。；：！？、）」』》】"

Cut = tuple[int, int]


def read_history(dialogue: Dialogue) -> Dialogue:
    """Return a dialogue whose turns are plain text; its utterance is as it was.

    Turns of every speaker are read alike, since a plain list does not say who spoke. A turn that has nothing but marks
    is left out. A word after a line break gets a space before it: models know a word by the space before it, and of 16
    questions about the items of lists 4 were right without it, 15 with it.
    """
    turns = tuple(_LATER_LINE.sub("\n ", read_plain(turn.replace("\r\n", "\n"))) for turn in dialogue.history)
    if turns == dialogue.history:
        return dialogue
    said = [bool(turn.strip()) or turn == given for turn, given in zip(turns, dialogue.history, strict=True)]
    speakers = dialogue.speakers and (*compress(dialogue.speakers, said), dialogue.speakers[-1])
    return replace(dialogue, history=tuple(compress(turns, said)), speakers=speakers)


def read_plain(text: str) -> str:
    """Return a text without its marks; a text without marks as it was."""
    if not _MAY_MARK.search(text):
        return text
    for _ in range(_PASSES):
        read = _read_once(text)
        if read == text:
            return text
        text = read.strip()
    return text if _read_once(text) == text else _ALL_MARKS.sub("", text)


def _read_once(text: str) -> str:
    """Return a text without its outermost marks."""
    text = _UNSEEN.sub("", text)
    text, labels = _read_lines(text)
    text = "\n\n".join(map(_read_code, text.split("\n\n"))) if "`" in text else text
    text = read_html(text)
    if "\\" in text:
        text = _ESCAPE.sub(r"\1\2\3", text)
    if "†" in text:
        text = _CITATION.sub("", text)
    if "[" in text:
        text = _read_links(_FOOTNOTE.sub(lambda note: _read_footnote(note, labels), text), labels)
    text = "\n\n".join(map(_read_emphasis, text.split("\n\n")))
    return _EMOJI.sub("", text)


def _read_lines(text: str) -> tuple[str, frozenset[str]]:
    """Return a text without what marks whole lines, and the labels of its notes and link definitions."""
    lines, labels = text.split("\n"), set[str]()
    rows, read = _find_rows(lines), []
    for number, line in enumerate(lines):
        if number in rows:
            if not _is_separator(line) and not _is_head(lines, number, rows):
                read.append(_read_row(line))
            continue
        if len(lines) > 1 and (_is_rule(line) or _FENCE.match(line)):
            continue
        definition = _DEFINITION.match(line)
        if definition and (definition[1] or (len(lines) > 1 and _ADDRESS.match(definition[3]))):
            labels.add(definition[1] + definition[2].lower())
            if definition[1]:
                read.append(line[definition.end() :])
            continue
        read.append(_read_heading(line[start.end() :] if (start := _LINE_START.match(line)) else line))
    return "\n".join(read), frozenset(labels)


def _read_heading(line: str) -> str:
    heading = _HEADING.match(line)
    if heading is None:
        return line
    title = line[heading.end() :].rstrip()
    closed = title.rstrip("#")
    return closed.rstrip() if closed.endswith((" ", "\t")) else title


def _is_rule(line: str) -> bool:
    """Tell whether a line only separates: three or more of - * _ or =, with spaces between them or not."""
    signs = line.replace(" ", "").replace("\t", "")
    return len(signs) >= 3 and signs[0] in "-*_=" and signs == signs[0] * len(signs)


def _is_separator(line: str) -> bool:
    """Tell whether a line stands between the head and the rows of a table."""
    return "|" in line and "-" in line and not line.strip("|-: \t")


def _is_head(lines: list[str], number: int, rows: set[int]) -> bool:
    """Tell whether a row only names the columns of several rows: it must not pass for the first of them."""
    if number + 1 not in rows or not _is_separator(lines[number + 1]) or number + 3 not in rows:
        return False
    return bool(lines[number].strip().removeprefix("|").partition("|")[0].strip())


def _find_rows(lines: list[str]) -> set[int]:
    """Return the numbers of the lines that are rows of tables: around a separator, or framed and not alone."""
    rows: set[int] = set()
    if not any("|" in line for line in lines):
        return rows
    framed = [len(line) > 2 and line[0] == line[-1] == "|" for line in map(str.strip, lines)]
    within = False
    for number, line in enumerate(lines):
        if _is_separator(line):
            if number and "|" in lines[number - 1]:
                rows.add(number - 1)
            within = True
        within = within and "|" in line
        if within or (
            framed[number] and (True in framed[max(number - 1, 0) : number] + framed[number + 1 : number + 2])
        ):
            rows.add(number)
    return rows


def _read_row(line: str) -> str:
    cells = [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(line)]
    return ("，" if holds_cjk(line) else ", ").join(filter(None, cells))


def _read_code(text: str) -> str:
    """Return a paragraph without the back ticks around code; a tick inside a word is an apostrophe.

    The last tick may be without a partner, since the answer was cut off: before a word it goes too.
    """
    runs = [match.span() for match in _TICKS.finditer(text)]
    later: dict[int, deque[int]] = defaultdict(deque)
    for number, (start, end) in enumerate(runs):
        later[end - start].append(number)
    parts, position, number = [], 0, 0
    while number < len(runs):
        start, end = runs[number]
        closing = later[end - start]
        while closing and closing[0] <= number:
            closing.popleft()
        if closing and not _is_ascii_word(text[start - 1 : start]):
            number = closing[0]
            code = text[end : runs[number][0]]
            if len(code) > 2 and code[0] == code[-1] == " ":
                code = code[1:-1]
            tag = _ONE_TAG.fullmatch(code)
            parts += [text[position:start], tag[1] if tag else code]
            position = runs[number][1]
        elif not closing and end - start == 1 and _OPEN_TICK.match(text, start) and not _QUOTE_END.search(text, end):
            parts.append(text[position:start])
            position = end
        number += 1
    return "".join([*parts, text[position:]])


def _read_footnote(note: re.Match[str], labels: frozenset[str]) -> str:
    return "" if note[1].isdecimal() or f"^{note[1].lower()}" in labels else note[0]


def _read_links(text: str, labels: frozenset[str]) -> str:
    """Return a text with links and images as their text; a number that is a link stays in its brackets."""
    cuts: list[Cut] = []
    opened: list[Cut] = []
    for match in _BRACKET.finditer(text):
        if match[0] != "]":
            opened.append(match.span())
        elif opened:
            (start, inner), end = opened.pop(), match.end()
            if (target := _find_target(text, start, inner, match.start(), labels)) > end:
                number = text[inner : match.start()].isdecimal()
                cuts += [(end, target)] if number else [(start, inner), (match.start(), target)]
    return _cut(text, cuts)


def _find_target(text: str, start: int, inner: int, end: int, labels: frozenset[str]) -> int:
    """Return where a link ends whose text is in brackets; 0 if the brackets are no link."""
    if destination := _DESTINATION.match(text, end + 1):
        indexed = _is_ascii_word(text[start - 1 : start] if start else "")
        return 0 if indexed and not _ADDRESS.match(destination["address"]) else destination.end()
    if labels and (label := _LABEL.match(text, end + 1)):
        name = label[1] or text[inner : min(end, inner + 100)]
        return label.end() if name.lower() in labels else 0
    return 0


def _read_emphasis(text: str) -> str:
    """Return a paragraph without the marks of bold, italic and struck text.

    A run of one to three marks is closed by the next such run of the same length, for one mark on the same line. Bold
    text that is never closed, since the answer was cut off, loses its mark before a word.
    """
    cuts: list[Cut] = []
    opened: dict[str, list[int]] = defaultdict(list)
    position, last_word = 0, -1
    for match in _RUN.finditer(text):
        (start, end), run = match.span(), match[0]
        if word := _WORD.search(text, position, start):
            last_word = word.start()
        position = end
        if run == "\n":
            opened["*"], opened["_"] = [], []
        if run == "\n" or len(run) > 3:
            continue
        before, after = text[start - 1 : start] if start else "", text[end : end + 1]
        stack = opened[run]
        if stack and last_word >= stack[-1] and _closes(text, run, stack[-1] + len(run), start, after):
            first = stack.pop()
            for others in opened.values():
                while others and others[-1] > first:
                    others.pop()
            cuts += [(first, first + len(run)), (start, end)]
        elif _opens(run, before, after):
            stack.append(start)
    cuts += [(start, start + 2) for start in opened["**"] if _OPEN_BOLD.match(text, start)]
    return _cut(text, cuts)


def _opens(run: str, before: str, after: str) -> bool:
    """Tell whether a run of marks between two characters may open emphasis."""
    if not after or after.isspace() or after in _CLOSING or before == "\\":
        return False
    if run == "*" and before in tuple("./"):  # a regular expression, a comment in code, an address
        return False
    if run[0] == "*":  # a power or a product stands between ASCII characters
        factor = _is_ascii_word(after) or (run == "*" and after in "([")
        return not ((_is_ascii_word(before) or before in tuple(")]")) and factor)
    if run[0] == "_":
        return not before.isalnum() and before != "/"
    return len(run) == 2 and not _is_ascii_word(before)


def _closes(text: str, run: str, inner: int, start: int, after: str) -> bool:
    """Tell whether a run of marks at `start` may close the emphasis whose text begins at `inner`."""
    last = text[start - 1]
    if last.isspace() or last in _OPENING:
        return False
    if run[0] == "~":
        return _closes_struck(text, inner, start, after)
    if run[0] == "_":
        return not after.isalnum() and not (run == "__" and _DUNDER.fullmatch(text, inner, start))
    glued = _is_ascii_word(after) and (_is_ascii_word(last) or last in ")]")
    return not glued or (start - inner <= 40 and text[inner:start].isalpha())


def _closes_struck(text: str, inner: int, start: int, after: str) -> bool:
    """Tell whether two tildes at `start` close struck text; in Chinese, tildes after words are often a drawn-out tone.

    What is struck right after a Chinese word is a number, such as an old price.
    """
    if _is_ascii_word(after):
        return False
    glued = inner > 2 and text[inner - 3].isalnum()
    return not glued or _DIGIT.search(text, inner, min(start, inner + 40)) is not None


def _is_ascii_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


def _cut(text: str, cuts: Iterable[Cut]) -> str:
    parts, position = [], 0
    for start, end in sorted(cuts):
        parts.append(text[position:start])
        position = end
    return "".join([*parts, text[position:]])
