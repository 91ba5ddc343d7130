"""Settings files: TOML -> frozen dataclasses, checked key by key; the docstring under a field is its only help text."""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import textwrap
import tomllib
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from teo.errors import ConfigError

S = TypeVar("S")
EXTENDS = "extends"
"""The key of a file that names another file to start from, relative to its own folder."""


def read_settings(path: Path, cls: type[S], overrides: Sequence[str] = ()) -> S:
    """Return the settings of a TOML file, with `key=value` overrides laid over it."""
    tree = read_tree(path)
    for override in overrides:
        _override(tree, override, cls)
    return build(cls, tree, str(path))


def read_tree(path: Path) -> dict[str, Any]:
    """Return a file's keys and values, laid over those of the file it extends."""
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; give the path of a configuration in TOML") from None
    except (IsADirectoryError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: expected a configuration in TOML ({error})") from error
    parent = tree.pop(EXTENDS, None)
    if parent is None:
        return tree
    if not isinstance(parent, str):
        raise ConfigError(f"{path}: {EXTENDS}: expected text, found {json.dumps(parent)}")
    if (path.parent / parent).resolve() == path.resolve():
        raise ConfigError(f"{path}: {EXTENDS}: the file names itself")
    return merge(read_tree(path.parent / parent), tree)


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return two trees as one; where both have a table its keys are merged, elsewhere `above` wins."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def build(cls: type[S], tree: Mapping[str, Any], where: str, path: str = "", keys: Sequence[str] = ()) -> S:
    """Return the dataclass of a tree; an unknown key or a wrong type is named, with what was expected."""
    hints = get_type_hints(cls)
    keys = keys or [key for key, *_ in list_keys(cls)]
    known = {field.name: field for field in _fields(cls)}
    for key in tree:
        if key not in known:
            raise ConfigError(f"{where}: {path}{key}: unknown key{_nearest(key, path, list(known), keys)}")
    values = {key: _convert(value, hints[key], where, path + key, keys) for key, value in tree.items()}
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise ConfigError(f"{where}: {path}{name}: missing; {_doc(cls, name)}")
    try:
        return cls(**values)
    except ConfigError as error:
        raise ConfigError(f"{where}: {path}{error}") from None


@cache
def describe(cls: type) -> Mapping[str, str]:
    """Return the docstring under each field of a dataclass."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    docs: dict[str, str] = {}
    for statement, after in pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            docs[statement.target.id] = " ".join(str(after.value.value).split())
    return docs


def list_keys(cls: type, path: str = "") -> Iterator[tuple[str, str, Any, str]]:
    """Yield (key, type in words, default, help) for every key of a dataclass and of those inside it."""
    hints = get_type_hints(cls)
    for field in _fields(cls):
        inner = _dataclass_of(hints[field.name])
        if inner is not None:
            yield from list_keys(inner, f"{path}{field.name}.")
        else:
            default = "" if field.default is MISSING else field.default
            yield path + field.name, _words(hints[field.name]), default, _doc(cls, field.name)


def to_tree(settings: Any) -> dict[str, Any]:
    """Return settings as plain tables, lists and values."""
    return {field.name: _plain(getattr(settings, field.name)) for field in fields(settings)}


def to_toml(tree: Mapping[str, Any], path: str = "") -> str:
    """Return a tree as TOML, plain values before tables."""
    lines = [f"{key} = {_toml_value(value)}" for key, value in tree.items() if not _is_table(value)]
    for key, value in tree.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{path}{key}]", to_toml(value, f"{path}{key}.")]
        elif _is_table(value):
            for item in value:
                lines += ["", f"[[{path}{key}]]", to_toml(item, f"{path}{key}.")]
    return "\n".join(lines)


def _override(tree: dict[str, Any], override: str, cls: type) -> None:
    """Lay one `a.b=value` over a tree; a value that is not TOML is taken as text."""
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ConfigError(f"{override}: expected key=value, such as optimisation.epochs=3")
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        value = text
    *tables, last = key.split(".")
    inner: Any = cls
    for table in tables:
        hints = get_type_hints(inner) if inner is not None and is_dataclass(inner) else {}
        inner = _dataclass_of(hints.get(table))
        below = tree.setdefault(table, {})
        if isinstance(below, list):  # the only table of a list may be named without its number
            if len(below) != 1:
                raise ConfigError(f"{override}: {table} holds {len(below)} tables; change the file instead")
            below = below[0]
        if not isinstance(below, dict):
            raise ConfigError(f"{override}: {table} is a value, not a table")
        tree = below
    tree[last] = value


def _doc(cls: type, name: str) -> str:
    return describe(cls)[name]


def _fields(cls: type) -> tuple[Field[Any], ...]:
    return fields(cls)


def _convert(value: Any, kind: Any, where: str, path: str, keys: Sequence[str]) -> Any:
    """Return a TOML value as the field's type; the error names the key, the type wanted and what was found."""
    inner, origin = _dataclass_of(kind), get_origin(kind)
    if inner is not None:
        tables = [value] if isinstance(value, Mapping) else value
        if isinstance(tables, list) and all(isinstance(table, Mapping) for table in tables):
            built: tuple[Any, ...] = tuple(build(inner, table, where, f"{path}.", keys) for table in tables)
            return built if origin is tuple else built[0]
    elif origin is tuple and isinstance(value, list):
        return tuple(_convert(item, get_args(kind)[0], where, f"{path}[{k}]", keys) for k, item in enumerate(value))
    elif origin is dict and isinstance(value, Mapping):
        return {key: _convert(item, get_args(kind)[1], where, f"{path}.{key}", keys) for key, item in value.items()}
    elif kind is float and type(value) in (int, float):
        return float(value)
    elif type(value) is kind or (origin is Literal and value in get_args(kind)):
        return value
    found = json.dumps(value, default=str, ensure_ascii=False)
    raise ConfigError(f"{where}: {path}: expected {_words(kind)}, found {found}")


def _nearest(key: str, path: str, known: Sequence[str], keys: Sequence[str]) -> str:
    """Return the nearest key of the same table; else, since tables are easily forgotten, of any other table."""
    close = difflib.get_close_matches(key, known, n=1)
    if close:
        return f"; the nearest known one is {path}{close[0]}"
    by_name = {dotted.rpartition(".")[2]: dotted for dotted in keys}
    close = difflib.get_close_matches(key, by_name, n=1)
    return f"; the nearest known one is {by_name[close[0]]}" if close else f"; known are {', '.join(known)}"


def _dataclass_of(kind: Any) -> type | None:
    """Return the dataclass that a type is, or is a tuple of."""
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    return kind if isinstance(kind, type) and is_dataclass(kind) else None


def _words(kind: Any) -> str:
    """Return a type in a user's words."""
    plain = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    if kind in plain:
        return plain[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(json.dumps(choice) for choice in args)
    if origin is tuple:
        return "a list of tables" if _dataclass_of(kind) else f"a list, each {_words(args[0])}"
    if origin in (Union, types.UnionType):
        return " or ".join(_words(arg) for arg in args)
    return "a table"


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return to_tree(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and bool(value) and isinstance(value[0], Mapping))


def _toml_value(value: Any) -> str:
    # TOML's basic strings, numbers, booleans and arrays are written as JSON writes them.
    return json.dumps(value, ensure_ascii=False)
