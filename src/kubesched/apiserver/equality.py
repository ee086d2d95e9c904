"""Equality of objects by what they mean: quantities by amount, everything else as it is written.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/equality (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Any

from kubesched.api.quantity import parse_quantity
from kubesched.apiserver.object_types import ObjectType
from kubesched.apiserver.value_types import (
    QUANTITY,
    ROUNDED_QUANTITY,
    ListType,
    MapType,
    ValueType,
)


def is_equal(value_type: ValueType, one: Any, other: Any) -> bool:
    """Whether two values of a type, as the server writes them, mean the same."""
    if one == other:
        return True
    if isinstance(value_type, ListType | MapType) and not one and not other:
        # Nothing and an empty list or map are the same; nothing and an empty text are not.
        return True
    return one is not None and other is not None and _means_the_same(value_type, one, other)


def _means_the_same(value_type: ValueType, one: Any, other: Any) -> bool:
    if value_type in (QUANTITY, ROUNDED_QUANTITY):
        return parse_quantity(one).compare(parse_quantity(other)) == 0
    if isinstance(value_type, ListType):
        return len(one) == len(other) and all(
            is_equal(value_type.element, left, right)
            for left, right in zip(one, other, strict=True)
        )
    if isinstance(value_type, MapType):
        return one.keys() == other.keys() and all(
            is_equal(value_type.element, value, other[key]) for key, value in one.items()
        )
    if isinstance(value_type, ObjectType):
        return all(
            is_equal(field.type, one.get(name), other.get(name))
            for name, field in value_type.fields.items()
        )
    return False
