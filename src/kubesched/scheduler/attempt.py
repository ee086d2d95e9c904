"""Attempt: a pod on its way through the phases of one scheduling cycle."""

from __future__ import annotations

import msgspec

from kubesched.framework.cycle_state import CycleState
from kubesched.scheduler.answers import Answers
from kubesched.scheduler.plan import Plan, Skip
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """What every phase of a cycle needs.

    Attributes:
        pod: The pod.
        snapshot: The cluster.
        known: The answers that the cycle starts with.
        plan: Which plugins to ask.
        cycle: The states of the plugins, which the phases add to.
        trace: Records what the plugins answer; None for no record.
        skips: The answers Skip that last.
    """

    pod: PodInfo
    snapshot: Snapshot
    known: Answers
    plan: Plan
    cycle: CycleState
    trace: Trace | None = None
    skips: list[Skip] = []
