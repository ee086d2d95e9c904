"""Owners that an object names twice are taken out, and whoever named them is told.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

from kubesched.apiserver.operation import Operation
from kubesched.apiserver.plain import Plain

_WARNING: Final = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in "
    "1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate "
    "UID(s) observed: {}"
)
_AFTER_ADMISSION: Final = " after mutating admission happens"


def without_repeated_owners(operation: Operation, obj: Plain, *, is_admitted: bool) -> Plain:
    """Return an object that names each owner once; it is the same one if it does already.

    Args:
        operation: The request; what is taken out is added to its warnings.
        obj: With its defaults.
        is_admitted: Whether admission has seen it, as it has what patches make.
    """
    references = obj["metadata"].get("ownerReferences") or ()
    kept: list[Plain] = []
    repeated: list[str] = []
    for one in references:
        if one in kept:
            repeated.append(one["uid"])
        else:
            kept.append(one)
    if not repeated:
        return obj
    when = _AFTER_ADMISSION if is_admitted else ""
    operation.warnings.append(_WARNING.format(when, ", ".join(repeated)))
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": kept}}
