"""The row of a pod: what its phase, conditions and containers add up to.

Upstream: pkg/printers/internalversion/printers.go (printPod, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.tables.texts import NONE, age, name_of, since

__all__ = ["pod_cells", "pod_row_conditions"]

_ENDS: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def pod_row_conditions(pod: Plain) -> list[Plain]:
    """Return what the row says besides its cells: whether the pod is over."""
    phase = get(pod, "status", "phase")
    if phase not in _ENDS:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _ENDS[phase]}]


def pod_cells(pod: Plain, now: datetime) -> list[Any]:
    """Return the cells of a pod."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    count = _Count(_first_reason(status), total=len(spec.get("containers") or ()))
    _count_containers(count, spec, status)
    return [
        name_of(pod),
        f"{count.ready}/{count.total}",
        _final_reason(count.reason, pod, status),
        count.restart_text(now),
        age(pod, now),
        _address(status),
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(spec, status),
    ]


class _Count(msgspec.Struct):
    """What is known after some of the containers.

    Attributes:
        reason: The status to show.
        total: Containers that can be ready.
        ready: Those that are.
        restarts: Of containers.
        last_restart: When one last ended; "" if never. Times sort as text.
    """

    reason: str
    total: int
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""

    def add_restarts(self, container: Plain) -> None:
        """Count how often a container began again."""
        self.restarts += container.get("restartCount") or 0
        ended = get(container, "lastState", "terminated", "finishedAt") or ""
        self.last_restart = max(self.last_restart, ended)

    def restart_text(self, now: datetime) -> str:
        """Return the cell."""
        if self.restarts and self.last_restart:
            return f"{self.restarts} ({since(self.last_restart, now)} ago)"
        return str(self.restarts)


def _first_reason(status: Plain) -> str:
    for condition in status.get("conditions") or ():
        if (condition.get("type"), condition.get("reason")) == ("PodScheduled", "SchedulingGated"):
            return "SchedulingGated"
    return status.get("reason") or status.get("phase") or ""


def _count_containers(count: _Count, spec: Plain, status: Plain) -> None:
    init_containers = spec.get("initContainers") or ()
    sidecars = {
        one["name"]: None for one in init_containers if one.get("restartPolicy") == "Always"
    }
    count.total += len(sidecars)
    of_sidecars = _Count("", 0)
    is_initializing = False
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        count.add_restarts(container)
        is_sidecar = container.get("name") in sidecars
        if is_sidecar:
            of_sidecars.add_restarts(container)
        if get(container, "state", "terminated") is not None and not _exit_code(container):
            continue
        if is_sidecar and container.get("started"):
            count.ready += bool(container.get("ready"))
            continue
        count.reason = _init_reason(container, index, len(init_containers))
        is_initializing = True
        break
    if not is_initializing or _is_true(status, "Initialized"):
        count.restarts, count.last_restart = of_sidecars.restarts, of_sidecars.last_restart
        _count_main_containers(count, status)


def _exit_code(container: Plain) -> int:
    return int(get(container, "state", "terminated", "exitCode") or 0)


def _init_reason(container: Plain, index: int, total: int) -> str:
    terminated = get(container, "state", "terminated")
    if terminated is not None:
        return f"Init:{_end_of(terminated)}"
    waits_for = get(container, "state", "waiting", "reason") or ""
    if waits_for not in ("", "PodInitializing"):
        return f"Init:{waits_for}"
    return f"Init:{index}/{total}"


def _end_of(terminated: Plain) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _count_main_containers(count: _Count, status: Plain) -> None:
    is_running = False
    error = ""
    for container in reversed(status.get("containerStatuses") or ()):
        count.add_restarts(container)
        terminated = get(container, "state", "terminated")
        if waits_for := get(container, "state", "waiting", "reason"):
            count.reason = waits_for
        elif terminated is not None:
            count.reason = _end_of(terminated)
            if _exit_code(container):
                error = count.reason
        elif container.get("ready") and get(container, "state", "running") is not None:
            is_running = True
            count.ready += 1
    if count.reason == "Completed":
        if is_running and _is_true(status, "Ready"):
            count.reason = "Running"
        elif error:
            count.reason = error
        elif is_running:
            count.reason = "NotReady"


def _is_true(status: Plain, condition_type: str) -> bool:
    conditions = status.get("conditions") or ()
    if condition_type == "Ready":
        return any(
            one.get("type") == condition_type and one.get("status") == "True" for one in conditions
        )
    for one in conditions:
        if one.get("type") == condition_type:
            return bool(one.get("status") == "True")
    return False


def _final_reason(reason: str, pod: Plain, status: Plain) -> str:
    if not get(pod, "metadata", "deletionTimestamp"):
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in _ENDS else "Terminating"


def _address(status: Plain) -> str:
    addresses = status.get("podIPs")
    first = addresses[0].get("ip") if addresses else status.get("podIP")
    return first or NONE


def _readiness_gates(spec: Plain, status: Plain) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return NONE
    conditions: dict[str, str] = {}
    for condition in status.get("conditions") or ():
        conditions.setdefault(condition.get("type", ""), condition.get("status", ""))
    passed = sum(conditions.get(gate["conditionType"]) == "True" for gate in gates)
    return f"{passed}/{len(gates)}"
