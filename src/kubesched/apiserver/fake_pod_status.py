"""The status that a kubelet would write for a pod that runs, ends, or begins again; pure.

Upstream: pkg/kubelet/kubelet_pods.go, status/generate.go (v1.36)
Differs:  containers start and end together; nothing is pulled, probed or measured.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from kubesched.apiserver.plain import Plain

_COMPLETED = "PodCompleted"


class Addresses(msgspec.Struct, frozen=True):
    """Where a pod is.

    Attributes:
        host: The address of its node; "" for none.
        pod: Its own.
    """

    host: str
    pod: str


def running(pod: Plain, now: str, addresses: Addresses) -> Plain:
    """Return the status of a pod whose containers have just started."""
    status = _begun(pod, now, addresses)
    status["phase"] = "Running"
    status["conditions"] = _conditions(pod, now, is_running=True)
    _put_containers(status, pod, {"running": {"startedAt": now}}, now)
    return status


def ended(pod: Plain, now: str, exit_code: int) -> Plain:
    """Return the status of a pod whose containers have ended and stay so."""
    status = dict(pod.get("status", {}))
    status["phase"] = "Failed" if exit_code else "Succeeded"
    status["conditions"] = _conditions(pod, now, is_running=False)
    _put_containers(status, pod, _terminated(pod, now, exit_code), now)
    return status


def restarted(pod: Plain, now: str, exit_code: int) -> Plain:
    """Return the status of a pod whose containers have ended, and run again at once."""
    status = dict(pod.get("status", {}))
    last = _terminated(pod, now, exit_code)
    state = {"running": {"startedAt": now}}
    status["containerStatuses"] = [
        {**one, "restartCount": one["restartCount"] + 1, "lastState": last, "state": state}
        for one in status.get("containerStatuses", [])
    ]
    return status


def resized(pod: Plain) -> Plain:
    """Return the status of a running pod with the resources that its spec asks for now."""
    status = dict(pod.get("status", {}))
    for field, containers in _FIELDS:
        found = {one["name"]: one for one in pod["spec"].get(containers, [])}
        if field in status:
            status[field] = [{**one, **_resources(found[one["name"]])} for one in status[field]]
    return _observed(status, pod)


_FIELDS = (("initContainerStatuses", "initContainers"), ("containerStatuses", "containers"))


def _begun(pod: Plain, now: str, addresses: Addresses) -> Plain:
    status = _observed(dict(pod.get("status", {})), pod)
    status.setdefault("startTime", now)
    for names, name, address in (
        ("hostIPs", "hostIP", addresses.host),
        ("podIPs", "podIP", addresses.pod),
    ):
        if address:
            status[name] = address
            status[names] = [{"ip": address}]
    return status


def _observed(status: Plain, pod: Plain) -> Plain:
    generation = pod["metadata"].get("generation")
    return {**status, "observedGeneration": generation} if generation else status


def _conditions(pod: Plain, now: str, *, is_running: bool) -> list[Plain]:
    """Return the conditions in the kubelet's order; those of others stay."""
    before = {one["type"]: one for one in pod.get("status", {}).get("conditions", [])}
    wanted = [
        ("PodReadyToStartContainers", is_running, ""),
        ("Initialized", True, "" if is_running else _COMPLETED),
        ("Ready", is_running and _passes_gates(pod, before), "" if is_running else _COMPLETED),
        ("ContainersReady", is_running, "" if is_running else _COMPLETED),
    ]
    conditions = []
    for type_, is_true, reason in wanted:
        condition: Plain = {
            "type": type_,
            "status": "True" if is_true else "False",
            "lastProbeTime": None,
            "lastTransitionTime": now,
        }
        if reason:
            condition["reason"] = reason
        old = before.pop(type_, None)
        if old is not None and old["status"] == condition["status"]:
            condition["lastTransitionTime"] = old.get("lastTransitionTime")
        conditions.append(condition)
    return [*conditions, *before.values()]


def _passes_gates(pod: Plain, conditions: dict[str, Plain]) -> bool:
    gates = pod["spec"].get("readinessGates", ())
    return all(conditions.get(gate["conditionType"], {}).get("status") == "True" for gate in gates)


def _put_containers(status: Plain, pod: Plain, state: Plain, now: str) -> None:
    spec = pod["spec"]
    before = {one["name"]: one for field, _ in _FIELDS for one in status.get(field, ())}
    if spec.get("initContainers"):
        status["initContainerStatuses"] = [
            _init_status(pod, one, state, before.get(one["name"]), now)
            for one in spec["initContainers"]
        ]
    is_running = "running" in state
    status["containerStatuses"] = [
        _status(pod, one, state, before.get(one["name"]), is_ready=is_running)
        for one in spec["containers"]
    ]


def _init_status(pod: Plain, container: Plain, state: Plain, old: Plain | None, now: str) -> Plain:
    if container.get("restartPolicy") == "Always":
        return _status(pod, container, state, old, is_ready="running" in state)
    if old is not None and "terminated" in old.get("state", {}):
        return old
    state = {"terminated": _termination(now, now, 0)}
    return {**_status(pod, container, state, old, is_ready=True), "started": False}


def _status(
    pod: Plain, container: Plain, state: Plain, old: Plain | None, *, is_ready: bool
) -> Plain:
    image = container.get("image", "")
    name = container["name"]
    return {
        "name": name,
        "state": state,
        "lastState": {} if old is None else old.get("lastState", {}),
        "ready": is_ready,
        "restartCount": 0 if old is None else old["restartCount"],
        "image": image,
        "imageID": image,
        "containerID": f"fake://{sha256((pod['metadata']['uid'] + name).encode()).hexdigest()}",
        "started": is_ready,
        **_resources(container),
    }


def _resources(container: Plain) -> Plain:
    """Return the resources that a container has been given, where it has asked for any."""
    resources = container.get("resources")
    if not resources:
        return {}
    found: Plain = {"resources": resources}
    if resources.get("requests"):
        found["allocatedResources"] = resources["requests"]
    return found


def _terminated(pod: Plain, now: str, exit_code: int) -> Plain:
    statuses = pod.get("status", {}).get("containerStatuses") or [{}]
    begun = statuses[0].get("state", {}).get("running", {}).get("startedAt", now)
    return {"terminated": _termination(begun, now, exit_code)}


def _termination(begun: str, now: str, exit_code: int) -> Plain:
    return {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": begun,
        "finishedAt": now,
    }
