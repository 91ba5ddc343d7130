"""Settings files: TOML -> frozen dataclasses, checked by pydantic; the docstring under a field is its help text."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import GenericAlias
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from teo.errors import ConfigError

S = TypeVar("S")
Schema = Mapping[str, Any]
EXTENDS = "extends"
"""The key of a file that names another file to start from, relative to its own folder."""
_CHECKS = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True)
_BOUNDS = (
    ("minimum", "maximum", "from {:.10g} to {:.10g}"),
    ("minimum", "exclusiveMaximum", "from {:g} to below {:g}"),
    ("minimum", "minimum", "of at least {:g}"),
    ("exclusiveMinimum", "exclusiveMinimum", "above {:g}"),
    ("exclusiveMaximum", "exclusiveMaximum", "below {:g}"),
)
_TYPES = {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}


def read_settings(path: Path, cls: type[S], overrides: Sequence[str] = ()) -> S:
    """Return the settings of a TOML file, with `key=value` overrides laid over it."""
    tree = read_tree(path)
    for override in overrides:
        lay_over(tree, override)
    return build(cls, tree, f"{path} with {' '.join(overrides)}" if overrides else str(path))


def read_tree(path: Path, above: Sequence[Path] = ()) -> dict[str, Any]:
    """Return a file's keys and values, laid over those of the file it extends; `above` are the files that extend it."""
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
    above = (*above, path.resolve())
    below = path.parent / parent
    if below.resolve() == path.resolve():
        raise ConfigError(f"{path}: {EXTENDS}: the file names itself")
    if below.resolve() in above:
        raise ConfigError(
            f"{path}: {EXTENDS}: expected a file that does not extend this one, found {below}, which does"
        )
    return merge(read_tree(below, above), tree)


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return two trees as one; if both have a table its keys are merged, else `above` wins.

    Tables of a list are changed by their name: `[data.task]` changes the table of the list `data` whose name is task,
    the first one if there are several.
    """
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            merged[key] = merge(old, value)
        elif isinstance(old, list) and isinstance(value, Mapping) and _are_named(value, old):
            changes = dict(value)
            merged[key] = [merge(table, changes.pop(table.get("name"), {})) for table in old]
        else:
            merged[key] = value
    return merged


def build(cls: type[S], tree: Mapping[str, Any], source: str) -> S:
    """Return the dataclass of a tree; an unknown key or a wrong value is named, with what was expected."""
    checked: Any = cls
    adapter, schema = _adapter(checked)
    listed = {key for key, inner in schema["properties"].items() if _words(inner) == "a list of tables"}
    tree = {key: [value] if key in listed and isinstance(value, Mapping) else value for key, value in tree.items()}
    try:
        # As JSON, because strict checks of Python values refuse lists for tuples.
        settings: S = adapter.validate_json(json.dumps([tree], default=str))[0]
    except ValidationError as error:
        raise ConfigError(f"{source}: {_explain(error, schema)}") from None
    return settings


def list_keys(cls: type) -> Iterator[tuple[str, str, Any, str]]:
    """Yield (key, type in words, default, help) for every key of a dataclass and of those inside it."""
    return _list_keys(_adapter(cls)[1], "")


def to_tree(settings: Any) -> dict[str, Any]:
    """Return settings as plain tables, lists and values."""
    tree: dict[str, Any] = json.loads(json.dumps(asdict(settings)))
    return tree


def to_toml(tree: Mapping[str, Any], path: str = "") -> str:
    """Return a tree as TOML, plain values before tables."""
    # TOML's basic strings, numbers, booleans and arrays are written as JSON writes them.
    plain = {key: value for key, value in tree.items() if not _is_table(value)}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in plain.items()]
    for key, value in tree.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{path}{key}]", to_toml(value, f"{path}{key}.")]
        elif _is_table(value):
            for item in value:
                lines += ["", f"[[{path}{key}]]", to_toml(item, f"{path}{key}.")]
    return "\n".join(lines)


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and bool(value) and isinstance(value[0], Mapping))


def lay_over(tree: dict[str, Any], override: str) -> None:
    """Lay one `a.b=value` over a tree; a value that is not TOML is taken as text.

    Of several tables with the same name, the first is changed.
    """
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ConfigError(f"{override}: expected key=value, such as optimisation.epochs=3")
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        value = text
    *tables, last = key.split(".")
    while tables:
        table = tables.pop(0)
        below = tree.setdefault(table, {})
        if isinstance(below, list):
            named = [item for item in below if tables and item.get("name") == tables[0]]
            if not named and len(_names(below)) != 1:
                known = ", ".join(sorted(_names(below)))
                raise ConfigError(f"{override}: {table} holds {len(below)} tables; name one of them: {known}")
            below = named[0] if named else below[0]
            tables = tables[1:] if named else tables
        if not isinstance(below, dict):
            raise ConfigError(f"{override}: {table} is a value, not a table")
        tree = below
    tree[last] = value


def _are_named(changes: Mapping[str, Any], tables: Sequence[Any]) -> bool:
    """Tell whether each key is the name of a table, and its value a table too."""
    return changes.keys() <= _names(tables) and all(isinstance(change, Mapping) for change in changes.values())


def _names(tables: Sequence[Any]) -> set[str]:
    return {str(table.get("name")) for table in tables if isinstance(table, Mapping)}


@cache
def _adapter(cls: Any) -> tuple[TypeAdapter[tuple[Any]], Schema]:
    """Return what checks a dataclass and those inside it, and its JSON schema with every reference resolved."""
    # A tuple of the dataclass, because pydantic takes these checks for a plain dataclass only from what holds it.
    kind: Any = GenericAlias(tuple, (cls,))
    adapter: TypeAdapter[tuple[Any]] = TypeAdapter(kind, config=_CHECKS)
    whole = adapter.json_schema()

    def resolve(part: Any) -> Any:
        if isinstance(part, list):
            return [resolve(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return resolve(whole["$defs"][part["$ref"].rpartition("/")[2]])
        return {key: resolve(value) for key, value in part.items() if key != "$defs"}

    return adapter, resolve(whole)["prefixItems"][0]


def _explain(error: ValidationError, root: Schema) -> str:
    """Return the first error in a user's words: the key, what was expected, what was found."""
    errors = error.errors(include_url=False)
    unknown = [entry for entry in errors if entry["type"] == "unexpected_keyword_argument"]
    first = (unknown or errors)[0]
    table, schema, path = root, root, ""
    for key in first["loc"][1:]:
        if isinstance(key, int):
            schema = schema["prefixItems"][key] if "prefixItems" in schema else schema["items"]
            path += "" if "properties" in schema else f"[{key}]"
        else:
            table = schema
            schema = table.get("properties", {}).get(key) or table.get("additionalProperties") or {}
            path += f".{key}"
    path = path.removeprefix(".")
    if first["type"] == "value_error":  # what a dataclass checks itself
        return f"{path}{'.' if path else ''}{first['ctx']['error']}"
    if unknown:
        return f"{path}: unknown key{_nearest(path, list(table['properties']), root)}"
    if first["type"] == "missing":
        return f"{path}: missing; {_help(schema)}"
    if first["type"] == "finite_number":
        return f"{path}: expected a finite number, found {json.dumps(first['input'])}"
    return f"{path}: expected {_words(schema)}, found {json.dumps(first['input'], ensure_ascii=False)}"


