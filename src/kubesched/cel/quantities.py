"""Resource quantities in expressions.

Upstream: staging/src/k8s.io/apiserver/pkg/cel/quantity.go, library/quantity.go
Differs:  nothing.
"""

from dataclasses import dataclass
from typing import ClassVar

from kubesched.api.quantity import NANO, nano_value
from kubesched.cel.declarations import Library
from kubesched.cel.values import INT_MAX, INT_MIN, CelError, succeeds


@dataclass(frozen=True, slots=True, order=True)
class CelQuantity:
    """A resource quantity, in units of 10^-9."""

    nano: int

    type_name: ClassVar[str] = "kubernetes.Quantity"
    is_opaque: ClassVar[bool] = True


def _quantity(string: str) -> CelQuantity:
    try:
        return CelQuantity(nano_value(string))
    except ValueError as error:
        # Our message begins with the text, upstream's does not.
        raise CelError(str(error).rpartition("': ")[2]) from error


def _is_integer(quantity: CelQuantity) -> bool:
    return quantity.nano % NANO == 0 and INT_MIN <= quantity.nano // NANO <= INT_MAX


def _as_integer(quantity: CelQuantity) -> int:
    if not _is_integer(quantity):
        raise CelError("cannot convert value to integer")
    return quantity.nano // NANO


def _compare_quantities(left: CelQuantity, right: CelQuantity) -> int:
    return (left.nano > right.nano) - (left.nano < right.nano)


LIBRARY: Library = {
    "quantity(string): quantity": _quantity,
    "isQuantity(string): bool": succeeds(_quantity),
    "sign(quantity): int": lambda quantity: (quantity.nano > 0) - (quantity.nano < 0),
    "@isGreaterThan(quantity, quantity): bool": lambda left, right: left.nano > right.nano,
    "@isLessThan(quantity, quantity): bool": lambda left, right: left.nano < right.nano,
    "@compareTo(quantity, quantity): int": _compare_quantities,
    "@asApproximateFloat(quantity): double": lambda quantity: quantity.nano / NANO,
    "@asInteger(quantity): int": _as_integer,
    "@isInteger(quantity): bool": _is_integer,
    "@add(quantity, quantity): quantity": lambda a, b: CelQuantity(a.nano + b.nano),
    "@add(quantity, int): quantity": lambda a, b: CelQuantity(a.nano + b * NANO),
    "@sub(quantity, quantity): quantity": lambda a, b: CelQuantity(a.nano - b.nano),
    "@sub(quantity, int): quantity": lambda a, b: CelQuantity(a.nano - b * NANO),
}
