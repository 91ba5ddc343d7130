"""Checks of what callers pass: numbers of the right kind and size, or an error that names the argument."""

from __future__ import annotations

import numbers

from teo.errors import ConfigError, InputError

_KINDS: dict[type, str] = {
    **{type(None): "nothing", bool: "true or false", int: "a number", float: "a number"},
    **{str: "a string", list: "a list", dict: "an object"},
}


def require_integer(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return a whole number that lies between bounds; raises and names the argument where it does not."""
    bounds = f"at least {least}" if most is None else f"{least} to {most}"
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise InputError(f"{name}: expected a whole number, {bounds}; found {describe(value)}")
    number = int(value)
    if number < least or (most is not None and number > most):
        raise InputError(f"{name}: expected {bounds}, found {number}")
    return number


def require_share(name: str, value: object) -> float:
    """Return a number from 0 to 1; raises and names the argument where it is none."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise InputError(f"{name}: expected a number, 0 to 1; found {describe(value)}")
    number = float(value)
    if not 0 <= number <= 1:
        raise InputError(f"{name}: expected 0 to 1, found {value}")
    return number


def require_token_text(token: object) -> str:
    """Return a bearer token; raises where a header cannot hold it, and never quotes it."""
    if not isinstance(token, str):
        raise ConfigError(f"token: expected a string, found {kind_of(token)}")
    if not (token.isascii() and token.isprintable() and token.strip()):
        raise ConfigError("token: expected visible ASCII characters, found none or others; a header must hold it")
    if token != token.strip():
        raise ConfigError("token: expected no space at either end, found one; a header cannot hold it")
    return token


def kind_of(value: object) -> str:
    """Return what a JSON value is, as an error says it."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def describe(value: object) -> str:
    """Return a value as an error shows it: short, with its type."""
    shown = repr(value)
    return f"{shown if len(shown) <= 40 else shown[:37] + '...'} ({type(value).__name__})"
