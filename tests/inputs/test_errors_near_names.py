"""Suggestions of similar names."""

from __future__ import annotations

from kubesched.inputs.errors import near_names


def test_the_most_similar_name_is_first() -> None:
    """Names that are not similar are left out."""
    assert near_names("web-1", ["db", "web-2", "web-1x", "web-2"]) == ["web-1x", "web-2"]
    assert near_names("zzz", ["web-1"]) == []


def test_much_less_similar_names_are_left_out() -> None:
    """Only suggestions about as good as the best one are made."""
    assert near_names("wbe-1", ["web-1", "sel-1", "done-1", "gpu-1"]) == ["web-1"]


def test_of_many_names_only_those_with_an_equal_prefix_are_compared() -> None:
    """Comparing thousands of names takes too long."""
    names = [f"node-{at}" for at in range(20_000)]
    assert near_names("pod-x", [*names, "pod-y", "qod-x"]) == ["pod-y"]
