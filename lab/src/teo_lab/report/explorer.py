"""Sections on single rows: cases with their edits in colour, and the explorer of predictions."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable

from teo.evaluation.markdown import plain
from teo.metrics.breakdown import KINDS
from teo_lab.report.predictions import Change, PredictedSystem, ShownRow, split_changes
from teo_lab.report.section import MissingPartError, ReportSource, Section

CASES = 2
"""Rows of each outcome that a system's cases show."""
_OUTCOMES: tuple[tuple[str, bool | None, bool], ...] = (
    ("Operations and rewrite right", True, True),
    ("Operations right, rewrite wrong", True, False),
    ("Operations wrong, rewrite right", False, True),
    ("Operations and rewrite wrong", False, False),
    ("Rewrite right", None, True),
    ("Rewrite wrong", None, False),
)
"""Title, operations and rewrite; None if the operations are not known."""
_MARKS: dict[Change, tuple[str, str]] = {"keep": ("", ""), "gone": ("[-", "-]"), "new": ("{+", "+}")}
_TAGS: dict[Change, tuple[str, str]] = {"keep": ("", ""), "gone": ("<del>", "</del>"), "new": ("<ins>", "</ins>")}
_KINDS = {kind: kind.replace("_", " ").replace("complete", "nothing (complete)") for kind in KINDS}
_FILTERS = """\
<form id="filters" aria-label="Filters">
<label>PredictedSystem <select id="system"></select></label>
<label>Rewrite <select id="right"><option value="">any</option><option value="true">right</option>\
<option value="false">wrong</option></select></label>
<label>Operations <select id="stage1"><option value="">any</option><option value="true">right</option>\
<option value="false">wrong</option></select></label>
<label>Needs <select id="kind"><option value="">any</option>{kinds}</select></label>
<label>Length <span><input id="shortest" type="number" min="0" placeholder="from" aria-label="shortest"> \
<input id="longest" type="number" min="0" placeholder="to" aria-label="longest"></span></label>
<label>Confidence <span><input id="least" type="number" min="0" max="1" step="0.05" placeholder="from" \
aria-label="least confidence"> <input id="most" type="number" min="0" max="1" step="0.05" placeholder="to" \
aria-label="most confidence"></span></label>
<label>Text or id <input id="words" type="search"></label>
<button type="reset">Clear</button>
</form>
<p id="count" role="status"></p>
<div id="rows"></div>
<button id="more" type="button" hidden>Show more</button>
<script type="application/json" id="predictions">{rows}</script>"""


def show_cases(source: ReportSource) -> Section:
    """Return a few rows of each outcome, with what was taken out and put in."""
    systems = [system for system in source.systems if any(row.prediction for row in system.rows)]
    if not systems:
        raise MissingPartError("case studies need text; give --predictions FILE or --data DIR")
    lines, tags = [], []
    for system in systems:
        lines.append(f"### {plain(system.name)}")
        tags.append(f"<h3>{html.escape(system.name)}</h3>")
        for title, rows in _outcomes(system):
            lines += [f"**{title}**", *map(_case_lines, rows)]
            tags += [f"<h4>{title}</h4>", *map(_case_html, rows)]
    text = "The first rows of each outcome. In the rewrite, {} was taken out and {} was put in."
    shown = text.format("\\[-this-\\]", "\\{+this+\\}")
    coloured = text.format("<del>this</del>", "<ins>this</ins>")
    return Section(
        "cases",
        "What do its rewrites look like?",
        "\n\n".join([shown, *lines]),
        "\n".join([f"<p>{coloured}</p>", *tags]),
    )


def _outcomes(system: PredictedSystem) -> Iterable[tuple[str, list[ShownRow]]]:
    for title, stage1, right in _OUTCOMES:
        rows = [row for row in system.rows if (row.stage1_right, row.right) == (stage1, right) and row.prediction]
        if rows:
            yield title, rows[:CASES]


def _case_lines(row: ShownRow) -> str:
    runs = split_changes(row.utterance, row.prediction or "")
    marked = "".join(plain_run(change, text) for change, text in runs)
    shown = {"rewrite": marked, "reference": plain(row.reference or ""), "operations": plain(row.operations or "")}
    turns = [f"> {plain(turn)}  " for turn in (*row.history, row.utterance)]
    return "\n".join([*turns, "", *(f"- {name}: {text}" for name, text in shown.items() if text)])


def plain_run(change: Change, text: str) -> str:
    """Return a run of a rewrite in Markdown, with marks around what is new or gone and spaces outside them."""
    opening, closing = (plain(mark) for mark in _MARKS[change])
    inner = plain(text)
    before, after = (" " if text[:1].isspace() else ""), (" " if text[-1:].isspace() else "")
    return f"{before}{opening}{inner}{closing}{after}" if inner else " "


def _case_html(row: ShownRow) -> str:
    runs = split_changes(row.utterance, row.prediction or "")
    turns = "".join(f"<li>{html.escape(turn)}</li>" for turn in (*row.history, row.utterance))
    marked = "".join(_TAGS[change][0] + html.escape(text) + _TAGS[change][1] for change, text in runs)
    shown = {
        "rewrite": marked,
        "reference": html.escape(row.reference or ""),
        "operations": html.escape(row.operations or ""),
    }
    told = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in shown.items() if text)
    return f'<article class="case"><ol>{turns}</ol><dl>{told}</dl></article>'


def show_explorer(source: ReportSource) -> Section:
    """Return the explorer: every predicted row, to be filtered in the browser."""
    if not source.systems:
        raise MissingPartError("no predicted rows are stored; give --predictions FILE")
    readable = any(system.has_text for system in source.systems)
    count = sum(len(system.rows) for system in source.systems)
    text = f"{count:,} rows of {len(source.systems)} evaluations."
    if not readable:
        text += " Stored results have no text: give --predictions or --data to read the rows."
    elif not source.own_predictions:
        text += " Stored results have no rewrites: a wrong one that was changed is not shown; give --predictions."
    about = "Confidence is the model's probability of its own output, not calibrated. Length is in words or characters."
    kinds = "".join(f'<option value="{kind}">{title}</option>' for kind, title in _KINDS.items())
    data = [{"name": system.name, "rows": [row.to_dict() for row in system.rows]} for system in source.systems]
    # "<" cannot end the script's element when it is written as JSON's own escape.
    rows = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    listed = "\n".join(f"- {plain(system.name)}: {_right(system)}" for system in source.systems)
    return Section(
        "explorer",
        "Which rows are right, and which wrong?",
        f"{text} The HTML page filters them by outcome, kind, length and confidence.\n\n{listed}",
        f"<p>{html.escape(text)} {about}</p>\n{_FILTERS.format(kinds=kinds, rows=rows)}",
    )


def _right(system: PredictedSystem) -> str:
    right = sum(row.right for row in system.rows)
    return f"{right:,} of {len(system.rows):,} right"
