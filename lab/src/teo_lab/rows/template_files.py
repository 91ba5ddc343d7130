"""Template files: small dialogues with slots and choices, and the rewrite of their last turn.

Blocks are separated by a blank line. `# kind` alone sets the kind of the blocks below it, `##` starts a comment.
`U:` and `A:` lines are turns of the user and the assistant, the last of them the utterance; `> text` is the rewrite,
`=` alone says that the utterance is complete. Several last turns of the user with their rewrites may share a history:
`- utterance => rewrite` lines (`- utterance` alone before `=`); `+` in place of `-` puts the shared choice `lead`
before both. `@name: text` adds a text to a shared choice that every template of the folder
can use as `<name>`. `A: {{answer}}` stands for an answer that the caller has.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from teo.errors import DataError
from teo_lab.rows.patterns import Parser, Pattern, slots_of
from teo_lab.rows.words import WordList, read_words

KINDS = (
    "substitution",
    "bare-question",
    "pronoun",
    "possessive",
    "there-then-one",
    "nth",
    "two-candidates",
    "own-turn",
    "far-back",
    "long-answer",
    "statement",
    "request",
    "answered-question",
    "keep",
)
ANSWER = "{{answer}}"
HELD_OUT_PERCENT = 6
_SHARED = re.compile(r"@(?P<name>[a-z][\w-]*):\s*(?P<text>.+)")
_USE = re.compile(r"<(?P<name>[a-z][\w-]*)>")
_PAIR = re.compile(r"(?P<mark>[-+]) (?P<utterance>\S.*?)(?: => (?P<rewrite>\S.*))?")
_PAIRS = "pair"
_TURN = re.compile(r"(?P<speaker>[UA]):\s*(?P<text>\S.*)")


@dataclass(frozen=True, slots=True)
class Template:
    """A dialogue with slots and choices; a rewrite of None says that the utterance is complete."""

    kind: str
    turns: tuple[str, ...]
    rewrite: str | None
    speakers: str
    """One letter per turn: U for the user, A for the assistant."""
    where: str
    """File and line of its first turn."""

    @property
    def held_out(self) -> bool:
        """Whether training never sees this template: a fixed share, by hash of its text."""
        text = "\n".join((*self.turns, self.rewrite or "="))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % 100 < HELD_OUT_PERCENT

    def patterns(self) -> tuple[Pattern | None, ...]:
        """Return the patterns of the turns and then of the rewrite; None for an answer of the caller or no rewrite."""
        parser = Parser(self.where)
        turns = [None if turn == ANSWER else parser.parse(turn) for turn in self.turns]
        return (*turns, None if self.rewrite is None else parser.parse(self.rewrite))


def read_templates(folder: Path) -> list[Template]:
    """Return the templates of a folder's files, checked against the word lists of its language."""
    words = read_words(folder.parent.parent / "words" / f"{folder.name}.txt")
    paths = sorted(folder.glob("*.txt"))
    shared = _read_shared(paths)
    templates = [template for path in paths for template in _read_file(path, shared)]
    for template in templates:
        _check(template, words)
    return templates


def _read_shared(paths: list[Path]) -> dict[str, str]:
    """Return the shared choices by name, as texts that a template can hold."""
    texts: dict[str, list[str]] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            if match := _SHARED.fullmatch(line.strip()):
                texts.setdefault(match["name"], []).append(match["text"])
    return {name: f"({'|'.join(lines)})" if len(lines) > 1 else lines[0] for name, lines in texts.items()}


def _read_file(path: Path, shared: Mapping[str, str]) -> list[Template]:
    templates: list[Template] = []
    kind, block, start = "", list[str](), 0
    lines = [*path.read_text(encoding="utf-8").splitlines(), ""]
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if line.startswith(("##", "@")):
            continue
        if line.startswith("#"):
            kind = line[1:].strip()
            if kind not in KINDS:
                raise DataError(f"{path.name}:{number}: expected a kind ({', '.join(KINDS)}), found {kind!r}")
        elif line:
            start = start if block else number
            block.append(line)
        elif block:
            where = f"{path.name}:{start}"
            template_lines = [_expand(line, shared, where) for line in _join_pairs(block, where)]
            templates.append(_read_block(template_lines, kind, where))
            block = []
    return templates


