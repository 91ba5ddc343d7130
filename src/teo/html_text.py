"""HTML in what an assistant wrote: entities as their characters, and text without tags and comments.

The tags of HTML go, and those of any other name that is opened and closed. `<3`, `a<b>c`, `List<String>` and
`<your name>` stay. Every step takes time in proportion to the text.
"""

from __future__ import annotations

import re

_ENTITY = re.compile(r"&(?:amp;)*(#(?:[xX][0-9a-fA-F]{1,6}|[0-9]{1,7})|[A-Za-z][A-Za-z0-9]{1,31});")
# No value may hold "<": no two attempts to match a tag read the same text.
_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>[A-Za-z][\w.-]*)"
    r"(?P<attributes>(?:\s+(?:[\w:@.-]+\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'|[^\s\"'=<>`]+)|open|checked|controls|disabled))*)"
    r"\s*/?>"
)
_AUTOLINK = re.compile(r"<((?:[a-zA-Z][a-zA-Z0-9+.-]{1,20}://|mailto:)[^\s<>]+|[\w.+-]+@[\w.-]+)>")
_ALT = re.compile(r"\salt\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_BLOCK = re.compile(
    "address|article|aside|blockquote|body|br|center|dd|details|div|dl|dt|figcaption|figure|footer|h[1-6]|head|header|"
    "hr|html|li|nav|ol|p|pre|section|summary|table|tbody|tfoot|thead|tr|ul"
)
_INLINE = re.compile(
    "a|abbr|b|bdi|bdo|big|cite|code|del|dfn|em|font|i|img|ins|kbd|mark|q|rp|rt|ruby|s|samp|small|span|strike|strong|"
    "sub|sup|tt|u|wbr"
)
_COMPARISON = re.compile(r"[A-Za-z0-9]<[a-z]>[A-Za-z0-9]", re.ASCII)
"""What has the form of a tag and is none unless it is closed: `a<b>c`."""
_BLANK_LINES = re.compile(r"\n[ \t\n]*\n")


def read_html(text: str) -> str:
    """Return a text without entities, tags and comments; addresses in angle brackets lose these."""
    if "&" in text:
        text = _ENTITY.sub(_read_entity, text)
    if "<" not in text:
        return text
    if text.lstrip().startswith("<think>") and "</think>" in text:  # what a model thought is not what it said
        text = text.partition("</think>")[2]
    return _AUTOLINK.sub(r"\1", _read_tags(_drop_comments(text)))


def _read_entity(entity: re.Match[str]) -> str:
    from html import unescape
    from html.entities import html5

    name = f"&{entity[1]};"
    character = unescape(name) if name[1] == "#" else html5.get(name[1:], name)
    return character.replace("\xa0", " ")


def _drop_comments(text: str) -> str:
    parts, position = [], 0
    while (start := text.find("<!--", position)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts.append(text[position:start])
        position = end + 3
    return "".join([*parts, text[position:]])


def _read_tags(text: str) -> str:
    """Return a text without the tags of HTML, and of any other name that is opened and closed."""
    closed = {tag["name"] for tag in _TAG.finditer(text) if tag["end"]}
    blocks = False

    def read(tag: re.Match[str]) -> str:
        nonlocal blocks
        name = tag["name"] if len(tag["name"]) == 1 and not tag["attributes"] else tag["name"].lower()
        if _COMPARISON.match(text, max(tag.start() - 1, 0)) and tag["name"] not in closed:
            return tag[0]
        if _BLOCK.fullmatch(name):
            blocks = True
            return "\n"
        if name in ("td", "th"):
            return " "
        if name == "img" and (alt := _ALT.search(tag["attributes"])):
            return alt[1] or alt[2] or ""
        return "" if _INLINE.fullmatch(name) or tag["end"] or tag["name"] in closed else tag[0]

    text = _TAG.sub(read, text)
    return _BLANK_LINES.sub("\n", text) if blocks else text
