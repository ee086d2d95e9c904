"""Kubelets' reports as the statuses that the embedded API server stores, with addresses.

An annotation of a pod sets for how many seconds it runs, another one its exit code; otherwise
the restart policy decides.

Upstream: pkg/kubelet/kubelet_pods.go, pkg/kubelet/status (v1.36)
Differs:  containers start and end together; nothing is pulled, probed or measured.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from ipaddress import IPv4Network
from itertools import cycle
from random import Random
from typing import Final

import msgspec

from kubesched.api.core import Node, Pod
from kubesched.api.meta import annotated_number
from kubesched.cluster.kubelets import Kubelets, Lifetime, Pace, PodReports
from kubesched.cluster.server import Plain, since_changed
from kubesched.cluster.store import Key
from kubesched.sandbox.local_client import LocalClient

_POD_NETWORK: Final = IPv4Network("10.128.0.0/9")
RUN_SECONDS: Final = "sandbox/run-seconds"
"""The annotation that sets for how many seconds a pod runs before it ends."""
EXIT_CODE: Final = "sandbox/exit-code"
"""The annotation that sets the exit code of a pod's containers; 0 if it is missing."""
# Without a backoff, containers that end at once would restart thousands of times a second.
_RESTART_SECONDS: Final = 0.1


class PodLatencies(msgspec.Struct, frozen=True):
    """How long pods take, in seconds.

    Attributes:
        start: From the binding until it runs; each pod draws between half and one and a half
            times as long.
        stop: From its deletion until it is gone; drawn in the same way, at most its grace period.
        run: How long a pod runs if its restart policy lets it end.
    """

    start: float = 1.0
    stop: float = 1.0
    run: float = 10.0


def kubelets_of(client: LocalClient, latencies: PodLatencies, random: Random) -> Kubelets:
    """Return the kubelets of all nodes of a server, which run where nodes are ready."""
    pace = Pace(
        lambda: latencies.start * random.uniform(0.5, 1.5),
        lambda: latencies.stop * random.uniform(0.5, 1.5),
        lambda pod: lifetime_of(pod, latencies.run),
    )
    kubelets = Kubelets(client, StoredReports(client), pace)
    kubelets.follow_nodes()
    return kubelets


def lifetime_of(pod: Pod, usual_seconds: float) -> Lifetime | None:
    """Return the seconds that a pod runs; None if it runs until it is deleted.

    Pods that may end and have no annotation run for `usual_seconds`.
    """
    policy = pod.spec.restart_policy or "Always"
    seconds = annotated_number(pod.metadata, RUN_SECONDS)
    if seconds is None:
        if policy == "Always":
            return None
        seconds = usual_seconds
    exit_code = int(annotated_number(pod.metadata, EXIT_CODE) or 0)
    restarts = policy == "Always" or (policy == "OnFailure" and exit_code != 0)
    return Lifetime(max(seconds, _RESTART_SECONDS * restarts), exit_code, restarts)


class StoredReports(PodReports):
    """Writes the statuses of pods, and gives out their addresses."""

    def __init__(self, client: LocalClient) -> None:
        self._client = client
        # An address that was freed is used again last.
        self._addresses = map(str, cycle(_POD_NETWORK.hosts()))
        self._by_uid = {
            pod.metadata.uid: pod.status.pod_ip for pod in client.all(Pod) if pod.status.pod_ip
        }
        self._used = set(self._by_uid.values())

    def started(self, pod: Pod) -> Pod:
        """Report that all containers run."""
        node = self._client.read(Node, "", pod.spec.node_name)
        addresses = () if node is None else node.status.addresses
        host = {one.type: one.address for one in addresses}.get("InternalIP", "")
        address = host if pod.spec.host_network else self._address(pod.metadata.uid)
        return self._report(pod, lambda plain, now: _running(plain, now, host, address))

    def restarted(self, pod: Pod, exit_code: int) -> Pod:
        """Report that all containers ended and run again."""
        return self._report(pod, lambda plain, now: _restarted(plain, now, exit_code))

    def ended(self, pod: Pod, exit_code: int) -> Pod:
        """Report that all containers ended for good."""
        return self._report(pod, lambda plain, now: _ended(plain, now, exit_code))

    def changed(self, pod: Pod) -> None:
        """Report what a running pod requests now, and whether its gates let it be ready."""
        self._report(pod, _changed)

    def forget(self, pod_uid: str) -> None:
        """Free the address of a pod that is gone."""
        self._used.discard(self._by_uid.pop(pod_uid, ""))

    def _address(self, pod_uid: str) -> str:
        """Return the address of a pod, a free one if it has none yet."""
        found = self._by_uid.get(pod_uid)
        if found is None:
            found = next(address for address in self._addresses if address not in self._used)
            self._by_uid[pod_uid] = found
            self._used.add(found)
        return found

    def _report(self, pod: Pod, status_of: Callable[[Plain, str], Plain]) -> Pod:
        key = Key("pods", pod.metadata.namespace, pod.metadata.name)
        plain = self._client.find(*key)
        assert plain is not None, "kubelets report pods that are there"
        status = status_of(plain, self._client.timestamp())
        if status != plain.get("status"):
            self._client.patch_status(key, status)
        written = self._client.read(Pod, key.namespace, key.name)
        assert written is not None, "a status does not remove a pod"
        return written


