"""Suggestions of similar names, and reports of slow plugins."""

from __future__ import annotations

from kubesched.framework.plugin_answers import AnswerChecks
from kubesched.framework.status import SUCCESS, Status
from kubesched.inputs.errors import naming_slow_plugins, near_names


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


def test_of_many_names_the_most_similar_is_found_wherever_it_is() -> None:
    """All begin alike."""
    names = [f"web-{number:05}-x" for number in range(20_000)]
    assert near_names("web-19999-y", names)[0] == "web-19999-x"


# Slow plugins.


def test_slow_methods_are_reported_once() -> None:
    """A method may be slow in many runs of the scheduler, and is reported once."""
    clock = [0.0]

    def permit() -> tuple[Status, float]:
        clock[0] += 2.0
        return SUCCESS, 0.0

    def ask(plugin: str) -> None:
        AnswerChecks(plugin, lambda: clock[0]).ask("permit", permit)

    found: list[tuple[str, str]] = []
    with naming_slow_plugins(lambda method, mean: found.append((method, mean))):
        for plugin in ("Slow", "Slow", "Slower"):
            ask(plugin)
    ask("Later")
    assert [("Slow.permit", "2s"), ("Slower.permit", "2s")] == found
