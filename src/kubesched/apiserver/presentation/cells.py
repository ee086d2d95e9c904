"""Cells that are computed from several fields, and durations.

Upstream: pkg/printers/internalversion/printers.go,
          staging/src/k8s.io/apimachinery/pkg/util/duration/duration.go (v1.36)
Differs:  storage classes are shown by fields, without the annotations of a beta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from kubesched.apiserver.plain import Plain, get

UNKNOWN: Final = "<unknown>"
_UNITS: Final = {"y": 365 * 86_400, "d": 86_400, "h": 3600, "m": 60, "s": 1}
# Durations below so many seconds are shown in these units, the smaller one only for a rest.
_STEPS: Final = (
    (2 * _UNITS["m"], "s"),
    (10 * _UNITS["m"], "ms"),
    (3 * _UNITS["h"], "m"),
    (8 * _UNITS["h"], "hm"),
    (2 * _UNITS["d"], "h"),
    (8 * _UNITS["d"], "dh"),
    (2 * _UNITS["y"], "d"),
    (8 * _UNITS["y"], "yd"),
    (math.inf, "y"),
)


def since(text: Any, now: datetime) -> str:
    """Return the age of a time."""
    return human_duration((now - datetime.fromisoformat(text)).total_seconds())


def human_duration(duration_seconds: float) -> str:
    """Return a duration with two or three digits."""
    seconds = int(duration_seconds)
    if seconds < -1:
        return "<invalid>"
    text, rest = "", max(seconds, 0)
    for unit in next(units for limit, units in _STEPS if rest < limit):
        count, rest = divmod(rest, _UNITS[unit])
        if count or not text:
            text += f"{count}{unit}"
    return text


NONE: Final = "<none>"


def join(labels: Mapping[str, str] | None) -> str:
    """Return labels in the form of a selector."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


# Pods.

_ENDS: Final = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def pod_row_conditions(pod: Plain) -> list[Plain]:
    """Return the conditions of a pod's row: that it has completed."""
    phase = get(pod, "status", "phase")
    if phase not in _ENDS:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _ENDS[phase]}]


class _Progress(NamedTuple):
    """The status to show for a pod, and how many of its containers are ready.

    The restarts of the containers with the `counted` statuses are shown.
    """

    reason: str
    ready: int
    total: int
    counted: list[Plain]


