"""Text infilling on token ids.

Spans of a run of turns become one blank each, which the decoder fills. Single tokens are masked, which the encoder
fills.
"""

from __future__ import annotations

from random import Random

from teo.training.packing import PackedExample, Segment
from teo_lab.pretraining.settings import NoiseSettings
from teo_lab.pretraining.vocabulary import BLANK_ID, CLS_ID, EOS_ID, MASK_ID, SEP_ID, Ids, Vocabulary


def infill(
    turns: list[Ids], vocabulary: Vocabulary, settings: NoiseSettings, rng: Random, room: int
) -> PackedExample | None:
    """Return an infilling example of a run of turns; None if nothing could be blanked."""
    text = [CLS_ID]
    for turn in turns:
        text += turn
        text.append(SEP_ID)
    blanks = _blanks(text, settings, rng)
    if not blanks:
        return None
    source: Ids = []
    target: Ids = [CLS_ID]
    masked: list[tuple[int, int]] = []
    at = 0
    for start, end in [*blanks, (len(text), len(text))]:
        for token in text[at:start]:
            if token not in (CLS_ID, SEP_ID) and rng.random() < settings.masked:
                masked.append((len(source), token))
                source.append(_hidden(token, vocabulary, rng))
            else:
                source.append(token)
        if start < end:
            source.append(BLANK_ID)
            target += [BLANK_ID, *text[start:end]]
        at = end
    target.append(EOS_ID)
    if len(target) - 1 > room:
        target = target[: room + 1]
    return PackedExample(source, [Segment(target, 2)], masked)


def _hidden(token: int, vocabulary: Vocabulary, rng: Random) -> int:
    """Return what stands for a masked token: mostly the mask, now and then another token or the token itself."""
    draw = rng.random()
    if draw < 0.8:
        return MASK_ID
    return rng.randrange(vocabulary.first_word, vocabulary.size) if draw < 0.9 else token


def _blanks(text: Ids, settings: NoiseSettings, rng: Random) -> list[tuple[int, int]]:
    """Return spans to blank, in order, apart from each other, inside turns."""
    wanted = max(1, round(len(text) * settings.blanked))
    taken = [token in (CLS_ID, SEP_ID) for token in text]
    spans: list[tuple[int, int]] = []
    for _ in range(4 * wanted):
        if wanted <= 0:
            break
        length = min(max(1, _poisson(settings.blank_length, rng)), 10, wanted + 1)
        start = rng.randrange(1, len(text))
        end = min(start + length, len(text))
        if any(taken[start:end]) or BLANK_ID in text[start:end]:
            continue
        for position in range(max(0, start - 1), min(len(text), end + 1)):
            taken[position] = True
        spans.append((start, end))
        wanted -= end - start
    return sorted(spans)


def _poisson(mean: float, rng: Random) -> int:
    limit, product, count = 2.718281828**-mean, rng.random(), 0
    while product > limit:
        product *= rng.random()
        count += 1
    return count
