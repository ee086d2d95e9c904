"""Failures of plugins have a message, even if the plugin gave none."""

from __future__ import annotations

import pytest

from kubesched.framework.status import SKIP, Code, Status, failure, unschedulable
from kubesched.scheduler.plugin_failure import reported


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (failure("no licence"), 'running "Mine" filter plugin: no licence'),
        (SKIP, 'running "Mine" filter plugin: the plugin returned Skip without a reason'),
        (
            Status(Code.WAIT),
            'running "Mine" filter plugin: the plugin returned Wait without a reason',
        ),
        (unschedulable("no"), "no"),
    ],
)
def test_messages(status: Status, message: str) -> None:
    """Upstream's prefix, and the plugin's text or the code."""
    found = reported("filter", "Mine", status)
    assert message == found.message
    assert "Mine" == found.plugin
