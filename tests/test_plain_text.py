"""What an assistant wrote, as plain text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teo.dialogue import Dialogue
from teo.plain_text import read_history, read_plain

MARKED = [
    ("Sure! **Dune** was written by **Frank Herbert** (1920–1986).", None, "bold"),
    ("**周杰伦**唱的。", "周杰伦唱的。", "bold beside Chinese"),
    ("**“青花瓷”。**他", "“青花瓷”。他", "bold that ends with a mark of Chinese punctuation"),
    ("3999**元**，**周杰伦**2000年", "3999元，周杰伦2000年", "bold between digits and Chinese"),
    ("*a*, _b_, ***c***, __Two words__", "a, b, c, Two words", "italic, both, underscores"),
    ("**L**arge **L**anguage **M**odel", "Large Language Model", "the first letters of words"),
    ("~~old~~ new", "old new", "struck text stays"),
    ("~~旧~~新", "旧新", "struck text before a Chinese word"),
    ("原价~~3999元~~现价2999元", "原价3999元现价2999元", "a struck price between words"),
    ("原价~~3999元~~，现价", "原价3999元，现价", "a struck price before a comma"),
    ("# Title #\n## C#\n##标题", "Title\nC#\n标题", "headings, and a name that ends with their mark"),
    ("- a\n* b\n  + c\n• d\n•甲", "a\nb\nc\nd\n甲", "bullets"),
    ("1. a\n   - b **c**\n     1. `d`\n2. e", "1. a\nb c\n     1. d\n2. e", "lists in lists"),
    ("### 1. **小米14**\n- **价格**：3999元", "1. 小米14\n价格：3999元", "how assistants list things in Chinese"),
    ("> [!NOTE]\n> a", "a", "a box"),
    ("- [ ] a\n- [x] b", "a\nb", "boxes to tick"),
    ("1. **a**\n2) *b*", "1. a\n2) b", "numbers of a list stay"),
    ("> a\n>> b\n> - c", "a\nb\nc", "quotes"),
    ("a\n\n---\nb\n===\nc", "a\n\nb\nc", "rules and underlined headings"),
    ("| a | b |\n|---|:-:|\n| 1 | **2** |\nend", "a, b\n1, 2\nend", "the cells of a table in order"),
    ("|型号|价格|\n|--|--|\n|甲|3999|", "型号，价格\n甲，3999", "likewise in Chinese"),
    ("| n | m |\n|--|--|\n| a | 1 |\n| b | 2 |", "a, 1\nb, 2", "the head would pass for the first of several"),
    ("| | x |\n|--|--|\n| a | 1 |\n| b | 2 |", "x\na, 1\nb, 2", "a head of things, not of names"),
    ("| a | b |\n| c | d |", "a, b\nc, d", "rows without a head"),
    (r"| a \| b | c |" + "\n|--|--|", "a | b, c", "an escaped bar in a cell"),
    ("the [Pixel 8a](https://a.b/pixel_8a).", "the Pixel 8a.", "a link"),
    ("[谷歌](<a b> 'title')很好", "谷歌很好", "a link with a title, glued to a word"),
    ("![cat](a.png) [![b](c)](d)", "cat b", "images, also as links"),
    ("**[x](y)** and [`z`](w)", "x and z", "marks in marks"),
    ("Dune[1](https://a.b) [[2]](https://c.d/(e))", "Dune[1] [2]", "a number that is a link"),
    ("[a][1] and [b][] [1]\n\n[1]: https://x.y 'T'\n[b]: /z", "a and b [1]", "links to definitions"),
    ("x[^1], y[^n]\n\n[^1]: One.\n[^n]: Two.", "x, y\n\nOne.\nTwo.", "footnotes"),
    ("巴黎【4:0†source】。", "巴黎。", "the citations of assistants"),
    ("<https://a.b/_c_> <me@a.b>", "https://a.b/_c_ me@a.b", "addresses in angle brackets"),
    ("Use `ls -l` or ``a`b``.", "Use ls -l or a`b.", "code"),
    ("Use `pandas", "Use pandas", "code of an answer that was cut off"),
    ("- `a`\n- `--help me\n\nor `b`", "a\n--help me\n\nor b", "likewise, in its paragraph"),
    ("使用`pandas", "使用pandas", "likewise after Chinese"),
    ("The author is **Frank Her", "The author is Frank Her", "bold of an answer that was cut off"),
    ("1. **Price: 3999\n\n**Dune** and **法", "1. Price: 3999\n\nDune and 法", "likewise, in its paragraph"),
    ("作者是**刘慈", "作者是刘慈", "likewise after Chinese"),
    ("```python\nprint(1)\n```\nend", "print(1)\nend", "a code fence"),
    ("~~~\nx\n~~~", "x", "the other code fence"),
    ("the `<div>` tag, `__init__`, `**kwargs`", "the div tag, __init__, **kwargs", "code that looks like marks"),
    ('<b>a</b> <a href="x y">b</a><br/>c', "a b\nc", "tags"),
    ("<p>a</p>\n<ul>\n<li>b</li>\n<li>c</li>\n</ul>", "a\nb\nc", "tags of blocks"),
    ("<tr><td>a</td><td>b</td></tr>", "a  b", "cells of HTML"),
    ("<img src='x' alt='cat'> <!-- note -->", "cat", "an image and a comment"),
    ("<answer>42</answer>", "42", "a tag of any name that is closed"),
    ("<think>hm, <b>\n</think>\nParis", "Paris", "what a model thought"),
    ("AT&amp;T &lt;b&gt;x&lt;/b&gt; &#39;&#x4e00;&#39;&nbsp;z &amp;lt;3", "AT&T x '一' z <3", "entities"),
    (r"C:\*a\* \*b\*", r"C:\*a\* b", "a path of Windows is no escape"),
    (r"\*a\* \_b\_ \[1\]" + "\n" + r"1\. c", "a b [1]\n1. c", "escapes"),
    ("a\u200bb\ufeff\u2060c\u00ad \u200dx", "abc x", "characters without width"),
    ("Great :smile: and :+1:!", "Great and!", "emoji shortcodes"),
]
UNMARKED = [
    *(
        "2 * 3 * 4",
        "2*3*4",
        "a*b*c",
        "x**2 + y**2",
        "f(x)**2 and g(x)**2",
        "def f(*args, **kwargs)",
        "*args",
        "**kwargs",
        "pass **kwargs on",
        "f(a, **rest)",
        "{**left, **right}",
        "int main(int argc, char **argv)",
        "char **argv",
        "2 **3",
        "x **y",
        "5 * 6 = 30 * 1",
        "f(a, b) * g(c)",
        "(a)*(b)*(c)",
        "a*(b)*(c)",
        "/*comment*/",
        "M*A*S*H",
        "rated 5*",
    ),
    *(
        "a_b_c",
        "snake_case",
        "__init__",
        "__init__.py",
        "$x_1$ and $x_2$",
        "foo_bar_",
        "用户_名_称",
        "@a_b_c",
        "me_too@a_b.org",
        "1_000_000",
    ),
    *(
        "C#",
        "#1",
        "#tag",
        "#话题# 你好",
        "# of guests: 4",
        "<3",
        "5 < 6 > 4",
        "if a<b and c>d",
        "i<j",
        ">3",
        "x < y and y > z",
        "a<b>c",
        "1<i>2",
    ),
    *(
        "List<String>",
        "Map<K, V>",
        "git push <remote> <branch>",
        "<your name>",
        "std::map<int, T>",
        "#include <stdio.h>",
        "~/.bashrc",
        "~5",
        "~30~",
        "好~~谢谢~~",
        "好的~~谢谢~~再见",
    ),
    *(
        "[1]",
        "see [1][2]",
        "arr[i](x)",
        "regex [^abc]",
        "[Note]: see below",
        "[Alice]: /help",
        "[ ]",
        "a|b",
        "|x| + |y|",
    ),
    *("(*^_^*)", "T_T", "*_*", ">_<", r"¯\_(ツ)_/¯", "f**k", "***", "---", "~~~~", ":-) :D", "10:30:45", "a::b::c"),
    *(
        "AT&T",
        "&copy",
        "R&D;",
        "&nosuch;",
        "-5",
        "+1",
        "a - b",
        "5* hotel, 4* hotel",
        "COUNT(*), SUM(*)",
        "SELECT * FROM t",
    ),
    *(
        "*.py and *.txt",
        "**/*.py",
        ".*a.*",
        r"C:\temp\new",
        r"C:\Users\joe_smith\*.txt",
        r"\\server\a_b\c",
        r"\d+\.\d*",
        "it`s a dog`s life",
        "``quoted''",
        "`quoted' text",
        "it`s",
        "in the `90s",
        "(`ω´)",
        "(`-´)",
        "`",
    ),
    *(
        "http://a.b/c_d_e?x=1&y=2",
        "https://a.b/_x_/*y*",
        "https://x.org/a_(b)_c",
        "me@a.b",
        "1. one\n2. two",
        "1) a",
        "a\n\n\nb  c\t",
    ),
    *(r"\(a_1 + b_2\)", r"$$\sum_{i=1}^{n} x_i$$", r"\frac{1}{2} * x_{i}", "cat x | grep y | wc", "a -> b => c"),
    *("《沙丘》（小说）【注意】“是”——吗？！……", "👨\u200d👩\u200d👧", "می\u200cخواهم", "", " ", "\n"),
]
WRITING = st.text(st.sampled_from("*_`~#[]()<>!|&;:\\-+=^ \n\tab1中。/\"'\u200b") | st.characters(), max_size=60)
PIECES = st.lists(st.sampled_from([text for text, _, _ in MARKED] + UNMARKED) | WRITING, max_size=4).map("".join)


@pytest.mark.parametrize(("text", "expected", "reason"), MARKED)
def test_marks_go_and_what_they_mark_stays(text: str, expected: str | None, reason: str) -> None:
    assert read_plain(text) == (text.replace("**", "") if expected is None else expected), reason


@pytest.mark.parametrize("text", UNMARKED)
def test_text_without_marks_is_as_it_was(text: str) -> None:
    assert read_plain(text) == text


@given(PIECES)
@settings(max_examples=400)
def test_plain_text_is_read_as_it_is(text: str) -> None:
    once = read_plain(text)
    assert read_plain(once) == once


@given(st.text(st.characters(exclude_characters="*_`#[]<>&|~\\†-+•‣◦▪=:", exclude_categories=["Cf"])))
def test_text_without_any_character_of_a_mark_is_as_it_was(text: str) -> None:
    assert read_plain(text) == text


@given(st.lists(st.text(st.characters(categories=["Lu", "Ll", "Lo"]), min_size=1), min_size=1, max_size=5))
def test_words_are_never_lost(words: list[str]) -> None:
    marked = "\n".join(f"- **{word}** is [{word}](https://a.b/{number}), `{word}`" for number, word in enumerate(words))
    assert read_plain(marked) == "\n".join(f"{word} is {word}, {word}" for word in words)


NESTED = [
    *("*", "**a ", "*a* **", "a*b_", "_a ", "~~a", "[", "](", "[a](", "![", "](a '", "[^1]", "【1†"),
    *("<b", "<a b='", "<b a=<", "<!--", "<think>", "&", "&amp;", "`", "`" * 3 + "\n", "\\*", ":a"),
    *("> ", "- ", "#", "|", "| a |\n", " ", "\n", "\t\n"),
]


@pytest.mark.parametrize("piece", NESTED, ids=repr)
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    seconds = []
    for size in (20_000, 160_000):
        text = piece * (size // len(piece))
        runs = []
        for _ in range(3):
            started = time.process_time()
            read = read_plain(text)
            runs.append(time.process_time() - started)
        seconds.append(min(runs))
        assert read_plain(read) == read
    assert seconds[1] < 24 * max(seconds[0], 0.002), "eight times the text took more than 24 times as long"


def test_only_the_history_is_read_as_plain_text() -> None:
    dialogue = Dialogue(
        ("Who wrote **Dune**?", "`Frank Herbert`"), "When was **he** born?", ("user", "assistant", "user")
    )
    plain = Dialogue(("Who wrote Dune?", "Frank Herbert"), "When was **he** born?", dialogue.speakers)
    assert read_history(dialogue) == plain
    assert read_history(plain) is plain


def test_words_after_a_line_break_get_a_space_before_them() -> None:
    dialogue = Dialogue(("Two:\r\n\r\n- Acer\r\n- Lenovo", "1. one\n2. two\nthree\n", "一\n二"), "Which\none?")
    read = ("Two:\n\n Acer\n Lenovo", "1. one\n2. two\n three\n", "一\n二")
    assert read_history(dialogue) == Dialogue(read, "Which\none?")
    assert read_history(read_history(dialogue)) == read_history(dialogue)


def test_a_turn_of_marks_alone_is_left_out() -> None:
    dialogue = Dialogue(("a", "![](x.png)", " ", "b"), "c", ("user", "assistant", "assistant", "user", "user"))
    assert read_history(dialogue) == Dialogue(("a", " ", "b"), "c", ("user", "assistant", "user", "user"))
    assert read_history(Dialogue(("![](x.png)",), "c")) == Dialogue((), "c")
