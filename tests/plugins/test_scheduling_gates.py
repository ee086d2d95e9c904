from __future__ import annotations

import pytest

from kubesched.framework.status import Code
from kubesched.plugins.scheduling_gates import SchedulingGates
from kubesched.testing.builders import make_pod, make_pod_info, make_snapshot
from kubesched.testing.handle import FakeHandle

PLUGIN = SchedulingGates(None, FakeHandle())


@pytest.mark.parametrize(
    ("gates", "reason"),
    [
        pytest.param((), None, id="none"),
        pytest.param(("foo",), "waiting for scheduling gates: [foo]", id="one"),
        pytest.param(("foo", "bar"), "waiting for scheduling gates: [foo bar]", id="in-pod-order"),
    ],
)
def test_pre_enqueue(gates: tuple[str, ...], reason: str | None) -> None:
    """A pod with gates is rejected, and the message lists its gates in order."""
    status = PLUGIN.pre_enqueue(make_pod_info(scheduling_gates=gates), make_snapshot())
    assert (reason is None) == status.is_success
    if reason is not None:
        assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE == status.code
        assert (reason,) == status.reasons


def test_hint() -> None:
    """Only the pod itself can lose its gates."""
    (registration,) = PLUGIN.events_to_register()
    assert "PodUpdatePodSchedulingGatesEliminated" == registration.event.label
    assert registration.hint is not None
    gated = make_pod("a", scheduling_gates=["foo"])
    assert registration.hint(gated, gated, make_pod("a"))
    assert not registration.hint(gated, make_pod("b", scheduling_gates=["x"]), make_pod("b"))