_REASONS: Final = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}
_FIELDS: Final = (
    ("initContainerStatuses", "initContainers"),
    ("containerStatuses", "containers"),
)


def _running(pod: Plain, now: str, host: str, address: str) -> Plain:
    """Return the status of a pod whose containers have just started.

    `host` is the address of its node, `address` its own; "" for none.
    """
    status = _observed(dict(pod.get("status", {})), pod)
    status.setdefault("startTime", now)
    for names, name, one in (("hostIPs", "hostIP", host), ("podIPs", "podIP", address)):
        if one:
            status[name] = one
            status[names] = [{"ip": one}]
    status["phase"] = "Running"
    status["conditions"] = _conditions(pod, now, "Running")
    _put_containers(status, pod, {"running": {"startedAt": now}}, now)
    return status


def _ended(pod: Plain, now: str, exit_code: int) -> Plain:
    """Return the status of a pod whose containers have ended for good."""
    status = dict(pod.get("status", {}))
    status["phase"] = "Failed" if exit_code else "Succeeded"
    status["conditions"] = _conditions(pod, now, status["phase"])
    _put_containers(status, pod, _terminated(pod, now, exit_code), now)
    return status


def _restarted(pod: Plain, now: str, exit_code: int) -> Plain:
    """Return the status of a pod whose containers have ended, and run again at once."""
    status = dict(pod.get("status", {}))
    last = _terminated(pod, now, exit_code)
    state = {"running": {"startedAt": now}}
    status["containerStatuses"] = [
        {**one, "restartCount": one["restartCount"] + 1, "lastState": last, "state": state}
        for one in status.get("containerStatuses", [])
    ]
    return status


def _changed(pod: Plain, now: str) -> Plain:
    """Return the status of a running pod whose spec or status a client may have changed."""
    status = dict(pod["status"])
    is_observed = pod["metadata"].get("generation") == status.get("observedGeneration")
    if is_observed and not pod["spec"].get("readinessGates"):
        return status
    for field, containers in _FIELDS:
        found = {one["name"]: one for one in pod["spec"].get(containers, [])}
        if field in status:
            # A client may have written the status of a container that does not exist.
            status[field] = [
                {**one, **_resources(found.get(one["name"], {}))} for one in status[field]
            ]
    if ephemeral := pod["spec"].get("ephemeralContainers"):
        # `kubectl debug` waits until its container runs, and then fails to attach to it.
        begun = {one["name"]: one for one in status.get("ephemeralContainerStatuses", ())}
        state = {"running": {"startedAt": now}}
        status["ephemeralContainerStatuses"] = [
            begun.get(one["name"]) or _status(pod, one, state, None, is_ready=False)
            for one in ephemeral
        ]
    status["conditions"] = _conditions(pod, now, "Running")
    return _observed(status, pod)


def _observed(status: Plain, pod: Plain) -> Plain:
    """Return a status or condition with the generation of the pod that it is about."""
    generation = pod["metadata"].get("generation")
    return {**status, "observedGeneration": generation} if generation else status


def _conditions(pod: Plain, now: str, phase: str) -> list[Plain]:
    """Return the conditions in the kubelet's order; those of others stay."""
    before = {one["type"]: one for one in pod.get("status", {}).get("conditions", [])}
    is_running, ended = phase == "Running", _REASONS.get(phase, "")
    closed = _closed_gates(pod, before) if is_running else ""
    wanted = [
        ("PodReadyToStartContainers", is_running, "", ""),
        ("Initialized", True, ended if phase == "Succeeded" else "", ""),
        ("Ready", is_running and not closed, "ReadinessGatesNotReady" if closed else ended, closed),
        ("ContainersReady", is_running, ended, ""),
        ("PodScheduled", True, "", ""),
    ]
    found: dict[str, Plain] = {}
    for type_, is_true, reason, message in wanted:
        status = "True" if is_true else "False"
        condition: Plain = {"type": type_, "status": status, "lastProbeTime": None}
        told = {"reason": reason, "message": message}
        condition |= {name: text for name, text in told.items() if text}
        found[type_] = since_changed(_observed(condition, pod), before.get(type_), now)
    return [*found.values(), *(one for type_, one in before.items() if type_ not in found)]


def _closed_gates(pod: Plain, conditions: dict[str, Plain]) -> str:
    """Return which readiness gates keep a pod from being ready, and why; "" if none does."""
    found = []
    for gate in pod["spec"].get("readinessGates", ()):
        name = gate["conditionType"]
        status = conditions.get(name, {}).get("status")
        if status is None:
            found.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif status != "True":
            found.append(f'the status of pod readiness gate "{name}" is not "True", but {status}')
    return ", ".join(found)


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
    """Return the resources that a container has been given; none if it requests none."""
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
