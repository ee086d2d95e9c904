"""Measures decisions about pods that differ: CPU time from the decoded pod to the assumed pod.

`python -m benchmarks.diverse SHAPE` runs one shape in this process and prints JSON. The shapes:

A   every pod has requests and labels of its own
B   A, and some of the pods have spread constraints, affinity, tolerations, selectors
C   pods drawn at random from 20, 200 or 1,000 pods of B (C20, C200, C1000)
D   StatefulSets of 3 to 10 pods with anti-affinity, and Jobs of 1 to 50 pods, in turns

Nodes are in 10 zones and 7 pools, of 2 architectures and 4 sizes; every 20th is tainted.
"""

from __future__ import annotations

import argparse
import sys
from array import array
from collections.abc import Iterator
from itertools import islice
from random import Random
from time import process_time
from typing import Final

import msgspec
import numpy as np

from benchmarks import templates
from benchmarks.objects import decoded
from benchmarks.templates import Json
from benchmarks.throughput import new_cluster, peak_rss_mib
from kubesched.api.core import Pod
from kubesched.api.meta import KubeObject
from kubesched.app.collector import tune_collector
from kubesched.scheduler.decision import Placed
from kubesched.snapshot.pod_info import PodInfo

SHAPES: Final = ("A", "B", "C20", "C200", "C1000", "D")
NODES: Final = 5000
PODS: Final = 20_000
POOL: Final = "pool"
_ARCHITECTURE: Final = "kubernetes.io/arch"
_POOLS: Final = tuple(f"pool-{at}" for at in range(7))
_ARCHITECTURES: Final = ("amd64", "arm64")
_SIZES: Final = ((4, 16), (8, 32), (16, 64), (32, 128))
_ZONES: Final = 10
_TAINTED_EVERY: Final = 20
_NAMESPACES: Final = 50
_APPS: Final = 500
_TIERS: Final = 3
_HASHES: Final = 3000
_FIRST: Final = 5000
_WINDOW: Final = 1000


class Diverse(msgspec.Struct, frozen=True):
    """One run of one shape; times are CPU microseconds.

    Attributes:
        shape: The shape.
        nodes: Number of nodes.
        pods: Number of decided pods.
        placed: Number of pods that found a node.
        pod_us: Mean per pod, from the decoded object to the assumed pod.
        first_us: Mean of the first 5,000 pods.
        last_us: Mean of the last 1,000 pods.
        p50_us, p99_us, slowest_us: Median, 99th percentile and maximum per pod.
        loaded_mib: Peak memory when nodes and pods were decoded.
        rss_mib: Peak memory of the process.
    """

    shape: str
    nodes: int
    pods: int
    placed: int
    pod_us: float
    first_us: float
    last_us: float
    p50_us: float
    p99_us: float
    slowest_us: float
    loaded_mib: int
    rss_mib: int