def _progress(pod: Plain) -> _Progress:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    init_containers = spec.get("initContainers") or ()
    sidecars = [one["name"] for one in init_containers if one.get("restartPolicy") == "Always"]
    total = len(spec.get("containers") or ()) + len(sidecars)
    reason, ready, is_initializing = _first_reason(status), 0, False
    counted: list[Plain] = []
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        counted.append(container)
        terminated = get(container, "state", "terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        reason = _init_reason(container, index, len(init_containers))
        is_initializing = True
        break
    if not is_initializing or _is_true(status, "Initialized"):
        main = status.get("containerStatuses") or []
        counted = [*(one for one in counted if one.get("name") in sidecars), *main]
        running = sum(map(_is_running, main))
        ready, reason = ready + running, _main_reason(reason, main, running > 0, status)
    return _Progress(reason, ready, total, counted)


def _pod_ready(pod: Plain, _now: datetime) -> str:
    progress = _progress(pod)
    return f"{progress.ready}/{progress.total}"


def _pod_status(pod: Plain, _now: datetime) -> str:
    reason, status = _progress(pod).reason, pod.get("status") or {}
    if not get(pod, "metadata", "deletionTimestamp"):
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in _ENDS else "Terminating"


def _pod_restarts(pod: Plain, now: datetime) -> str:
    counted = _progress(pod).counted
    restarts = sum(container.get("restartCount") or 0 for container in counted)
    ends = (get(one, "lastState", "terminated", "finishedAt") or "" for one in counted)
    # Times sort as text.
    last = max(ends, default="")
    return f"{restarts} ({since(last, now)} ago)" if restarts and last else str(restarts)


def _first_reason(status: Plain) -> str:
    for condition in status.get("conditions") or ():
        if (condition.get("type"), condition.get("reason")) == ("PodScheduled", "SchedulingGated"):
            return "SchedulingGated"
    return status.get("reason") or status.get("phase") or ""


def _init_reason(container: Plain, index: int, total: int) -> str:
    if (terminated := get(container, "state", "terminated")) is not None:
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


def _is_running(container: Plain) -> bool:
    """Return whether a container is ready, and nothing else is known of it."""
    state = container.get("state") or {}
    is_over = (state.get("waiting") or {}).get("reason") or state.get("terminated") is not None
    return bool(not is_over and container.get("ready") and state.get("running") is not None)


def _main_reason(reason: str, containers: list[Plain], is_running: bool, status: Plain) -> str:
    """Return the status to show for a pod that is initialized; its first container counts most."""
    error = ""
    for container in reversed(containers):
        terminated = get(container, "state", "terminated")
        if waits_for := get(container, "state", "waiting", "reason"):
            reason = waits_for
        elif terminated is not None:
            reason = _end_of(terminated)
            error = reason if terminated.get("exitCode") else error
    if reason != "Completed":
        return reason
    if is_running:
        return "Running" if _is_true(status, "Ready") else error or "NotReady"
    return error or reason


def _is_true(status: Plain, condition_type: str) -> bool:
    held = ((one.get("type"), one.get("status")) for one in status.get("conditions") or ())
    return (condition_type, "True") in held


def _pod_address(pod: Plain, _now: datetime) -> str:
    status = pod.get("status") or {}
    addresses = status.get("podIPs")
    first = addresses[0].get("ip") if addresses else status.get("podIP")
    return first or NONE


def _pod_gates(pod: Plain, _now: datetime) -> str:
    gates, status = get(pod, "spec", "readinessGates") or (), pod.get("status") or {}
    if not gates:
        return NONE
    passed = sum(_is_true(status, gate["conditionType"]) for gate in gates)
    return f"{passed}/{len(gates)}"


# Nodes.


def _node_status(node: Plain, _now: datetime) -> str:
    ready = "Unknown"
    if condition := _conditions(node).get("Ready"):
        ready = "Ready" if condition.get("status") == "True" else "NotReady"
    return f"{ready},SchedulingDisabled" if get(node, "spec", "unschedulable") else ready


def _node_roles(node: Plain, _now: datetime) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = get(node, "metadata", "labels") or {}
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(filter(None, roles))) or NONE


def _node_address(kind: str) -> Callable[[Plain, datetime], str]:
    def cell(node: Plain, _now: datetime) -> str:
        for address in get(node, "status", "addresses") or ():
            if address.get("type") == kind:
                return str(address.get("address", ""))
        return NONE

    return cell


def _kernel(node: Plain, _now: datetime) -> str:
    machine = get(node, "status", "nodeInfo") or {}
    architecture = machine.get("architecture")
    kernel = machine.get("kernelVersion") or UNKNOWN
    return f"{kernel} ({architecture})" if architecture else kernel


# Events.


def _event_object(event: Plain, _now: datetime) -> str:
    about = event.get("involvedObject") or {}
    kind = str(about.get("kind", "")).lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _event_source(event: Plain, _now: datetime) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


# Volumes, claims and classes.


def _phase(value: Plain, _now: datetime) -> str:
    if get(value, "metadata", "deletionTimestamp"):
        return "Terminating"
    return str(get(value, "status", "phase") or "")


_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def modes_text(modes: Sequence[str] | None) -> str:
    """Return the abbreviations of access modes."""
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in (modes or ()))


def _class_name(storage_class: Plain, _now: datetime) -> str:
    annotations = get(storage_class, "metadata", "annotations") or {}
    is_default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    name = str(get(storage_class, "metadata", "name") or "")
    return f"{name} (default)" if is_default else name


