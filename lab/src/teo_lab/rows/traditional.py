"""Traditional characters for Chinese text, by OpenCC's conversions for Taiwan, Hong Kong, and neither."""

from __future__ import annotations

import random
from collections.abc import Callable

from teo.errors import InputError

_REGIONS = {"s2tw": 4, "s2twp": 2, "s2hk": 2, "s2t": 1}
"""OpenCC's conversions, and how often each is drawn."""

Convert = Callable[[str], str]


def open_converters() -> Callable[[random.Random], Convert]:
    """Return what draws a conversion to Traditional characters."""
    try:
        import opencc
    except ModuleNotFoundError as error:
        raise InputError("writing Traditional characters needs the library 'opencc': pip install opencc") from error
    converters: list[Convert] = [opencc.OpenCC(name).convert for name in _REGIONS]
    return lambda rng: rng.choices(converters, list(_REGIONS.values()))[0]
