"""Near names."""

from __future__ import annotations

from kubesched.inputs.errors import near_names


def test_near_names() -> None:
    """The nearest name comes first; far ones do not come."""
    assert near_names("web-1", ["db", "web-2", "web-1x", "web-2"]) == ["web-1x", "web-2"]
    assert near_names("zzz", ["web-1"]) == []


def test_names_that_are_much_less_similar_do_not_come() -> None:
    """One good suggestion is not followed by bad ones."""
    assert near_names("wbe-1", ["web-1", "sel-1", "done-1", "gpu-1"]) == ["web-1"]


def test_of_very_many_only_those_that_begin_alike() -> None:
    """With very many names the others are not compared."""
    names = [f"node-{at}" for at in range(20_000)]
    assert near_names("pod-x", [*names, "pod-y", "qod-x"]) == ["pod-y"]
