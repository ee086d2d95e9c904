"""Figures: the numbers and texts of a report by names such as `resources.cpu.meanShare`.

An element of a list is named by its resource or priority, as in `waits.all.p99Seconds`. Other
lists, such as those of pods and series, are not figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from kubesched.explain.document import Document, flat
from kubesched.inputs.errors import did_you_mean
from kubesched.sweep.spec import Scalar

Figures: TypeAlias = dict[str, Scalar | None]

SCENARIO_FIGURES: Final = (
    "totals.arrived",
    "totals.bound",
    "totals.finished",
    "totals.pending",
    "totals.disrupted",
    "totals.lost",
    "waits.all.meanSeconds",
    "waits.all.p99Seconds",
    "waits.all.pendingPodHours",
    "resources.*.meanShare",
    "resources.*.meanFragmentation",
)
"""What is kept of simulations over time unless the sweep names figures."""
CLUSTER_FIGURES: Final = (
    "summary.pods",
    "summary.placed",
    "summary.unplaced",
    "summary.evicted",
    "summary.nodesUsed",
    "summary.resources.*.shareAfter",
)
"""What is kept of placements on a cluster unless the sweep names figures."""

_NAMES: Final = ("resource", "priority")
"""The fields that name an element of a list."""
_SCALARS: Final = (str, int, float, bool)
_ANY: Final = "*"


def figures_of(report: Document, patterns: Sequence[str]) -> Figures:
    """Return the figures of a report that match a pattern, in the report's order."""
    return {
        name: value
        for name, value in flat(report.to_dict(), _NAMES)
        if not isinstance(value, list) and any(fnmatchcase(name, pattern) for pattern in patterns)
    }


def unknown_figures(patterns: Iterable[str], reports: Sequence[type[Document]]) -> dict[str, str]:
    """Return the patterns that no figure of these reports can match, with what could be meant."""
    known = [name for report in reports for name in _known(report, "")]
    found = {}
    for pattern in patterns:
        if not any(_may_match(pattern, name) for name in known):
            found[pattern] = did_you_mean(pattern, known, f"such as {known[0]}", most=1)
    return found


def _known(struct: type[msgspec.Struct], before: str) -> Iterator[str]:
    """Yield the names of a struct's figures; an element of a list is called `*`."""
    hints = get_type_hints(struct)
    for field in msgspec.structs.fields(struct):
        hint, name = hints[field.name], f"{before}{field.encode_name}"
        element = get_args(hint)[0] if get_origin(hint) is tuple else None
        if element is not None:
            if _is_struct(element) and {*_NAMES} & {*element.__struct_encode_fields__}:
                yield from _known(element, f"{name}.{_ANY}.")
        elif _is_struct(hint):
            yield from _known(hint, f"{name}.")
        elif field.encode_name not in _NAMES and {hint, *get_args(hint)} & set(_SCALARS):
            yield name


def _is_struct(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _may_match(pattern: str, known: str) -> bool:
    """Whether a pattern can match a name, in which one part may be anything."""
    head, star, leaf = known.partition(f".{_ANY}.")
    if not star:
        return fnmatchcase(known, pattern)
    first, _, last = pattern.rpartition(".")
    own = first[: len(head) + 1]
    return fnmatchcase(leaf, last) and (own == f"{head}." or fnmatchcase(f"{head}.x", first))
