"""Measures the memory of a scheduler's process in a cluster that is full of pods.

A fake API server lists 5,000 nodes and 150,000 running pods with the fields that a real server
sends, generated while they are sent, and nothing changes afterwards. `python -m
benchmarks.footprint` prints JSON. Other schedulers can be measured, too:

    python -m benchmarks.footprint --command "kube-scheduler --kubeconfig={kubeconfig}
        --leader-elect=false --secure-port=0 --authentication-skip-lookup"
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web

from benchmarks.process_figures import cpu_seconds, peak_rss_mib
from benchmarks.templates import TOLERATIONS, metadata, uid
from kubesched.api.core import Node, Pod
from kubesched.api.scheme import KINDS, Kind, kind_of

NODES: Final = 5_000
PODS: Final = 150_000
_OURS: Final = (
    f"{shlex.quote(sys.executable)} -m kubesched run --kubeconfig={{kubeconfig}}"
    " --leader-elect=false --secure-port=0"
)
_VERSION: Final = "1000000"
_OBJECTS_AT_ONCE: Final = 200
_PODS_PER_DEPLOYMENT: Final = 30
_UIDS_OF_OWNERS: Final = 1_000_000
_SETTLED_SECONDS: Final = 5.0
_SETTLED_CPU_SECONDS: Final = 0.2
_SECONDS_MAX: Final = 900.0
_LONG: Final = 3600.0


class Footprint(msgspec.Struct, frozen=True):
    """One process with the whole cluster in its cache.

    Attributes:
        nodes: Number of nodes.
        pods: Number of pods on them.
        seconds: Time until the process was idle.
        cpu_seconds: User and system time until then.
        rss_mib: Peak memory.
    """

    nodes: int
    pods: int
    seconds: float
    cpu_seconds: float
    rss_mib: int


def _managed_fields(who: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "manager": who,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:05Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


_CONTAINER_FIELDS: Final[dict[str, Any]] = {
    f"f:{name}": {}
    for name in (
        *("env", "image", "imagePullPolicy", "name", "ports", "readinessProbe", "resources"),
        *("terminationMessagePath", "terminationMessagePolicy"),
    )
}
_STATUS_FIELDS: Final[dict[str, Any]] = {
    f"f:{name}": {}
    for name in ("conditions", "containerStatuses", "hostIP", "phase", "podIP", "podIPs")
}
_POD_FIELDS: Final = [
    _managed_fields(
        "kube-controller-manager",
        {
            "f:metadata": {"f:generateName": {}, "f:labels": {}, "f:ownerReferences": {}},
            "f:spec": {"f:containers": {'k:{"name":"app"}': _CONTAINER_FIELDS}},
        },
    ),
    _managed_fields("kubelet", {"f:status": _STATUS_FIELDS}),
]
_NODE_FIELDS: Final = [
    _managed_fields("kubelet", {"f:status": {"f:conditions": {}, "f:images": {}}})
]
_GIVEN: Final = {"cpu": "100m", "memory": "128Mi"}


def _pod(number: int, nodes: int) -> dict[str, Any]:
    deployment, moment = number // _PODS_PER_DEPLOYMENT, f"2026-01-01T00:{number % 60:02d}:05Z"
    replica_set = f"web-{deployment}-7d4b9c6f5d"
    token = f"kube-api-access-{number % 99_999:05d}"
    image = f"registry.k8s.io/web:{deployment % 50}"
    address = f"10.{1 + number // 65_536}.{number // 256 % 256}.{number % 256}"
    labels = {"app": f"web-{deployment}", "pod-template-hash": "7d4b9c6f5d"}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": replica_set,
        "uid": uid(_UIDS_OF_OWNERS + deployment),
        "controller": True,
    }
    meta = metadata(
        f"{replica_set}-{number:06x}",
        1 + nodes + number,
        f"team-{deployment % 40}",
        labels=labels,
        generateName=f"{replica_set}-",
        ownerReferences=[owner],
        managedFields=_POD_FIELDS,
    )
    container = {
        "name": "app",
        "image": image,
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "MODE", "value": "production"}],
        "resources": {"requests": _GIVEN, "limits": {"memory": "256Mi"}},
        "volumeMounts": [{"name": token, "readOnly": True, "mountPath": "/var/run/secrets"}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }
    spec = {
        "volumes": [{"name": token, "projected": {"sources": [{"serviceAccountToken": {}}]}}],
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "nodeName": f"node-{number % nodes}",
        "schedulerName": "default-scheduler",
        "tolerations": TOLERATIONS,
        "priority": 0,
    }
    conditions = [
        {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": moment}
        for name in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    container_status = {
        "name": "app",
        "state": {"running": {"startedAt": moment}},
        "ready": True,
        "restartCount": 0,
        "image": image,
        "imageID": f"{image}@sha256:{deployment % 50:064d}",
        "containerID": f"containerd://{number:064d}",
        "allocatedResources": _GIVEN,
        "resources": {"requests": _GIVEN},
    }
    status = {
        "phase": "Running",
        "conditions": conditions,
        "hostIP": "10.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": moment,
        "containerStatuses": [container_status],
        "qosClass": "Burstable",
    }
    return {"metadata": meta, "spec": spec, "status": status}


def _node(number: int) -> dict[str, Any]:
    name = f"node-{number}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"z{number % 3}"}
    labels |= {"kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "m5.4xlarge"}
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    images = [
        {"names": [f"registry.k8s.io/web:{at}"], "sizeBytes": 50_000_000 + at}
        for at in range(number % 7, number % 7 + 30)
    ]
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    status = {"capacity": amounts, "allocatable": amounts, "images": images}
    return {
        "metadata": metadata(name, 1 + number, labels=labels, managedFields=_NODE_FIELDS),
        "spec": {"podCIDR": f"10.{number // 256}.{number % 256}.0/24"},
        "status": {**status, "conditions": [condition]},
    }


class FakeApiServer:
    """A fake API server that only lists; it accepts and drops writes.

    Attributes:
        has_listed: Set after the last pod has been listed.
    """

    def __init__(self, nodes: int, pods: int) -> None:
        """Set up with these numbers of nodes and pods."""
        self._counts = {kind_of(Node).plural: nodes, kind_of(Pod).plural: pods}
        self._makers: dict[str, Callable[[int], dict[str, Any]]] = {
            kind_of(Node).plural: _node,
            kind_of(Pod).plural: lambda number: _pod(number, nodes),
        }
        self.has_listed = asyncio.Event()
        self._kinds: dict[str, Kind] = {kind.plural: kind for kind in KINDS}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer any request."""
        plural = request.path.rpartition("/")[2]
        kind, query = self._kinds.get(plural), request.query
        if request.method != "GET":
            return web.json_response({"kind": "Status", "status": "Success"}, status=201)
        if kind is None:
            return web.json_response({"kind": "APIResourceList", "resources": []})
        if query.get("sendInitialEvents") == "true":
            # Both schedulers then fall back to a list, as with servers without streaming lists.
            refusal = {"kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422}
            return web.json_response(refusal, status=422)
        if query.get("watch") in {"1", "true"}:
            quiet = web.StreamResponse(headers={"content-type": "application/json"})
            await quiet.prepare(request)
            await asyncio.sleep(_LONG)
            return quiet
        return await self._list(request, kind)

    async def _list(self, request: web.Request, kind: Kind) -> web.StreamResponse:
        count = self._counts.get(kind.plural, 0)
        first = int(request.query.get("continue") or 0)
        stop = min(count, first + int(request.query.get("limit") or count))
        place = {"resourceVersion": _VERSION}
        if stop < count:
            place["continue"] = str(stop)
        head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": place}
        answer = web.StreamResponse(headers={"content-type": "application/json"})
        await answer.prepare(request)
        await answer.write(json.dumps(head)[:-1].encode() + b',"items":[')
        for at in range(first, stop, _OBJECTS_AT_ONCE):
            make = self._makers[kind.plural]
            some = [make(number) for number in range(at, min(stop, at + _OBJECTS_AT_ONCE))]
            comma = b"," if at > first else b""
            await answer.write(comma + msgspec.json.encode(some)[1:-1])
        await answer.write(b"]}")
        await answer.write_eof()
        if kind.type is Pod and stop == count:
            self.has_listed.set()
        return answer


async def _measure(
    nodes: int, pods: int, command: str, settled_seconds: float, folder: Path
) -> Footprint:
    application, server = web.Application(), FakeApiServer(nodes, pods)
    application.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: it\n"
        f'clusters: [{{name: it, cluster: {{server: "http://127.0.0.1:{runner.addresses[0][1]}"}}}}]\n'
        "users: [{name: it, user: {}}]\ncontexts: [{name: it, context: {cluster: it, user: it}}]\n"
    )
    words = shlex.split(command.format(kubeconfig=kubeconfig))
    began = time.perf_counter()
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log)
    try:
        async with asyncio.timeout(_SECONDS_MAX):
            await server.has_listed.wait()
            cost = await _settled(process, settled_seconds)
        seconds = time.perf_counter() - began - settled_seconds
        memory = peak_rss_mib(process.pid)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await runner.cleanup()
    return Footprint(nodes, pods, round(seconds, 1), round(cost, 2), memory)


async def _settled(process: asyncio.subprocess.Process, seconds: float) -> float:
    """Wait until the process is idle for a while; return its CPU time in seconds."""
    cost = 0.0
    while True:
        await asyncio.sleep(seconds)
        assert process.returncode is None, "the scheduler has ended"
        before, cost = cost, cpu_seconds(process.pid)
        if cost - before < _SETTLED_CPU_SECONDS:
            return cost


def measure_footprint(
    nodes: int = NODES,
    pods: int = PODS,
    command: str = _OURS,
    settled_seconds: float = _SETTLED_SECONDS,
) -> Footprint:
    """Run a scheduler against a full cluster until it is idle for `settled_seconds`."""
    with tempfile.TemporaryDirectory(prefix="kubesched-footprint-") as folder:
        return asyncio.run(_measure(nodes, pods, command, settled_seconds, Path(folder)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument(
        "--command", default=_OURS, help="what to start, with {kubeconfig}; default: kubesched run"
    )
    options = parser.parse_args(arguments)
    found = measure_footprint(options.nodes, options.pods, options.command)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
