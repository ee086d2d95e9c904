"""Clusters of any size to draw: zones, pools, GPUs, cordoned and failed nodes, pending pods."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from tests.cli.cluster import Json, node, owned, pod

_POOLS: Final = (
    # Name, share of the nodes, cpu, memory in Gi, GPUs.
    ("general", 0.6, 32, 128, 0),
    ("highmem", 0.2, 32, 512, 0),
    ("gpu-a100", 0.15, 96, 1024, 8),
    ("edge", 0.05, 8, 16, 0),
)
_WORKLOADS: Final = (
    # Namespace, name, priority class, priority, cpu in milli, memory in Mi, GPUs.
    ("shop", "web", "high", 1000, 500, 512, 0),
    ("shop", "cart", "high", 1000, 1000, 2048, 0),
    ("data", "kafka", "high", 1000, 4000, 16384, 0),
    ("batch", "etl", "", 0, 2000, 4096, 0),
    ("batch", "report", "", 0, 500, 1024, 0),
    ("ml", "train", "low", -10, 8000, 65536, 4),
    ("ml", "serve", "", 0, 4000, 32768, 1),
)


def cluster(nodes: int, pods: int, pending: int = 6, seed: int = 7) -> Iterator[Json]:
    """Yield the objects of a cluster in Kubernetes' JSON.

    Args:
        nodes: Number of nodes.
        pods: Number of pods, less those that fit nowhere.
        pending: Number of pending pods of each of three causes.
        seed: Of the random choices.
    """
    random = Random(seed)
    free: list[tuple[str, list[int]]] = []
    for number in range(nodes):
        share = (number + 0.5) / nodes
        pool, _, cpu, memory, gpus = _pool(share)
        name = f"{pool}-{number:04d}"
        # Some devices stay free, as after pods with few of them have ended.
        kept = min(gpus, random.choice((0, 0, 1, 2, 4, 8)))
        free.append((name, [cpu * 1000, memory * 1024, gpus - kept]))
        yield _node(name, pool, f"eu-{'abc'[number % 3]}", (cpu, memory, gpus), random)
    made = 0
    while made < pods and free:
        workload = _WORKLOADS[made % len(_WORKLOADS)]
        wanted = workload[4:]
        for _ in range(8):
            name, room = random.choice(free)
            if all(one >= other for one, other in zip(room, wanted, strict=True)):
                for at, amount in enumerate(wanted):
                    room[at] -= amount
                yield _pod(workload, made, name)
                break
        made += 1
    for number in range(pending):
        yield _pod(("ml", "pretrain", "high", 1000, 16000, 65536, 16), number, "")
        yield _pod(("shop", "search", "high", 1000, 2000, 4096, 0), number, "", {"disk": "nvme"})
        yield _pod(("data", "warehouse", "", 0, 200_000, 4096, 0), number, "")


def _pool(share: float) -> tuple[str, float, int, int, int]:
    for pool in _POOLS:
        share -= pool[1]
        if share < 0:
            return pool
    return _POOLS[-1]


def _node(name: str, pool: str, zone: str, sizes: tuple[int, int, int], random: Random) -> Json:
    cpu, memory, gpus = sizes
    labels = {"topology.kubernetes.io/zone": zone, "karpenter.sh/nodepool": pool}
    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    made = node(name, str(cpu), labels=labels, taints=[taint] if gpus else [])
    amounts = made["status"]["allocatable"]
    amounts["memory"] = f"{memory}Gi"
    if gpus:
        amounts["nvidia.com/gpu"] = str(gpus)
    is_ready = random.random() > 0.01
    made["spec"]["unschedulable"] = random.random() < 0.02
    made["status"]["capacity"] = amounts
    made["status"]["conditions"] = [{"type": "Ready", "status": str(is_ready)}]
    return made


def _pod(
    workload: tuple[str, str, str, int, int, int, int],
    number: int,
    node_name: str,
    selector: dict[str, str] | None = None,
) -> Json:
    namespace, name, priority_class, priority, cpu, memory, gpus = workload
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    if gpus:
        requests["nvidia.com/gpu"] = str(gpus)
    made = pod(
        f"{name}-{number}",
        namespace=namespace,
        node_name=node_name,
        priority=priority,
        priorityClassName=priority_class,
        nodeSelector=selector or {},
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}] if gpus else [],
    )
    made["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": requests}
    return owned(made, name, "StatefulSet")
