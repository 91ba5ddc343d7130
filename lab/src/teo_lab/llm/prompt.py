"""The prompts, and the rewrite in what a language model answers.

- `shots`: the task, five examples, the dialogue, as the paper gives them to GPT-4 (its appendix on prompts), in words
  of our own.
- `langchain`: what LangChain asks before it searches, taken from the installed package (`langchain-classic`).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from importlib import import_module

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import DataError, InputError

SHOTS, LANGCHAIN = "shots", "langchain"
PROMPTS = (SHOTS, LANGCHAIN)
_LANGCHAIN = "langchain_classic.chains.conversational_retrieval.prompts"
INSTRUCTION = """\
The last utterance of a dialogue may leave words out or point back to earlier turns with pronouns. Rewrite it so that \
it can be understood without the history: say what the pronouns stand for and put the missing words in, from the \
history. Change nothing else, do not answer the utterance, and keep its language. If it is complete already, repeat it \
as it is. Give the rewritten utterance alone, on one line."""
_UTTERANCE, _REWRITE = "Utterance", "Rewrite"

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^\s*```[\w-]*\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
_LABEL = re.compile(
    r"(?:^|(?<=[\s!.,*]))(?:(?:the|my|final|last|complete|completed|here(?:'s| is))\s+)*"
    r"(?:rewritten|rewrite|completed|output|answer|result)(?:\s+(?:utterance|sentence|question|version|text|line))?"
    r"(?:\s+(?:is|would be))?\s*\**\s*[:：]\s*\**"
    r"|^(?:stand-?alone question|follow[- ]up (?:question|input))\s*[:：]"  # labels of LangChain's prompt
    r"|(?:改写|重写|补全|输出|答案|结果)(?:后|之后)?(?:的)?(?:话语|句子|语句|对话|话|结果)?(?:是|为)?\s*[:：]",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:sure|certainly|of course|okay|ok|here(?:'s| is)\b.*|好的|当然)[^:：\n]{0,80}[!.:：。！，,]$", re.IGNORECASE
)
_NOTE = re.compile(r"\s*(?:\((?:note|explanation)\b.*\)|（(?:注|说明).*）)\s*$", re.IGNORECASE | re.DOTALL)
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "『": "』", "`": "`", "**": "**"}


def draw_demonstrations(rows: Sequence[Row], count: int, seed: int, avoid: Sequence[Row] = ()) -> list[Row]:
    """Return rows drawn by seed that are not among those to avoid."""
    hidden = {(row.dialogue.history, row.dialogue.utterance) for row in avoid}
    free = [row for row in rows if (row.dialogue.history, row.dialogue.utterance) not in hidden]
    if len(free) < count:
        raise DataError(
            f"demonstrations: expected {count} rows that are not evaluated, found {len(free)}; ask for fewer"
        )
    return random.Random(seed).sample(free, count)


def make_prompt(dialogue: Dialogue, demonstrations: Sequence[Row]) -> str:
    """Return the text that a model is asked with."""
    shown = [f"{_show(row.dialogue)} {row.rewrite}" for row in demonstrations]
    return "\n\n".join([INSTRUCTION, *shown, _show(dialogue)])


def make_langchain_prompt(dialogue: Dialogue) -> str:
    """Return the text that LangChain's retrieval chain asks a model with, in the form of its chat history.

    If nobody says who spoke, the turn before the utterance is the assistant's and the others alternate.
    """
    try:
        template = import_module(_LANGCHAIN).CONDENSE_QUESTION_PROMPT
        from langchain_core.messages import AIMessage, HumanMessage, get_buffer_string
    except ImportError as error:
        raise InputError(
            f"prompt: expected LangChain's package for '{LANGCHAIN}', found none; pip install langchain-classic"
        ) from error
    count = len(dialogue.history)
    speakers = dialogue.speakers or tuple("assistant" if (count - at) % 2 else "user" for at in range(count))
    messages = [
        AIMessage(turn) if speaker == "assistant" else HumanMessage(turn)
        for speaker, turn in zip(speakers[:count], dialogue.history, strict=True)
    ]
    history = "\n" + get_buffer_string(messages, human_prefix="Human", ai_prefix="Assistant")
    prompt: str = template.format(chat_history=history, question=dialogue.utterance)
    return prompt


def read_rewrite(text: str, utterance: str) -> str:
    """Return the rewrite in a model's answer, without the chatter around it; empty if there is none."""
    text = _THOUGHT.sub("", text).strip()
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    if (told := _from_json(text)) is not None:
        text = told
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    while len(lines) > 1 and _OPENING.match(lines[0]) and not _LABEL.search(lines[0]):
        del lines[0]
    for number, line in enumerate(lines):
        labels = [] if _LABEL.search(utterance) else list(_LABEL.finditer(line))
        if labels:
            rest = line[labels[-1].end() :].strip()
            lines = [rest] if rest else lines[number + 1 :]
            break
    return _unquote(_NOTE.sub("", lines[0]).strip(), utterance) if lines else ""


def _show(dialogue: Dialogue) -> str:
    turns = [f"- {' '.join(turn.split())}" for turn in dialogue.history]
    return "\n".join(["History:", *turns, f"{_UTTERANCE}: {' '.join(dialogue.utterance.split())}", f"{_REWRITE}:"])


def _from_json(text: str) -> str | None:
    """Return the only text, or that under a telling key, of an answer that is a JSON object."""
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    texts = {str(key).lower(): item for key, item in value.items() if isinstance(item, str)}
    told = [item for key, item in texts.items() if "rewr" in key] or list(texts.values())
    return told[0] if len(told) == 1 else None


def _unquote(text: str, utterance: str) -> str:
    """Return a text without the quotation marks around all of it, unless the utterance has them too."""
    for opening, closing in _QUOTES.items():
        inner = text[len(opening) : -len(closing)]
        if len(text) > len(opening + closing) and text.startswith(opening) and text.endswith(closing):
            return (
                text
                if utterance.strip().startswith(opening) or opening in inner
                else _unquote(inner.strip(), utterance)
            )
    return text