def _expand(line: str, shared: Mapping[str, str], where: str) -> str:
    """Return the line with the shared choices in place of their names, those inside shared choices too."""
    while match := _USE.search(line):
        if match["name"] not in shared:
            raise DataError(f"{where}: expected a shared choice, found <{match['name']}>; add @{match['name']}: lines")
        line = line[: match.start()] + shared[match["name"]] + line[match.end() :]
    return line


def _join_pairs(block: list[str], where: str) -> list[str]:
    """Return the lines of a block with its pairs, if there are any, as one turn and one rewrite of parallel choices."""
    first = next((k for k, line in enumerate(block) if line.startswith(("- ", "+ "))), None)
    if first is None:
        return block
    last = block[-1] if block[-1] == "=" else None
    pairs = [_PAIR.fullmatch(line) for line in block[first : -1 if last else None]]
    utterances, rewrites = [], []
    for pair in pairs:
        if pair is None or (pair["rewrite"] is None) != (last is not None):
            raise DataError(f"{where}: expected '- utterance => rewrite' lines, or '- utterance' lines and '='")
        lead = "<lead>" if pair["mark"] == "+" else ""
        utterances.append(lead + pair["utterance"])
        rewrites.append(lead + (pair["rewrite"] or ""))
    turn, rewrite = (f"({'|'.join(texts)})" for texts in (utterances, rewrites))
    return [*block[:first], f"U: ({_PAIRS}={turn[1:]}", last or f"> ({_PAIRS}:{rewrite[1:]}"]


def _read_block(block: list[str], kind: str, where: str) -> Template:
    if not kind:
        raise DataError(f"{where}: expected '# kind' before the first template; kinds are {', '.join(KINDS)}")
    *lines, last = block
    turns = [_TURN.fullmatch(line) for line in lines]
    bad = next((line for line, turn in zip(lines, turns, strict=True) if turn is None), None)
    if bad is not None:
        raise DataError(f"{where}: expected 'U: text' or 'A: text', found {bad!r}")
    if last != "=" and not last.startswith(">"):
        raise DataError(f"{where}: expected '> rewrite' or '=' as the last line of the template, found {last!r}")
    if len(turns) < 2:
        raise DataError(f"{where}: expected at least one turn before the utterance, found none; add a U: or A: line")
    texts = tuple(turn["text"] for turn in turns if turn)
    speakers = "".join(turn["speaker"] for turn in turns if turn)
    return Template(kind, texts, None if last == "=" else last[1:].strip(), speakers, where)


def _check(template: Template, words: Mapping[str, WordList]) -> None:
    """Refuse slots that no list fills; the patterns check the choices when they are parsed."""
    keys: dict[str, set[str]] = {}
    *turns, rewrite = template.patterns()
    for pattern in (*turns, rewrite):
        for slot in slots_of(pattern or ()):
            if slot.list_name not in words:
                raise DataError(
                    f"{template.where}: expected a word list, found the slot {{{slot.list_name}}}; add the list"
                )
            if not words[slot.list_name].has(slot.attribute):
                found = f"{{{slot.key}.{slot.attribute}}}"
                raise DataError(f"{template.where}: expected an attribute of [{slot.list_name}], found {found}")
            keys.setdefault(slot.list_name, set()).add(slot.key)
    for name, used in keys.items():
        if len(used) > len(words[name].entries):
            raise DataError(
                f"{template.where}: expected {len(used)} entries in [{name}], found {len(words[name].entries)}"
            )
    answered = ANSWER in template.turns
    if answered != (template.kind == "answered-question") or (answered and template.turns.index(ANSWER) == 0):
        raise DataError(
            f"{template.where}: expected 'A: {ANSWER}' after a question in templates of kind answered-question and in "
            f"no others, found {template.kind}"
        )
