"""What a decision says of itself."""

from __future__ import annotations

import pytest

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.status import SUCCESS, failure, unresolvable
from kubesched.scheduler.decision import NO_NODES, Failed, Rejected
from kubesched.testing.builders import make_pod_info

POD, VICTIM = make_pod_info("pod"), make_pod_info("victim")


@pytest.mark.parametrize(
    ("result", "nominated", "victims"),
    [
        pytest.param(None, "", (), id="no PostFilter plugins"),
        pytest.param(PostFilterResult(SUCCESS), None, (), id="no opinion"),
        pytest.param(PostFilterResult(SUCCESS, ""), "", (), id="clear"),
        pytest.param(PostFilterResult(SUCCESS, "a", (VICTIM,)), "a", (VICTIM,), id="preempt"),
    ],
)
def test_rejected(
    result: PostFilterResult | None, nominated: str | None, victims: tuple[object, ...]
) -> None:
    """Nomination and victims are those of PostFilter; nobody asked means that it is cleared."""
    decision = Rejected(POD, Diagnosis(), "text", CycleState(), result)
    assert (nominated, victims) == (decision.nominated_node_name, decision.victims)


def test_failed() -> None:
    """The message is the status'."""
    assert "broken" == Failed(POD, failure("broken")).message
    assert "no nodes available to schedule pods" == Failed(POD, unresolvable(NO_NODES)).message
