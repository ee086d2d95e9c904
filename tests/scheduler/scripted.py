"""A plugin for pod groups whose answers a test sets, and a profile with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    FilterPlugin,
    PermitPlugin,
    PostFilterPlugin,
    PostFilterResult,
    ReservePlugin,
)
from kubesched.framework.registry import Registry
from kubesched.framework.status import SUCCESS, Code, NodeToStatus, Status, unschedulable
from kubesched.plugins.registry import in_tree_registry
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node
from tests.scheduler.running import Running, make_group, make_member

GENERIC = {"GenericWorkload": True}

NO = unschedulable("no")
WAIT = Status(Code.WAIT, ("wait a little",))
ALL_NO = {"p1": NO, "p2": NO, "p3": NO}
ALL_WAIT = {"p1": WAIT, "p2": WAIT, "p3": WAIT}

# What a group's condition says.
GROUP = "pod group is unschedulable"
WAITS = "pod group is unschedulable, pod group is waiting for preemption to complete"
SCHEDULED = ("True", "Scheduled", "")
REJECTED = ("False", "Unschedulable", GROUP)
WAITING = ("False", "Unschedulable", WAITS)


class Script(FilterPlugin[None], PostFilterPlugin, ReservePlugin, PermitPlugin):
    """Answers by the pod's name; the default is success.

    Attributes:
        says: Extension point -> pod -> answer.
        asked: Every reservation, and its end.
    """

    name: ClassVar = "Script"
    says: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    asked: ClassVar[list[str]] = []

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Answer the same for all nodes."""
        status = self.says.get("filter", {}).get(pod.name, SUCCESS)
        if status.is_success:
            return NodeToStatus.passing(len(nodes))
        return NodeToStatus.everywhere(len(nodes), status)

    def post_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, statuses: NodeToStatus
    ) -> PostFilterResult:
        """Nominate, or clear the nomination."""
        node_name = self.says.get("nominate", {}).get(pod.name)
        if node_name is None:
            return PostFilterResult(unschedulable(), "")
        return PostFilterResult(SUCCESS, node_name)

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Record the call."""
        self.asked.append(f"+{pod.name}")
        answer: Status = self.says.get("reserve", {}).get(pod.name, SUCCESS)
        return answer

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Record the call."""
        self.asked.append(f"-{pod.name}")

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Return Wait with a timeout of a second."""
        return self.says.get("permit", {}).get(pod.name, SUCCESS), 1.0


def scripted(**says: Mapping[str, object]) -> tuple[type[Script], dict[str, Any]]:
    """Make a plugin with these answers, and the arguments of `running` for its profile."""
    script = type("Script", (Script,), {"name": "Script", "says": says, "asked": []})
    registry = Registry(*in_tree_registry().values(), script)
    names = ("PrioritySort", "Script", "DefaultBinder")
    enabled = [{"name": name} for name in names]
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}},
    }
    return script, {"registry": registry, "profile": profile, "gates": GENERIC}


async def arrive(cluster: Running) -> None:
    """Create one node, a group, and its pods p1, p2 and p3."""
    cluster.api.create(make_node("node"), make_group())
    cluster.api.create(*(make_member(name) for name in ("p1", "p2", "p3")))
    await cluster.settle()