def _claim_state(claim: Plain, _now: datetime) -> str:
    is_deleted = bool(get(claim, "metadata", "deletionTimestamp"))
    is_allocated = get(claim, "status", "allocation") is not None
    states = {
        "deleted": is_deleted,
        "pending": not is_allocated and not is_deleted,
        "allocated": is_allocated,
        "reserved": is_allocated and bool(get(claim, "status", "reservedFor")),
    }
    return ",".join(state for state, holds in states.items() if holds)


# Services.


def _service_ports(service: Plain, _now: datetime) -> str:
    texts = []
    for port in get(service, "spec", "ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port.get('port', 0)}{node_port}/{port.get('protocol', '')}")
    return ",".join(texts) or NONE


def _service_address(service: Plain, _now: datetime) -> str:
    spec = service.get("spec") or {}
    external = spec.get("externalIPs") or []
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") != "LoadBalancer":
        return ",".join(external) or NONE
    ingress = get(service, "status", "loadBalancer", "ingress") or ()
    found = {one.get("ip") or one.get("hostname", "") for one in ingress}
    return ",".join([*sorted(filter(None, found)), *external]) or "<pending>"


# Workloads.


def _conditions(value: Plain) -> dict[str, Plain]:
    return {one.get("type", ""): one for one in get(value, "status", "conditions") or ()}


def _job_status(job: Plain, _now: datetime) -> str:
    held = {name for name, one in _conditions(job).items() if one.get("status") == "True"}
    for name in ("Complete", "Failed"):
        if name in held:
            return name
    if get(job, "metadata", "deletionTimestamp"):
        return "Terminating"
    states = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((state for state in states if state in held), "Running")


def _completions(job: Plain, _now: datetime) -> str:
    succeeded = get(job, "status", "succeeded") or 0
    if (wanted := get(job, "spec", "completions")) is not None:
        return f"{succeeded}/{wanted}"
    parallelism = get(job, "spec", "parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Plain, now: datetime) -> str:
    start, end = (get(job, "status", name) for name in ("startTime", "completionTime"))
    if not start:
        return ""
    until = datetime.fromisoformat(end) if end else now
    return human_duration((until - datetime.fromisoformat(start)).total_seconds())


def _certificate_state(request: Plain, _now: datetime) -> str:
    conditions = _conditions(request)
    state = next((one for one in ("Denied", "Approved") if one in conditions), "Pending")
    return state + (",Issued" if get(request, "status", "certificate") else "")


def _group_policy(group: Plain, _now: datetime) -> str:
    return "Basic" if get(group, "spec", "schedulingPolicy", "gang") is None else "Gang"


def _group_status(group: Plain, _now: datetime) -> str:
    conditions = _conditions(group)
    if disruption := conditions.get("DisruptionTarget"):
        return str(disruption.get("reason", ""))
    scheduled = conditions.get("PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


CELLS: Final[Mapping[str, Callable[[Plain, datetime], Any]]] = {
    "certificate_state": _certificate_state,
    "claim_state": _claim_state,
    "class_name": _class_name,
    "completions": _completions,
    "event_object": _event_object,
    "event_source": _event_source,
    "external_address": _node_address("ExternalIP"),
    "group_policy": _group_policy,
    "group_status": _group_status,
    "internal_address": _node_address("InternalIP"),
    "job_duration": _job_duration,
    "job_status": _job_status,
    "kernel": _kernel,
    "node_roles": _node_roles,
    "node_status": _node_status,
    "phase": _phase,
    "pod_address": _pod_address,
    "pod_gates": _pod_gates,
    "pod_ready": _pod_ready,
    "pod_restarts": _pod_restarts,
    "pod_status": _pod_status,
    "service_address": _service_address,
    "service_ports": _service_ports,
}
"""By their names in `columns.txt`."""
