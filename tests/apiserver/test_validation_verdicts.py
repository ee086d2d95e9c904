"""The rules of writing, held with what a real API server said to the same requests."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest

from .recorded import read
from .verdicts import changed, created, differences, resource_of

_CREATIONS: Final[list[dict[str, Any]]] = read("creations")
_CHANGES: Final[list[dict[str, Any]]] = read("changes")


def _kinds(cases: list[dict[str, Any]]) -> list[str]:
    return sorted({case["kind"] for case in cases})


@pytest.mark.parametrize("kind", _kinds(_CREATIONS))
def test_new_objects(kind: str) -> None:
    """A real server refuses the same objects, for the same fields."""
    for case in _CREATIONS:
        if case["kind"] == kind:
            resource = resource_of(kind, case["group"], case["version"])
            verdict = created(resource, case["body"])
            assert [] == differences(kind, case, verdict), case["body"]


@pytest.mark.parametrize("kind", _kinds(_CHANGES))
def test_changed_objects(kind: str) -> None:
    """Changes are refused for the same fields, and what is stored after them is the same."""
    for case in _CHANGES:
        if case["kind"] == kind:
            resource = resource_of(kind, case["group"], case["version"])
            actual = changed(resource, case["old"], case["new"], case["subresource"])
            assert [] == differences(kind, case, actual), case["new"]


def test_the_data_has_enough_of_everything() -> None:
    """Refusals and successes of both writes are held, and several hundred of them."""
    creations = Counter(case["status"] for case in _CREATIONS)
    changes = Counter(case["status"] for case in _CHANGES)
    assert {201, 403, 422} == set(creations)
    assert {200, 422} == set(changes)
    assert all(count > 10 for count in (*creations.values(), *changes.values()))