def nodes(count: int) -> Iterator[KubeObject]:
    """Return the nodes of every shape."""
    for at in range(count):
        cpu, memory = _SIZES[at % len(_SIZES)]
        labels = {
            templates.ZONE: f"zone-{at % _ZONES}",
            POOL: _POOLS[at % len(_POOLS)],
            _ARCHITECTURE: _ARCHITECTURES[at // 3 % len(_ARCHITECTURES)],
        }
        taint = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
        taints = [taint] if at % _TAINTED_EVERY == 0 else None
        capacity = {"cpu": str(cpu), "memory": f"{memory}Gi"}
        node = templates.node(f"node-{at}", at + 1, labels=labels, taints=taints, capacity=capacity)
        yield decoded(node)


def pods(shape: str, random: Random) -> Iterator[Json]:
    """Yield pods of a shape without end; two seeds share no pod."""
    if shape == "A":
        return numbered(_plain(random) for _ in iter(int, 1))
    if shape == "B":
        return numbered(_mixed(random) for _ in iter(int, 1))
    if shape == "D":
        return numbered(_owned(random))
    drawn = [_mixed(random) for _ in range(int(shape.removeprefix("C")))]
    return numbered(random.choice(drawn) for _ in iter(int, 1))


def numbered(bodies: Iterator[Json]) -> Iterator[Json]:
    """Give each pod a name and a uid of its own."""
    for at, body in enumerate(bodies):
        metadata = templates.metadata(f"pod-{at}", 1_000_000 + at, **body["metadata"])
        yield {**body, "apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def _plain(random: Random) -> Json:
    labels = {
        "app": f"app-{random.randrange(_APPS)}",
        "tier": f"tier-{random.randrange(_TIERS)}",
        "hash": f"hash-{random.randrange(_HASHES)}",
    }
    return _pod(random, f"namespace-{random.randrange(_NAMESPACES)}", labels)


def _pod(random: Random, namespace: str, labels: dict[str, str]) -> Json:
    requests = {"cpu": f"{random.randrange(10, 500)}m", "memory": f"{random.randrange(16, 900)}Mi"}
    container = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
    metadata = {"namespace": namespace, "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [container]}}


def _mixed(random: Random) -> Json:
    pod = _plain(random)
    labels, spec = pod["metadata"]["labels"], pod["spec"]
    own_app = {"matchLabels": {"app": labels["app"]}}
    if random.random() < 0.30:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": random.choice((1, 2, 5)),
                "topologyKey": templates.ZONE,
                "whenUnsatisfiable": random.choice(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": own_app,
            }
        ]
    anti: Json = {}
    if random.random() < 0.25:
        term = {"labelSelector": own_app, "topologyKey": templates.HOSTNAME}
        anti["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 100, "podAffinityTerm": term}
        ]
    if random.random() < 0.15:
        anti["requiredDuringSchedulingIgnoredDuringExecution"] = [_apart("hash", labels["hash"])]
    affinity: Json = {"podAntiAffinity": anti} if anti else {}
    if random.random() < 0.30:
        pools = {"key": POOL, "operator": "In", "values": random.sample(_POOLS, 3)}
        required = {"nodeSelectorTerms": [{"matchExpressions": [pools]}]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    if affinity:
        spec["affinity"] = affinity
    if random.random() < 0.10:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if random.random() < 0.05:
        spec["nodeSelector"] = {_ARCHITECTURE: random.choice(_ARCHITECTURES)}
    return pod


def _apart(label: str, value: str) -> Json:
    return {"labelSelector": {"matchLabels": {label: value}}, "topologyKey": templates.HOSTNAME}


def _owned(random: Random) -> Iterator[Json]:
    number = 0
    while True:
        number += 1
        namespace = f"namespace-{random.randrange(_NAMESPACES)}"
        made = _stateful_set if random.random() < 0.5 else _job
        yield from made(random, namespace, number)


def _stateful_set(random: Random, namespace: str, number: int) -> Iterator[Json]:
    name = f"set-{number}"
    shared = _pod(random, namespace, {})["spec"]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [_apart("app", name)]}
    for index in range(random.randint(3, 10)):
        labels = {
            "app": name,
            "controller-revision-hash": f"{name}-1",
            "statefulset.kubernetes.io/pod-name": f"{name}-{index}",
            "apps.kubernetes.io/pod-index": str(index),
        }
        spec = {**shared, "affinity": {"podAntiAffinity": required}}
        yield {"metadata": {"namespace": namespace, "labels": labels}, "spec": spec}


def _job(random: Random, namespace: str, number: int) -> Iterator[Json]:
    uid = templates.uid(2_000_000_000 + number)
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": f"job-{number}",
        "controller-uid": uid,
        "job-name": f"job-{number}",
    }
    spec = _pod(random, namespace, {})["spec"]
    for _ in range(random.randint(1, 50)):
        yield {"metadata": {"namespace": namespace, "labels": labels}, "spec": spec}


def measure(shape: str, node_count: int, pod_count: int, seed: int) -> Diverse:
    """Decide and assume the pods of a shape, one after the other."""
    cluster = new_cluster()
    cluster.load(nodes(node_count))
    waiting = [decoded(pod) for pod in islice(pods(shape, Random(seed)), pod_count)]
    loaded_mib = peak_rss_mib()
    # As `kubesched run` does when it has listed the cluster.
    tune_collector()
    seconds = array("d")
    placed = 0
    before = process_time()
    for pod in waiting:
        assert isinstance(pod, Pod), "the template of a pod is a pod"
        info = PodInfo(pod)
        decision = cluster.schedule_one(info)
        if isinstance(decision, Placed):
            cluster.bind(info, decision.node_name)
            placed += 1
        now = process_time()
        seconds.append(now - before)
        before = now
    times_us = np.array(seconds) * 1e6
    p50, p99 = np.percentile(times_us, (50, 99))
    return Diverse(
        shape=shape,
        nodes=node_count,
        pods=pod_count,
        placed=placed,
        pod_us=round(float(times_us.mean()), 1),
        first_us=round(float(times_us[:_FIRST].mean()), 1),
        last_us=round(float(times_us[-_WINDOW:].mean()), 1),
        p50_us=round(float(p50), 1),
        p99_us=round(float(p99), 1),
        slowest_us=round(float(times_us.max()), 1),
        loaded_mib=loaded_mib,
        rss_mib=peak_rss_mib(),
    )


def main() -> None:
    """Measure one shape and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = measure(options.shape, options.nodes, options.pods, options.seed)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