def _nearest(path: str, known: Sequence[str], root: Schema) -> str:
    """Return the nearest key of the same table; else, since tables are easily forgotten, of any other table."""
    before, dot, key = path.rpartition(".")
    close = difflib.get_close_matches(key, known, n=1)
    if close:
        return f"; the nearest known one is {before}{dot}{close[0]}"
    by_name = {dotted.rpartition(".")[2]: dotted for dotted, *_ in _list_keys(root, "")}
    close = difflib.get_close_matches(key, by_name, n=1)
    return f"; the nearest known one is {by_name[close[0]]}" if close else f"; known are {', '.join(known)}"


def _list_keys(table: Schema, path: str) -> Iterator[tuple[str, str, Any, str]]:
    for key, schema in table["properties"].items():
        inner = schema.get("items", schema)
        if "properties" in inner:
            yield from _list_keys(inner, f"{path}{key}.")
        else:
            yield path + key, _words(schema), schema.get("default", ""), _help(schema)


def _help(schema: Schema) -> str:
    return " ".join(str(schema.get("description", "")).split())


def _words(schema: Schema) -> str:
    """Return a type in a user's words, with its bounds."""
    if "enum" in schema:
        return " or ".join(json.dumps(choice) for choice in schema["enum"])
    if schema.get("type") == "array":
        items = schema.get("items") or schema["prefixItems"][0]
        return "a list of tables" if "properties" in items else f"a list, each {_words(items)}"
    words = _TYPES.get(schema.get("type", ""), "a table")
    for low, high, form in _BOUNDS:
        if low in schema and high in schema:
            return f"{words} {form.format(schema[low], schema[high])}"
    return words
