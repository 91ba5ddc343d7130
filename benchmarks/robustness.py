"""How a model bears differences that should not matter, kind by kind.

A kind changes the dialogues whose utterance the model rewrites, and says what the rewrite should then be: unrelated
turns in front change nothing, polite words stand in the rewrite too, a thing that gets another name has it there too.
The share of the rewrites that are as they should be, capitals aside, is what counts. What `teo rewrite` gives is
measured.

    python benchmarks/robustness.py --data rewrite --path data/rewrite [--model MODEL] [--out FILE]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from teo import Dialogue
from teo.data import load_rows
from teo.data.row import Row
from teo.files import write_json
from teo.provenance import git_commit, versions
from teo.rewriter import Rewriter
from teo.units import holds_cjk, is_exact_match
from teo_lab.rows.choices import language_of
from teo_lab.rows.traditional import open_converters
from teo_lab.rows.typos import drop_capitals, drop_final_marks, mistype
from teo_lab.rows.variations import (
    Vary,
    add_polite_words,
    change_texts,
    change_typing,
    copied_name,
    rename,
)

_converters = cache(open_converters)
_MARKS = frozenset("!?！？")
NAMES = {True: "阿尔法", False: "Zorvania"}
"""Names that no dialogue has, for a Chinese and for an English dialogue."""
GREETINGS = {
    True: (
        "您好，仁和口腔诊所，请问您是想预约还是咨询？",
        "尊敬的客户您好，查话费请回复1，办套餐请回复2，转人工请回复0。",
        "你好！我是人工智能助手，可以帮你写作、翻译、解答问题。",
        "你终于来啦，我等你好久了！",
        "您好，IT服务台，请问电脑出什么问题了？",
        "亲亲，欢迎光临小鹿家居旗舰店，全场满200减30哦！",
        "抱歉让您久等了，我是客服小林，请问订单号是多少？",
        "我在听，请讲。",
        "早上好！要听听今天的天气和新闻吗？",
        "您好，请问您是要寄快递还是查快递呢？",
        "Hi，我是小满，你的英语陪练，我们开始吧？",
        "您好，这里是川味小馆，请问是堂食还是外卖？",
    ),
    False: (
        "I'm listening.",
        "Good evening. Before we start, could I have your customer number, please?",
        "Hey you! I was just thinking about you. How did you sleep?",
        "Hi there! You're chatting with Sofia from Customer Care. How's it going today?",
        "Hello! I'm an AI assistant. I can write, explain, translate, or just chat.",
        "Yes? What can I do for you?",
        "Greetings, traveler! Where would you like to go next?",
        "Hi! Please choose: 1) Billing 2) Technical support 3) Talk to an agent",
        "Welcome back! Shall we pick up where we left off?",
        "Sorry for the wait, my name is Dev. I see you have a question about your bill?",
        "Howdy! Ready to practice some Spanish?",
        "Hello, I'm GridBot. Do you want to report a power outage or check your meter reading?",
    ),
}
"""What an assistant may begin with, in Chinese and in English."""


def make_kinds(rows: Sequence[Row]) -> dict[str, Vary]:
    """Return every kind of difference by its name; the rows lend unrelated turns.

    A kind takes a row with the model's own rewrite, and gives it the rewrite that it should get with the difference.
    """
    utterances = [row.dialogue.utterance for row in rows]
    numbers = {row.id: number for number, row in enumerate(rows)}

    def prepend(row: Row, count: int) -> Row:
        """Return a row with the utterances of those before it in front; one turn gives it to the other speaker."""
        turns = [utterances[numbers[row.id] - back] for back in range(count, 0, -1)]
        return replace(row, dialogue=Dialogue((*turns, *row.dialogue.history), row.dialogue.utterance))

    return {
        "one unrelated turn in front": lambda row, rng: prepend(row, 1),
        "two unrelated turns in front": lambda row, rng: prepend(row, 2),
        "a greeting in front": _greet,
        "another name for a thing": lambda row, rng: _rename(row),
        "polite words": add_polite_words,
        "no final marks": lambda row, rng: change_typing(row, drop_final_marks),
        "no capitals (English)": lambda row, rng: (
            None if holds_cjk(row.rewrite) else change_typing(row, lambda typed: drop_capitals(typed, rng))
        ),
        "capitals throughout (English)": lambda row, rng: (
            None if holds_cjk(row.rewrite) else _change_utterance(row, row.dialogue.utterance.upper())
        ),
        "emoji and repeated marks": lambda row, rng: _decorate(row),
        "odd spaces": lambda row, rng: change_texts(row, lambda text: "\u3000" + text.replace(" ", "  ") + "\n"),
        "typing errors": lambda row, rng: change_typing(
            row, lambda typed: mistype(typed, language_of(row.rewrite), rng)
        ),
        "Traditional characters (Chinese)": _convert,
    }


def measure(rewriter: Rewriter, rows: Sequence[Row]) -> dict[str, Any]:
    """Return for every kind how many changed rewrites it applies to, and how many of these are as they should be."""
    before = rewriter.rewrite_many([row.dialogue for row in rows])
    changed = [replace(row, rewrite=record.rewrite) for row, record in zip(rows, before, strict=True) if record.changed]
    counts: dict[str, dict[str, int]] = {}
    for kind, vary in make_kinds(rows).items():
        made = [(row, vary(row, random.Random(f"{kind}/{row.id}"))) for row in changed]
        varied = [new for row, new in made if new is not None and new.dialogue != row.dialogue]
        after = rewriter.rewrite_many([row.dialogue for row in varied])
        kept = sum(is_exact_match(record.rewrite, row.rewrite) for row, record in zip(varied, after, strict=True))
        counts[kind] = {"rows": len(varied), "as_it_should_be": kept}
    return {"rows": len(rows), "changed": len(changed), "kinds": counts}


def show(measured: Mapping[str, Any]) -> str:
    """Return the shares as lines of text."""
    lines = [f"{measured['changed']} of {measured['rows']} utterances changed"]
    for kind, counts in measured["kinds"].items():
        if counts["rows"]:
            lines.append(f"  {kind:34}{100 * counts['as_it_should_be'] / counts['rows']:5.1f}% of {counts['rows']}")
    return "\n".join(lines)


def _greet(row: Row, rng: random.Random) -> Row:
    """Return a row that begins with an assistant's greeting; the two take turns."""
    history = (rng.choice(GREETINGS[holds_cjk(row.rewrite)]), *row.dialogue.history)
    speakers = ("user", *(("assistant", "user") * len(history)))[-len(history) - 1 :]
    return replace(row, dialogue=Dialogue(history, row.dialogue.utterance, speakers))


