"""Near names."""

from __future__ import annotations

from kubesched.inputs.errors import near_names


def test_near_names() -> None:
    """The nearest name comes first; far ones do not come."""
    assert near_names("web-1", ["db", "web-2", "web-1x", "web-2"]) == ["web-1x", "web-2"]
    assert near_names("zzz", ["web-1"]) == []


def test_of_very_many_only_those_that_begin_alike() -> None:
    """With very many names the others are not compared."""
    names = [f"node-{at}" for at in range(20_000)]
    assert near_names("pod-x", [*names, "pod-y", "qod-x"]) == ["pod-y"]
