"""The interpreter of the rules of fields in the schema's tables.

    required            the field is not empty; with (words), which the error shows
    filled(form)        the field, if it is given, is not empty; with a form: has that form
    is(form)            a text, or each text of a list, has a form of `formats.FORMS`
    keys(form)          each key of a map has a form
    labels              keys and values of a map are those of labels
    in(a,b)             the text, or each text of a list, is one of these
    min(n), above(n), between(a,b), positive      bounds of a number, or of each number of a list
    max_bytes(n)        a text is no longer
    mode                permissions of a file
    port                the number or the name of a port
    number_or_percent   a number, or a percentage; with (100): at most everything
    unique(name)        no two entries of a list share this field; with (name,entry): the error is
                        that of the entry
    weight              a number from 1 to 100
    immutable           an update leaves the field as it is

Other rules are functions for types of objects, which are called wherever such an object occurs,
before the rules of its fields or after them.

Upstream: pkg/apis/*/validation, staging/src/k8s.io/apimachinery/pkg/api/validate (v1.36)
Differs:  errors come in the order of the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

from kubesched.apiserver.formats import FORMS, between, percent, port_name, valid_port
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.schema import MapType, ObjectType
from kubesched.apiserver.status import FieldErrors
from kubesched.apiserver.validation.metadata import check_labels
from kubesched.apiserver.values import Field, Rule

Check: TypeAlias = Callable[[Plain, str, FieldErrors], Sequence[str] | None]
"""Adds what is wrong with an object at a path; may return fields that need no checks."""
_FieldCheck: TypeAlias = Callable[[Any, str, FieldErrors], None]
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
POSITIVE: Final = "must be greater than zero"


class TypeChecks(NamedTuple):
    """Checks of objects, by names of types: before the rules of their fields, and after them."""

    before: Mapping[str, Check]
    after: Mapping[str, Check]


class _FieldRules(NamedTuple):
    """A field with rules of its own, or with an object or a list of them; `inner` is their type."""

    name: str
    checks: tuple[_FieldCheck, ...]
    inner: ObjectType | None


@cache
def _rules_of(object_type: ObjectType) -> Sequence[_FieldRules]:
    found = []
    for field in object_type.fields.values():
        checks = tuple(_field_check(field, rule) for rule in field.rules)
        inner = None if isinstance(field.type, MapType) else field.inner
        if checks or inner is not None:
            found.append(_FieldRules(field.name, checks, inner))
    return found


def check_rules(
    object_type: ObjectType,
    value: Plain,
    of_types: TypeChecks,
    errors: FieldErrors,
    path: str = "",
    *,
    skipped: Sequence[str] = (),
) -> None:
    """Add field errors for an object that has its defaults, except in `skipped` fields."""
    if (before := of_types.before.get(object_type.name)) is not None:
        skipped = (*skipped, *(before(value, path, errors) or ()))
    for name, checks, inner in _rules_of(object_type):
        found = value.get(name)
        if name in skipped or (found is None and not checks):
            continue
        at = f"{path}.{name}" if path else name
        for check in checks:
            count = len(errors)
            check(found, at, errors)
            if len(errors) > count:
                break
        if inner is not None and found is not None:
            for one, where in _entries(found, at):
                check_rules(inner, one, of_types, errors, where)
    if (after := of_types.after.get(object_type.name)) is not None:
        after(value, path, errors)


def _entries(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Yield the entries of a list, or a value that is not a list, with their paths."""
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield one, f"{path}[{index}]"
    else:
        yield value, path


def check_changes(
    object_type: ObjectType, new: Plain, old: Plain, errors: FieldErrors, path: str = ""
) -> None:
    """Add field errors for changes of immutable fields."""
    for field in object_type.fields.values():
        after, before = new.get(field.name), old.get(field.name)
        at = f"{path}.{field.name}" if path else field.name
        if field.is_immutable:
            if not field.type.is_equal(after, before):
                errors.invalid(at, after, "field is immutable")
        elif isinstance(field.type, ObjectType) and after and before and field.name != "metadata":
            check_changes(field.type, after, before, errors, at)


