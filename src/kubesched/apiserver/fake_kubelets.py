"""FakeKubelets let pods run that have no machine: they start, run, end and stop in time.

A pod runs until it is deleted, unless an annotation says for how many seconds, or its restart
policy says that it is to end. How it ends, an annotation may say too.

Upstream: pkg/kubelet, as the API server sees it (v1.36)
Invariants: a pod that runs is bound to a node that is there and ready; it is gone when its grace
            period ends at the latest.
Differs:  nodes never refuse a pod; containers that end are restarted without backing off; there are
          no probes, static pods, deadlines or ephemeral containers.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

import msgspec

from kubesched.api.errors import ApiError
from kubesched.apiserver import fake_pod_status as statuses
from kubesched.apiserver.fake_pod_status import Addresses
from kubesched.apiserver.follower import Follower
from kubesched.apiserver.local_client import LocalClient
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.pod_addresses import PodAddresses
from kubesched.cluster.store import Key

RUN_SECONDS: Final = "sandbox/run-seconds"
"""The annotation that says for how many seconds a pod runs before it ends."""
EXIT_CODE: Final = "sandbox/exit-code"
"""The annotation that says what its containers exit with; 0 if it is missing."""
FINISHED: Final = ("Succeeded", "Failed")


class Latencies(msgspec.Struct, frozen=True):
    """How long pods take, in seconds.

    Attributes:
        start: From the binding until it runs; give or take a half.
        stop: From its deletion until it is gone; give or take a half, and never beyond its grace.
        run: Until a pod ends that its restart policy lets end.
    """

    start: float = 1.0
    stop: float = 1.0
    run: float = 10.0


class _Work:
    """A pod on a node, and what is to happen to it next."""

    __slots__ = ("address", "key", "node_name", "stops_at", "timer", "uid")

    def __init__(self, key: Key, pod: Plain, address: str) -> None:
        self.key = key
        self.uid: str = pod["metadata"]["uid"]
        self.node_name: str = pod["spec"]["nodeName"]
        self.address = address
        self.timer: asyncio.TimerHandle | None = None
        self.stops_at: float | None = None

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class FakeKubelets:
    """The kubelets of all nodes."""

    def __init__(self, client: LocalClient, latencies: Latencies, random: Random) -> None:
        """Prepare; nothing happens before `start`.

        Args:
            client: Where pods and nodes are.
            latencies: How long things take.
            random: Varies the times.
        """
        self._client = client
        self._latencies = latencies
        self._random = random
        self._works: dict[Key, _Work] = {}
        self._by_node: dict[str, dict[Key, _Work]] = {}
        self._hosts: dict[str, str] = {}
        self._addresses = PodAddresses()
        self._followers = (
            Follower(client.store, "nodes", self._node_changed),
            Follower(client.store, "pods", self._pod_changed),
        )

    def start(self) -> None:
        """See to the pods that are there, and follow from now on."""
        for pod in self._client.list("pods"):
            self._addresses.use(pod.get("status", {}).get("podIP", ""))
        for follower in self._followers:
            follower.start()

    def stop(self) -> None:
        """Do nothing more; stopping twice is fine."""
        for follower in self._followers:
            follower.stop()
        for work in self._works.values():
            work.cancel()

    # Nodes.

    def _node_changed(self, key: Key, _before: Plain | None, node: Plain | None) -> None:
        host = None if node is None else _host_of(node)
        if host == self._hosts.get(key.name):
            return
        if host is None:
            del self._hosts[key.name]
        else:
            self._hosts[key.name] = host
        for work in tuple(self._by_node.get(key.name, {}).values()):
            pod = self._pod(work)
            work.cancel()
            work.stops_at = None
            if pod is not None:
                self._take_up(work, pod)

    # Pods.

    def _pod_changed(self, key: Key, _before: Plain | None, pod: Plain | None) -> None:
        work = self._works.get(key)
        if work is not None and (pod is None or pod["metadata"]["uid"] != work.uid):
            self._forget(work)
            work = None
        if pod is None or not pod["spec"].get("nodeName"):
            return
        if work is None:
            work = self._accepted(key, pod)
            self._take_up(work, pod)
        elif pod["metadata"].get("deletionTimestamp"):
            self._stop_soon(work, pod)
        elif pod["status"].get("phase") == "Running" and _is_resized(pod):
            self._write(work, pod, statuses.resized(pod))

    def _accepted(self, key: Key, pod: Plain) -> _Work:
        address = pod.get("status", {}).get("podIP") or self._addresses.draw()
        work = _Work(key, pod, address)
        self._works[key] = work
        self._by_node.setdefault(work.node_name, {})[key] = work
        return work

    def _forget(self, work: _Work) -> None:
        work.cancel()
        del self._works[work.key]
        on_node = self._by_node[work.node_name]
        del on_node[work.key]
        if not on_node:
            del self._by_node[work.node_name]
        self._addresses.give_back(work.address)

    def _take_up(self, work: _Work, pod: Plain) -> None:
        """Begin whatever the pod's state asks for; without its node, nothing happens."""
        if work.node_name not in self._hosts:
            return
        phase = pod.get("status", {}).get("phase")
        if pod["metadata"].get("deletionTimestamp"):
            self._stop_soon(work, pod)
        elif phase == "Running":
            self._end_in_time(work, pod)
        elif phase not in FINISHED:
            self._after(self._about(self._latencies.start), work, self._run)

    def _run(self, work: _Work) -> None:
        pod = self._pod(work)
        if pod is not None and not pod["metadata"].get("deletionTimestamp"):
            host = self._hosts[work.node_name]
            address = host if pod["spec"].get("hostNetwork") else work.address
            status = statuses.running(pod, self._now(), Addresses(host, address))
            self._end_in_time(work, self._write(work, pod, status))

    def _end_in_time(self, work: _Work, pod: Plain) -> None:
        seconds = self._run_seconds(pod)
        if seconds is not None:
            self._after(seconds, work, self._end)

    def _run_seconds(self, pod: Plain) -> float | None:
        """Return for how long a pod runs, None if until it is deleted."""
        given = _number(pod, RUN_SECONDS)
        if given is not None:
            return given
        return (
            None
            if pod["spec"].get("restartPolicy", "Always") == "Always"
            else (self._latencies.run)
        )

    def _end(self, work: _Work) -> None:
        pod = self._pod(work)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        exit_code = int(_number(pod, EXIT_CODE) or 0)
        policy = pod["spec"].get("restartPolicy", "Always")
        if policy == "Always" or (policy == "OnFailure" and exit_code):
            status = statuses.restarted(pod, self._now(), exit_code)
            self._end_in_time(work, self._write(work, pod, status))
        else:
            self._write(work, pod, statuses.ended(pod, self._now(), exit_code))

    # Stopping.

    def _stop_soon(self, work: _Work, pod: Plain) -> None:
        """Remove a pod in time; sooner if its grace was cut."""
        if work.node_name not in self._hosts:
            return
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        if not grace:
            # Only finalizers hold it.
            work.cancel()
            return
        now = asyncio.get_running_loop().time()
        at = now + min(self._about(self._latencies.stop), grace)
        if work.stops_at is None or at < work.stops_at:
            work.stops_at = at
            self._after(at - now, work, self._remove)

    def _remove(self, work: _Work) -> None:
        pod = self._pod(work)
        if pod is None:
            return
        if pod["metadata"].get("finalizers") and pod["status"].get("phase") not in FINISHED:
            self._write(work, pod, statuses.ended(pod, self._now(), 0))
        try:
            self._client.delete(work.key, work.uid, grace_seconds=0)
        except ApiError:
            # Somebody else was faster.
            return

    # What all of it needs.

    def _after(self, seconds: float, work: _Work, step: object) -> None:
        assert callable(step), "a method"
        work.cancel()

        def act() -> None:
            work.timer = None
            step(work)

        work.timer = asyncio.get_running_loop().call_later(max(seconds, 0.0), act)

    def _about(self, seconds: float) -> float:
        return seconds * self._random.uniform(0.5, 1.5)

    def _pod(self, work: _Work) -> Plain | None:
        """Return the pod as it is now, None if it is gone."""
        pod = self._client.find(*work.key)
        return pod if pod is not None and pod["metadata"]["uid"] == work.uid else None

    def _write(self, work: _Work, pod: Plain, status: Plain) -> Plain:
        return self._client.write(work.key, {**pod, "status": status})

    def _now(self) -> str:
        return self._client.clock.timestamp()


def _host_of(node: Plain) -> str | None:
    """Return a node's address, None if it is not ready."""
    status = node.get("status", {})
    for condition in status.get("conditions", ()):
        if condition["type"] == "Ready" and condition["status"] == "True":
            addresses = {one["type"]: one["address"] for one in status.get("addresses", ())}
            return str(addresses.get("InternalIP", ""))
    return None


def _is_resized(pod: Plain) -> bool:
    generation = pod["metadata"].get("generation")
    return bool(generation and generation != pod["status"].get("observedGeneration"))


def _number(pod: Plain, annotation: str) -> float | None:
    """Return what an annotation says, None if it is missing or says nothing that makes sense."""
    text = pod["metadata"].get("annotations", {}).get(annotation)
    try:
        number = None if text is None else float(text)
    except ValueError:
        return None
    return number if number is not None and 0 <= number < float("inf") else None
