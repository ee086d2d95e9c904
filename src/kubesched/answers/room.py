"""Room: how many more pods of a shape fit, on each node and together.

A shape of amounts is divided into what is free. Copies of a pod are placed one after another by the
scheduler's plugins until one fits nowhere; nothing is evicted for them.

Rejects:  shapes that ask for nothing, and amounts that cannot be parsed; pods of other schedulers
          and pods with ResourceClaims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Final, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kubesched.api.core import Pod
from kubesched.api.pod import PodStatus
from kubesched.api.quantity import QuantityError, milli_value, value
from kubesched.explain.report import Unknown
from kubesched.framework.diagnosis import Diagnosis
from kubesched.scheduler.decision import Placed, Rejected
from kubesched.simulator.cluster import ClusterState
from kubesched.simulator.unknown_kinds import UnknownOutcomes
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

_EXAMPLE: Final = "cpu=2,memory=4Gi"


class StoppingReason(msgspec.Struct, frozen=True, rename="camel"):
    """Why the next pod fits nowhere.

    Attributes:
        reason: As kubectl shows it.
        nodes: Number of nodes that reject the pod for it; 0 if the pod is rejected as a whole.
    """

    reason: str
    nodes: int


class Room(msgspec.Struct, frozen=True, rename="camel"):
    """How many more pods of a shape fit.

    Attributes:
        shape: The amounts as asked for, or the `namespace/name` of the pod.
        requests: Resource -> what one pod requests: cpu in millicores, memory in bytes.
        by_plugins: Whether the scheduler's plugins placed the pods, one after another. Otherwise
            only amounts and the number of pods are looked at: not taints, cordons or selectors.
        total: Number of pods that fit together.
        stopped_by: Why no more fit, the most frequent reason first; empty for a shape of amounts.
        unknown: The kinds that the answer depends on and the files lack.
    """

    shape: str
    requests: dict[str, int]
    by_plugins: bool
    total: int
    stopped_by: tuple[StoppingReason, ...] = ()
    unknown: tuple[Unknown, ...] = ()


class RoomPerNode(NamedTuple):
    """The room of a cluster, and of each row of its node table."""

    room: Room
    per_row: NDArray[np.int64]


def parse_pod_shape(text: str) -> dict[str, int]:
    """Return the amounts of `cpu=2,memory=4Gi`: cpu in millicores, others in whole units.

    Raises:
        ValueError: A word is wrong; says which, and what is right.
    """
    shape: dict[str, int] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, equals, amount = word.partition("=")
        if not (name and equals and amount):
            raise ValueError(f"{word!r} is no RESOURCE=AMOUNT; write {_EXAMPLE}")
        if name == "pods":
            raise ValueError("pods is what is counted; name what one pod requests")
        if name in shape:
            raise ValueError(f"{name} stands twice; write it once")
        try:
            number = milli_value(amount) if name == "cpu" else value(amount)
        except QuantityError:
            raise ValueError(f"{name}: {amount!r} is no quantity; write 2, 500m or 4Gi") from None
        if number <= 0:
            raise ValueError(f"{name}: {amount} is not more than 0")
        shape[name] = number
    if not shape:
        raise ValueError(f"it asks for nothing; write {_EXAMPLE}")
    return shape


def room_for_shape(nodes: NodeTable, shape: Mapping[str, int], text: str) -> RoomPerNode:
    """Return how many more pods fit by their amounts alone.

    Args:
        nodes: The node table.
        shape: What one pod requests, not empty.
        text: The shape as the user wrote it.
    """
    fitting = np.maximum(nodes.allowed_pods - nodes.pod_counts, 0)
    for name, amount in shape.items():
        free = np.maximum(nodes.allocatable_of(name) - nodes.requested_of(name), 0)
        fitting = np.minimum(fitting, free // amount)
    room = Room(text, dict(shape), by_plugins=False, total=sum(fitting.tolist()))
    return RoomPerNode(room, fitting)


def room_like(cluster: ClusterState, pod: Pod) -> RoomPerNode:
    """Return how many more pods like this one fit.

    Args:
        cluster: Holds the copies until they are counted.
        pod: Any pod of one of the cluster's profiles, with or without a node.

    Raises:
        ValueError: The pod is of another scheduler, or uses ResourceClaims.
    """
    info = PodInfo(_copy(pod, "copy"))
    profile = cluster.profile_of(info)
    if profile is None:
        known = ", ".join(cluster.profiles)
        raise ValueError(f"it is for the scheduler {info.scheduler_name}; name one: {known}")
    if pod.spec.resource_claims:
        raise ValueError("it uses ResourceClaims, of which each copy would need its own")
    outcomes = UnknownOutcomes(cluster.snapshot())
    per_row = np.zeros(len(cluster.cache.nodes), np.int64)
    stopped: Diagnosis | None = None
    copies: list[PodInfo] = []
    for number in count(1):
        info = PodInfo(_copy(pod, f"copy-{number}"))
        decision = cluster.schedule_one(info, preempts=False)
        if not isinstance(decision, Placed):
            stopped = decision.diagnosis if isinstance(decision, Rejected) else None
            break
        cluster.bind(info, decision.node_name)
        copies.append(info)
        per_row[decision.row] += 1
    for placed in copies:
        cluster.evict(placed)
    cluster.check_plugins()
    if stopped is not None:
        outcomes.is_guess(profile, info, stopped.unschedulable_plugins)
    if copies:
        outcomes.placed(profile, info, had_choice=False)
    room = Room(
        info.key,
        dict(info.template.requests),
        by_plugins=True,
        total=len(copies),
        stopped_by=tuple(_reasons(stopped, len(per_row))),
        unknown=outcomes.unknown(),
    )
    return RoomPerNode(room, per_row)


def _copy(pod: Pod, uid: str) -> Pod:
    """Return the pod as if it had just been created; its name stays, as claims may contain it."""
    spec = replace(pod.spec, node_name="", scheduling_gates=())
    metadata = replace(pod.metadata, uid=f"{pod.metadata.uid}/{uid}", deletion_timestamp=None)
    return replace(pod, metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))


def _reasons(stopped: Diagnosis | None, nodes: int) -> Iterable[StoppingReason]:
    if stopped is None:
        return ()
    if stopped.pre_filter_message:
        return (StoppingReason(stopped.pre_filter_message, 0),)
    counts = stopped.reason_counts(nodes)
    ordered = sorted(counts.items(), key=lambda found: (-found[1], found[0]))
    return [StoppingReason(*found) for found in ordered]