def _field_check(field: Field, rule: Rule) -> _FieldCheck:
    """Return the check of one rule; for lists, most rules check the entries."""
    name, arguments = rule
    if name == "required" and isinstance(field.type, ObjectType):
        return _given
    if name in _WHOLE and not (name == "filled" and arguments):
        return partial(_WHOLE[name], *arguments)
    details = _DETAILS[name](*arguments)
    # An omitted number is 0 here, and an omitted text empty.
    skips_nothing = name == "is" or (field.is_left_out and name in _OF_NUMBERS)

    def check(value: Any, path: str, errors: FieldErrors) -> None:
        if value is None or (skips_nothing and not value):
            return
        for one, at in _entries(value, path):
            if one or not skips_nothing:
                errors.each(at, one, details(one))

    return check


# Rules that name what they break.

_OF_NUMBERS: Final = frozenset(("above", "between", "min", "positive"))
_Details: TypeAlias = Callable[[Any], Sequence[str]]


def _range(least: int, most: float, detail: str) -> _Details:
    return lambda value: () if least <= value <= most else (detail,)


def _port(value: int | str) -> Sequence[str]:
    return port_name(value) if isinstance(value, str) else valid_port(value)


def _number_or_percent(most: str = "") -> _Details:
    def details(value: int | str) -> Sequence[str]:
        if not isinstance(value, str):
            return () if value >= 0 else (NOT_NEGATIVE,)
        is_above = most and not percent(value) and int(value[:-1]) > int(most)
        return (f"must not be greater than {most}%",) if is_above else percent(value)

    return details


_DETAILS: Final[Mapping[str, Callable[..., _Details]]] = {
    "above": lambda number: _range(int(number) + 1, inf, f"must be greater than {number}"),
    "between": lambda least, most: _range(int(least), int(most), between(int(least), int(most))),
    "filled": FORMS.__getitem__,
    "is": FORMS.__getitem__,
    "min": lambda least: _range(int(least), inf, f"must be greater than or equal to {least}"),
    "mode": lambda: _range(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive"),
    "number_or_percent": _number_or_percent,
    "port": lambda: _port,
    "positive": lambda: _range(1, inf, POSITIVE),
    "weight": lambda: _range(1, 100, "must be in the range 1-100"),
}
"""What a value, or each entry of a list, breaks; by the arguments of the rule."""


# Rules that add errors of other kinds.


def _given(value: Any, path: str, errors: FieldErrors) -> None:
    if value is None:
        errors.required(path)


def _required(*arguments: Any) -> None:
    *details, value, path, errors = arguments
    if not value:
        errors.required(path, *details)


def _filled(value: Any, path: str, errors: FieldErrors) -> None:
    if value is not None:
        _required(value, path, errors)


def _in(*arguments: Any) -> None:
    *words, value, path, errors = arguments
    # Upstream names the list alone where a word is not supported.
    for one in value or () if isinstance(value, list) else (value,):
        if one is not None and one not in words:
            errors.not_supported(path, one, words)


def _keys(form: str, value: Any, path: str, errors: FieldErrors) -> None:
    for key in value or ():
        errors.each(f"{path}[{key}]", key, FORMS[form](key))


def _max_bytes(most: str, value: Any, path: str, errors: FieldErrors) -> None:
    if value and len(value.encode()) > int(most):
        errors.too_long(path, int(most))


def _unique(name: str, *arguments: Any) -> None:
    *shown, values, path, errors = arguments
    errors.repeated(
        (at if shown else f"{at}.{name}", value[name])
        for value, at in _entries(values or [], path)
        if value.get(name)
    )


_WHOLE: Final[Mapping[str, Callable[..., None]]] = {
    "filled": _filled,
    "in": _in,
    "keys": _keys,
    "labels": check_labels,
    "max_bytes": _max_bytes,
    "required": _required,
    "unique": _unique,
}
"""By the arguments of the rule, and then the value, its path and the errors."""
