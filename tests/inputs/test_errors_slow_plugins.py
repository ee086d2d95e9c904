"""Commands without a log report slow plugins to their user."""

from __future__ import annotations

from kubesched.framework.plugin_answers import AnswerChecks
from kubesched.framework.status import SUCCESS, Status
from kubesched.inputs.errors import naming_slow_plugins


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
