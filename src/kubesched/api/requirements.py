"""Requirements on labels, and the compiled selectors that consist of them.

Upstream: staging/src/k8s.io/apimachinery/pkg/labels/selector.go (v1.36)
Differs:  nothing.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kubesched.api.field_errors import FieldError, aggregate, invalid
from kubesched.api.integers import is_int64
from kubesched.api.label_format import label_key_errors, label_value_errors

IN: Final = "In"
NOT_IN: Final = "NotIn"
EQUALS: Final = "="
DOUBLE_EQUALS: Final = "=="
NOT_EQUALS: Final = "!="
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
GREATER_THAN: Final = "Gt"
LESS_THAN: Final = "Lt"

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_INTEGER_LENGTH_MAX: Final = 4_000
_LISTING_OPERATORS: Final = frozenset((IN, EQUALS, DOUBLE_EQUALS))
_SYMBOLS: Final = {IN: " in ", NOT_IN: " notin ", GREATER_THAN: ">", LESS_THAN: "<"}


class SelectorError(ValueError):
    """A selector is invalid; the message is upstream's."""


def parse_int64(text: str) -> int | None:
    """Parse a base-10 int64; return None if the text is not one."""
    if _INTEGER.fullmatch(text) is None or len(text) > _INTEGER_LENGTH_MAX:
        return None
    number = int(text)
    return number if is_int64(number) else None


class Requirement(msgspec.Struct, frozen=True, order=True, gc=False):
    """A requirement on one label. Hashable; sorts by key.

    Attributes:
        key: The label's key.
        operator: One of this module's constants.
        values: One for equality and comparison, one or more for `in` and `notin`, else none.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` satisfy the requirement."""
        label = labels.get(self.key)
        match self.operator:
            case "In" | "=" | "==":
                return label is not None and label in self.values
            case "NotIn" | "!=":
                return label is None or label not in self.values
            case "Exists":
                return label is not None
            case "DoesNotExist":
                return label is None
            case _:
                return label is not None and self._compares(label)

    def _compares(self, label: str) -> bool:
        number = parse_int64(label)
        bound = parse_int64(self.values[0]) if len(self.values) == 1 else None
        if number is None or bound is None:
            return False
        return number > bound if self.operator == GREATER_THAN else number < bound

    def __str__(self) -> str:
        if self.operator in (EXISTS, DOES_NOT_EXIST):
            return f"!{self.key}" if self.operator == DOES_NOT_EXIST else self.key
        values = ",".join(sorted(self.values))
        if self.operator in (IN, NOT_IN):
            values = f"({values})"
        return f"{self.key}{_SYMBOLS.get(self.operator, self.operator)}{values}"


def requirement_errors(
    key: str, operator: str, values: tuple[str, ...], path: str = ""
) -> tuple[FieldError, ...]:
    """Return what is wrong with a requirement; empty if it is valid.

    `operator` is one of this module's constants; `path` is the requirement's field, "" at the root.
    """
    prefix = f"{path}." if path else ""
    errors = []
    if wrong := label_key_errors(key):
        errors.append(invalid(f"{prefix}key", key, "; ".join(wrong)))
    errors += _count_errors(operator, values, f"{prefix}values")
    for index, value in enumerate(values):
        if wrong := label_value_errors(value):
            errors.append(invalid(f"{prefix}values[{index}][{key}]", value, "; ".join(wrong)))
    return tuple(errors)


def checked_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """Return a requirement; raises SelectorError if it is invalid."""
    if errors := requirement_errors(key, operator, values):
        raise SelectorError(aggregate(map(str, errors)))
    return Requirement(key, operator, values)


def _count_errors(operator: str, values: tuple[str, ...], path: str) -> list[FieldError]:
    match operator:
        case "In" | "NotIn" if not values:
            detail = "for 'in', 'notin' operators, values set can't be empty"
        case "=" | "==" | "!=" if len(values) != 1:
            detail = "exact-match compatibility requires one single value"
        case "Exists" | "DoesNotExist" if values:
            detail = "values set must be empty for exists and does not exist"
        case "Gt" | "Lt":
            return _bound_errors(values, path)
        case _:
            return []
    return [invalid(path, values or None, detail)]


def _bound_errors(values: tuple[str, ...], path: str) -> list[FieldError]:
    errors = []
    if len(values) != 1:
        detail = "for 'Gt', 'Lt' operators, exactly one value is required"
        errors.append(invalid(path, values or None, detail))
    detail = "for 'Gt', 'Lt' operators, the value must be an integer"
    errors += [
        invalid(f"{path}[{index}]", value, detail)
        for index, value in enumerate(values)
        if parse_int64(value) is None
    ]
    return errors


class CompiledSelector(msgspec.Struct, frozen=True, gc=False):
    """A selector that matches if all requirements do. Hashable and comparable.

    Attributes:
        requirements: Sorted by key.
        is_nothing: Whether it matches nothing, as an absent selector does.
    """

    requirements: tuple[Requirement, ...] = ()
    is_nothing: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it matches everything."""
        return not self.requirements and not self.is_nothing

    @property
    def needed_labels(self) -> tuple[tuple[str, str], ...] | None:
        """Pairs of key and value of which each match has exactly one; None if none are known."""
        if self.is_nothing:
            return ()
        fewest: tuple[tuple[str, str], ...] | None = None
        for requirement in self.requirements:
            if requirement.operator in _LISTING_OPERATORS:
                values = dict.fromkeys(requirement.values)
                if fewest is None or len(values) < len(fewest):
                    fewest = tuple((requirement.key, value) for value in values)
        return fewest

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` satisfy all requirements."""
        if self.is_nothing:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    def with_requirements(self, requirements: Iterable[Requirement]) -> "CompiledSelector":
        """Return a selector with additional requirements."""
        if self.is_nothing:
            return self
        return selector_of((*self.requirements, *requirements))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


NOTHING: Final = CompiledSelector(is_nothing=True)
EVERYTHING: Final = CompiledSelector()


def selector_of(requirements: Iterable[Requirement]) -> CompiledSelector:
    """Return the selector of requirements that are known to be valid."""
    return CompiledSelector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))
