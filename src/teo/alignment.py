"""derive_edits(current, target): longest common subsequence -> positioned edits (paper, section 3.3).

Several longest common subsequences may exist. Ours has the fewest edits (a person marks runs, not scattered
characters). Ties are broken the same way every time: the common prefix of both texts is matched first, then the common
suffix of what is left; between them, read from the left, a match comes before a skipped unit of `current`, and that
before a skipped unit of `target`. So an insertion that could slide along equal units is made after them.
"""

from __future__ import annotations

from collections.abc import Sequence

from teo.edits import Edit, EditScript, make_edit
from teo.units import Unit, split_units

Pair = tuple[int, int]

_EXACT_CELLS = 1_000_000
"""Largest table (units x units) that the fewest-edits search fills; above it any longest subsequence is taken."""
_COMPILED_CELLS = 10_000_000_000
"""Largest table for the compiled aligner; above it the differing middle is one replacement."""


def derive_edits(current: str, target: str) -> EditScript:
    """Return the edits that turn `current` into `target`, exactly, character for character."""
    if current == target:
        return EditScript()
    current_units, target_units = split_units(current), split_units(target)
    pairs = align([unit.text for unit in current_units], [unit.text for unit in target_units])
    edits: list[Edit] = []
    current_end = target_end = 0  # of the match before
    for i, j in pairs:
        old, new = current[current_end : current_units[i].start], target[target_end : target_units[j].start]
        edits += _edit_between(current_end, old, new)
        current_end, target_end = current_units[i].end, target_units[j].end
    edits += _edit_between(current_end, current[current_end:], target[target_end:])
    return EditScript(tuple(edits))


def align(a: Sequence[str], b: Sequence[str]) -> list[Pair]:
    """Return the index pairs of a longest common subsequence, chosen as the module says."""
    # A common prefix and suffix belong to some best alignment: matching them moves an edit or merges two, never adds.
    head, shorter = 0, min(len(a), len(b))
    while head < shorter and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < shorter - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    middle_a, middle_b = a[head : len(a) - tail], b[head : len(b) - tail]
    pairs = [(k, k) for k in range(head)]
    pairs += [(head + i, head + j) for i, j in _align_middle(middle_a, middle_b)]
    pairs += [(len(a) - k, len(b) - k) for k in range(tail, 0, -1)]
    return pairs


def _align_middle(a: Sequence[str], b: Sequence[str]) -> list[Pair]:
    cells = len(a) * len(b)
    if not cells or cells > _COMPILED_CELLS or set(a).isdisjoint(b):
        return []
    return _align_fewest_edits(a, b) if cells <= _EXACT_CELLS else _align_compiled(a, b)


def _align_fewest_edits(a: Sequence[str], b: Sequence[str]) -> list[Pair]:
    """Longest common subsequence with the fewest gaps between its runs, by dynamic programming from the end.

    Two tables of (matches * weight - gaps opened): `run` where the last step matched, `gap` inside a gap.
    """
    weight = len(a) + len(b) + 2
    n, m = len(a), len(b)
    run = [[-1] * (m + 1) for _ in range(n + 1)]
    gap = [[0] * (m + 1) for _ in range(n + 1)]
    run[n][m] = 0
    for i in range(n - 1, -1, -1):
        run_i, gap_i, run_below, gap_below, unit = run[i], gap[i], run[i + 1], gap[i + 1], a[i]
        for j in range(m - 1, -1, -1):
            skip = gap_below[j] if gap_below[j] >= gap_i[j + 1] else gap_i[j + 1]
            match = run_below[j + 1] + weight if unit == b[j] else -1
            gap_i[j] = match if match > skip else skip
            run_i[j] = match if match >= skip - 1 else skip - 1
    pairs = []
    i = j = 0
    # The middle starts after a matched prefix or at the start of the text: a first gap costs the same either way.
    in_gap = False
    while i < n and j < m:
        best = gap[i][j] if in_gap else run[i][j]
        if a[i] == b[j] and run[i + 1][j + 1] + weight == best:
            pairs.append((i, j))
            i, j, in_gap = i + 1, j + 1, False
            continue
        gap_value = best if in_gap else best + 1
        in_gap = True
        if gap[i + 1][j] == gap_value:  # skip in `b` only when skipping in `a` loses
            i += 1
        else:
            j += 1
    return pairs


def _align_compiled(a: Sequence[str], b: Sequence[str]) -> list[Pair]:
    """Any longest common subsequence, by rapidfuzz's bit-parallel code."""
    from rapidfuzz.distance import LCSseq

    numbers: dict[str, int] = {}
    codes_a, codes_b = ([numbers.setdefault(unit, len(numbers)) for unit in units] for units in (a, b))
    pairs: list[Pair] = []
    for op in LCSseq.opcodes(codes_a, codes_b):
        if op.tag == "equal":
            pairs += zip(range(op.src_start, op.src_end), range(op.dest_start, op.dest_end), strict=True)
    return pairs


def _edit_between(start: int, old: str, new: str) -> list[Edit]:
    """Return the edit, if any, for what lies between two matched units; shared white space stays outside it."""
    if old == new:
        return []
    while old and new and old[0] == new[0] and old[0].isspace():
        old, new, start = old[1:], new[1:], start + 1
    while old and new and old[-1] == new[-1] and old[-1].isspace():
        old, new = old[:-1], new[:-1]
    return [make_edit(start, old, new)]


__all__ = ["Unit", "align", "derive_edits"]
