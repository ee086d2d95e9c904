"""Quantities as whole numbers of 10^-9, which add and compare exactly and fast.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go (v1.36)
Differs:  nothing.
"""

from functools import lru_cache

from kubesched.api.quantity import BINARY_SI, Amount, Quantity, parse_quantity

NANO = 10**9
_NANO_EXPONENT = -9


@lru_cache(65_536)
def nano_value(quantity: Quantity) -> int:
    """The quantity in units of 10^-9. Raises QuantityError."""
    amount = parse_quantity(quantity)
    shift = amount.exponent - _NANO_EXPONENT
    scale: int = 10 ** abs(shift)
    if shift >= 0:
        return amount.unscaled * scale
    magnitude = -(-abs(amount.unscaled) // scale)
    return magnitude if amount.unscaled >= 0 else -magnitude


def binary_quantity(number: int) -> str:
    """A whole number as upstream writes it with binary suffixes."""
    return str(Amount(number, 0, format=BINARY_SI))
