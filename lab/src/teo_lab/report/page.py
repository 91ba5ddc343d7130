"""The page itself: sections as Markdown, and as one file of HTML that loads nothing."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from teo_lab.report.section import FIGURES, Section

ASSETS = Path(__file__).parent / "page"
TITLE = "Incomplete utterance rewriting: what was measured"
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; form-action 'none'"
"""The browser itself refuses any request: all that the page needs is in it."""
_HTML = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p class="soft">{made}</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main>
{body}
</main>
<script>
{script}</script>
</body>
</html>
"""
_PICTURE = re.compile(rf'<img src="({FIGURES}/[\w.=-]+)"')


def format_markdown(sections: Sequence[Section], missing: Mapping[str, str], made: str) -> str:
    """Return the report as Markdown, with its pictures beside it."""
    parts = [f"# {TITLE}", made]
    for section in [*sections, *_name_missing(missing)]:
        parts += [f"## {section.title}", section.markdown]
    return "\n\n".join(parts) + "\n"


def format_html(sections: Sequence[Section], missing: Mapping[str, str], made: str, folder: Path) -> str:
    """Return the report as HTML, with the pictures of the folder in it."""
    renderer = _renderer()
    listed = [*sections, *_name_missing(missing)]
    links = "".join(f'<li><a href="#{section.name}">{html.escape(section.title)}</a></li>' for section in listed)
    parts = []
    for section in listed:
        content = renderer.render(section.markdown) if section.html is None else section.html
        content = _PICTURE.sub(lambda found: f'<img src="{_embed(folder / found[1])}"', content)
        parts.append(f'<section id="{section.name}">\n<h2>{html.escape(section.title)}</h2>\n{content}\n</section>')
    return _HTML.format(
        policy=_POLICY,
        title=html.escape(TITLE),
        style=(ASSETS / "style.css").read_text(encoding="utf-8"),
        made=html.escape(made),
        links=links,
        body="\n".join(parts),
        script=(ASSETS / "report.js").read_text(encoding="utf-8"),
    )


def _name_missing(missing: Mapping[str, str]) -> list[Section]:
    if not missing:
        return []
    lines = "\n".join(f"- {part}: {reason}." for part, reason in missing.items())
    return [Section("missing", "What is not in this report?", lines)]


def _renderer() -> Any:
    """Return what makes HTML of Markdown; markup in the text is shown, not obeyed."""
    from markdown_it import MarkdownIt

    renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
    renderer.add_render_rule("table_open", lambda *_: '<div class="wide" tabindex="0"><table>\n')
    renderer.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return renderer


def _embed(picture: Path) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.read_bytes()).decode()}"
