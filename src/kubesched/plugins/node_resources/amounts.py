"""Amounts of resources as people write them: `1.5` cores, `512Mi`, `3`."""

from __future__ import annotations

from typing import Final

_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
_BYTES: Final = frozenset({"memory", "ephemeral-storage"})


def format_amount(resource: str, amount: int) -> str:
    """Return an amount of a resource exactly; cpu is given in milli, all else in whole units."""
    if resource == "cpu":
        return _decimal(amount, 1000)
    if resource in _BYTES or resource.startswith("hugepages-"):
        return _bytes(amount)
    return str(amount)


def _bytes(amount: int) -> str:
    """Use the largest suffix that leaves at most two decimals."""
    for power in range(len(_BINARY_SUFFIXES) - 1, 0, -1):
        unit = 1 << (10 * power)
        if abs(amount) >= unit and amount * 100 % unit == 0:
            return _decimal(amount * 100 // unit, 100) + _BINARY_SUFFIXES[power]
    return str(amount)


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(abs(amount), unit)
    sign = "-" if amount < 0 else ""
    digits = str(unit + rest)[1:].rstrip("0")
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"
