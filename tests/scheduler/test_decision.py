"""Properties of decisions."""

from __future__ import annotations

import pytest

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.status import SUCCESS
from kubesched.scheduler.decision import Rejected
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
def test_a_rejection_has_nomination_and_victims_of_post_filter(
    result: PostFilterResult | None, nominated: str | None, victims: tuple[object, ...]
) -> None:
    """Without PostFilter the nomination is cleared."""
    decision = Rejected(POD, Diagnosis(), "text", CycleState(), result)
    assert (nominated, victims) == (decision.nominated_node_name, decision.victims)
