"""Order and tell apart the entries of lists that a strategic merge patch merges.

Entries are objects with a merge key, or scalars, for which the key is "".

Upstream: staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go (v1.36)
Invariants: no list handed in is changed.
Differs:  nothing.
"""

from __future__ import annotations

from typing import Any

from kubesched.apiserver.go_values import go_text
from kubesched.apiserver.patch_error import failed_patch, rejected_patch

__all__ = ["deduplicated", "element_kind", "find_entry", "in_order", "partitioned"]


def element_kind(*lists: list[Any]) -> type:
    """Return the one type that all entries have.

    Raises:
        PatchError: They have several, or are lists; or there are no entries.
    """
    kinds = {type(entry): None for entries in lists for entry in entries}
    if not kinds:
        raise failed_patch("no elements in any of the given slices")
    if list in kinds:
        raise rejected_patch()
    if len(kinds) > 1:
        shown = " ".join(map(go_text, lists))
        raise failed_patch(f"list element types are not identical: [{shown}]")
    return next(iter(kinds))


def deduplicated(entries: list[Any]) -> list[Any]:
    """Return the entries once each.

    What is found again is overwritten by the last entry, so the order is not kept, as upstream;
    `in_order` sets it afterwards.
    """
    left = list(entries)
    at = 0
    while at < len(left) - 1:
        other = at + 1
        while other < len(left):
            if left[at] == left[other]:
                left[other] = left[-1]
                left.pop()
            else:
                other += 1
        at += 1
    return left


def find_entry(entries: list[Any], key: str, value: Any) -> int | None:
    """Return the index of the first object with this value of its key, None if there is none.

    Raises:
        PatchError: An entry before it is no object.
    """
    for at, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise failed_patch(f"value for key {at} is not a map")
        if key in entry and entry[key] == value:
            return at
    return None


def partitioned(entries: list[Any], chosen: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Return the entries that are among the chosen, and the others.

    Raises:
        PatchError: An entry has no key.
    """
    if not key:
        return [one for one in entries if one in chosen], [
            one for one in entries if one not in chosen
        ]
    inside: list[Any] = []
    outside: list[Any] = []
    for entry in entries:
        if not isinstance(entry, dict) or key not in entry:
            shown = go_text(entry)
            raise failed_patch(f"map: {shown} does not contain declared merge key: {key}")
        found = find_entry(chosen, key, entry[key])
        (outside if found is None else inside).append(entry)
    return inside, outside


def in_order(
    wanted: list[Any], others: list[Any], wanted_order: list[Any], live_order: list[Any], key: str
) -> list[Any]:
    """Return both lists as one.

    Args:
        wanted: What the patch names, to stand in its order.
        others: What only the object has, to stand in its own order; each of them comes before
            the first wanted entry that it stood before.
        wanted_order: The order of the patch.
        live_order: The order of the object.
        key: The merge key.

    Raises:
        PatchError: An entry has no key.
    """
    wanted = _sorted(wanted, wanted_order, key)
    others = _sorted(others, live_order, key)
    merged: list[Any] = []
    while wanted and others:
        mine = _position(others[0], live_order, key)
        theirs = _position(wanted[0], live_order, key)
        merged.append((others if 0 <= mine < theirs else wanted).pop(0))
    return [*merged, *wanted, *others]


def _sorted(entries: list[Any], order: list[Any], key: str) -> list[Any]:
    for entry in (*entries, *order) if key else ():
        if not isinstance(entry, dict) or key not in entry:
            shown = go_text(entry)
            raise failed_patch(f"map: {shown} does not contain declared merge key: {key}")
    return sorted(entries, key=lambda entry: _position(entry, order, key))


def _position(entry: Any, order: list[Any], key: str) -> int:
    """Return the index of the entry with the same key, -1 if there is none."""
    wanted = entry.get(key) if key else entry
    for at, one in enumerate(order):
        if (one.get(key) if key else one) == wanted:
            return at
    return -1