def _rename(row: Row) -> Row | None:
    """Return a row in which the longest that the rewrite took from the history, a name or so, is called otherwise."""
    name = copied_name(row)
    return None if name is None else rename(row, name, NAMES[holds_cjk(name)])


def _change_utterance(row: Row, utterance: str) -> Row:
    return replace(row, dialogue=replace(row.dialogue, utterance=utterance))


def _decorate(row: Row) -> Row | None:
    """Return a row whose last mark comes three times, with a picture behind it; None if the rewrite ends otherwise."""
    utterance, rewrite = row.dialogue.utterance, row.rewrite
    mark, other = (text[-1:] if text[-1:] in _MARKS else "" for text in (utterance, rewrite))
    if mark != other:
        return None
    return replace(_change_utterance(row, f"{utterance}{2 * mark} 😊"), rewrite=f"{rewrite}{2 * mark} 😊")


def _convert(row: Row, rng: random.Random) -> Row | None:
    """Return a Chinese row in Traditional characters."""
    return change_texts(row, _converters()(rng)) if holds_cjk(row.rewrite) else None


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the shares, and store the counts if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model folder; the embedded model without it")
    parser.add_argument("--data", required=True, help="dataset name")
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--out", type=Path, help="a JSON file for the counts")
    options = parser.parse_args(arguments)
    rewriter = Rewriter.from_pretrained(options.model)
    measured = measure(rewriter, load_rows(options.data, options.path, options.split).rows[: options.limit])
    print(show(measured))
    if options.out is not None:
        described = {"model": rewriter.name, "variant": rewriter.variant, "threshold": rewriter.threshold}
        source = {"data": options.data, "split": options.split}
        record = {"versions": versions(["numpy", "onnxruntime"]), "commit": git_commit()}
        write_json(options.out, {**described, **source, **measured, **record})


if __name__ == "__main__":
    main()
