"""Matching of tolerations against taints.

Upstream: staging/src/k8s.io/api/core/v1/toleration.go, component-helpers/.../helpers.go (v1.36)
Reads:    pod.spec.tolerations; node.spec.taints
Differs:  nothing.
"""

import re
from collections.abc import Collection, Iterable
from typing import Final

from kubesched.api.core import Taint, Toleration
from kubesched.api.requirements import parse_int64

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
HARD_EFFECTS: Final = (NO_SCHEDULE, NO_EXECUTE)
EFFECTS: Final = (NO_SCHEDULE, "PreferNoSchedule", NO_EXECUTE)

_CANONICAL_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")


def taint_text(taint: Taint) -> str:
    """Return a taint as kubectl writes it."""
    pair = f"{taint.key}={taint.value}" if taint.value else taint.key
    return f"{pair}:{taint.effect}"


def tolerates(toleration: Toleration, taint: Taint, comparison_operators: bool = False) -> bool:
    """Return whether the toleration matches the taint.

    An empty effect means all effects, an empty key all keys. `comparison_operators` supports Lt and
    Gt.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" if comparison_operators:
            return _compares(toleration, taint)
        case _:
            return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    bound, number = _integer(toleration.value), _integer(taint.value)
    if bound is None or number is None:
        return False
    return number < bound if toleration.operator == "Lt" else number > bound


def _integer(text: str) -> int | None:
    """Return an int64 without plus sign and leading zeros; None if the text is not one."""
    return parse_int64(text) if _CANONICAL_INTEGER.fullmatch(text) else None


def find_untolerated(
    taints: Iterable[Taint],
    tolerations: Iterable[Toleration],
    effects: Collection[str] = HARD_EFFECTS,
    comparison_operators: bool = False,
) -> Taint | None:
    """Return the first taint with one of the effects and no matching toleration, None if none."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(toleration, taint, comparison_operators) for toleration in tolerations
        ):
            return taint
    return None
