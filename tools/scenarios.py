"""Writes docs/scenarios.md: every field of scenarios and sweeps, from the code itself.

`--check` only compares and exits 1 if the page is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from configuration import ROOT, default_of, shown, table, write_or_check

from kubesched.api.go_text import go_duration
from kubesched.config.decoding import DurationSeconds
from kubesched.reports import described
from kubesched.simulator.scenario import Scenario
from kubesched.sweep.spec import SweepSpec

PAGE = ROOT / "docs" / "scenarios.md"

_HEAD = """# Scenarios and sweeps

A scenario describes a cluster over time, see [Simulate over time](howto/simulate-over-time.md). A
sweep lists many simulations, see [Sweep](howto/sweep.md). Both are YAML or JSON. Unknown fields,
wrong types and impossible combinations are all reported at once, each with its path.

Durations are written as in Kubernetes: `90s`, `1h30m`, `250ms`; times are durations since the
beginning. Quote words that YAML 1.1 reads as booleans (`n`, `y`, `on`) if you mean text. File names
are relative to the directory of the file that names them. `kubesched schema Scenario` and
`kubesched schema Sweep` print JSON Schemas, for editors.

`tools/scenarios.py` writes this page from the code.
"""
_WORDS = {str: "text", int: "integer", float: "number", bool: "true or false", dict: "mapping"}


def places_of(struct: type[msgspec.Struct], path: str) -> Iterator[tuple[str, type]]:
    """Yield each struct below a field, with its path, in the order of the fields."""
    hints = get_type_hints(struct)
    for field in msgspec.structs.fields(struct):
        place = f"{path}.{field.encode_name}" if path else field.encode_name
        hint = hints[field.name]
        for choice in (hint, *get_args(hint)):
            if isinstance(choice, type) and issubclass(choice, msgspec.Struct):
                place += "[]" if get_origin(hint) is tuple else ""
                yield place, choice
                yield from places_of(choice, place)


def type_of(hint: Any) -> str:
    """Return the words for a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint == DurationSeconds:
        return "duration"
    if origin is Annotated:
        return type_of(arguments[0])
    if origin in {Union, UnionType}:
        words = (type_of(each) for each in arguments if each is not type(None))
        return " or ".join(words)
    if origin is tuple:
        return f"list of {type_of(arguments[0])}s" if arguments[0] is str else "list"
    return _WORDS.get(origin or hint, "mapping")


def texts_of(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return what the docstrings of a struct and those it extends say about each field."""
    texts: dict[str, str] = {}
    for each in reversed(struct.__mro__):
        texts |= described(each.__doc__ or "")[1]
    return texts


def fields(struct: type[msgspec.Struct]) -> str:
    """Return the table of a struct's fields."""
    hints, texts = get_type_hints(struct, include_extras=True), texts_of(struct)
    rows = []
    for field in msgspec.structs.fields(struct):
        kind, default = type_of(hints[field.name]), default_of(field)
        if field.required:
            cell = "required"
        elif isinstance(default, dict):
            cell = ""
        elif kind == "duration" and isinstance(default, float):
            cell = f"`{go_duration(default)}`"
        else:
            cell = shown(default)
        rows.append((f"`{field.encode_name}`", kind, cell, texts[field.name]))
    return table(("field", "type", "default", "meaning"), rows)


def sections(title: str, root: type[msgspec.Struct]) -> Iterator[str]:
    """Yield a section for a document and each of its parts, with all paths that lead there."""
    yield f"\n## {title}\n\n{described(root.__doc__ or '')[0]}\n\n{fields(root)}"
    paths: dict[type, list[str]] = {}
    for path, struct in places_of(root, ""):
        paths.setdefault(struct, []).append(path)
    for struct, places in paths.items():
        summary, _ = described(struct.__doc__ or "")
        also = ", ".join(f"`{place}`" for place in places[1:])
        more = f" Also at {also}." if also else ""
        yield f"\n### {places[0]}\n\n{summary}{more}\n\n{fields(struct)}"


def page() -> str:
    """Return the page's text."""
    return "".join((_HEAD, *sections("Scenarios", Scenario), *sections("Sweeps", SweepSpec)))


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
