"""Constraints for tests of topology spread, and a twin that answers node by node."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from kubesched.api.core import Node, Pod
from kubesched.plugins.pod_topology_spread import PodTopologySpread
from kubesched.testing.handle import FakeHandle
from tests.plugins.building import build
from tests.plugins.by_node import selects

Json: TypeAlias = "dict[str, Any]"

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
REASON = "node(s) didn't match pod topology spread constraints"
LACKS_LABEL = f"{REASON} (missing required label)"
FOO: Json = {"matchLabels": {"app": "foo"}}
BAR: Json = {"matchLabels": {"app": "bar"}}
TAINT: Json = {"key": "t", "value": "", "effect": "NoSchedule"}


def constraint(key: str, max_skew: int = 1, selector: Json | None = FOO, **more: Any) -> Json:
    """A constraint as JSON, hard unless said otherwise; a selector of None is absent."""
    written = {
        "topologyKey": key,
        "maxSkew": max_skew,
        "whenUnsatisfiable": "DoNotSchedule",
        **more,
    }
    return written if selector is None else {**written, "labelSelector": selector}


def soft(key: str, max_skew: int = 1, selector: Json | None = FOO, **more: Any) -> Json:
    """A soft constraint as JSON."""
    return constraint(key, max_skew, selector, whenUnsatisfiable="ScheduleAnyway", **more)


def make_plugin(args: Json | None = None, **gates: bool) -> PodTopologySpread:
    """Build the plugin from arguments as written."""
    return build(PodTopologySpread, args, FakeHandle(gates))


def included(written: Json, pod: Pod, node: Node) -> bool:
    """Whether a node counts for a constraint by its policies."""
    wanted = pod.spec.node_selector or {}
    labels = node.metadata.labels
    if written.get("nodeAffinityPolicy", "Honor") == "Honor" and any(
        labels.get(key) != value for key, value in wanted.items()
    ):
        return False
    return not (
        written.get("nodeTaintsPolicy", "Ignore") == "Honor"
        and node.spec.taints
        and not pod.spec.tolerations
    )


def matching_pods(written: Json, pod: Pod, node: Node, pods: list[Pod]) -> int:
    """How many pods on the node count for a constraint."""
    if written.get("labelSelector") == {}:
        return 0
    return sum(
        other.spec.node_name == node.metadata.name
        and other.metadata.namespace == pod.metadata.namespace
        and other.metadata.deletion_timestamp is None
        and selects(written.get("labelSelector"), other.metadata.labels)
        for other in pods
    )


def twin_counts(
    constraints: list[Json], pod: Pod, nodes: list[Node], pods: list[Pod]
) -> list[dict[str, int]]:
    """Per constraint: domain -> pods."""
    counts: list[dict[str, int]] = [{} for _ in constraints]
    for node in nodes:
        labels = node.metadata.labels
        if not all(written["topologyKey"] in labels for written in constraints):
            continue
        for written, count in zip(constraints, counts, strict=True):
            if included(written, pod, node):
                value = labels[written["topologyKey"]]
                count[value] = count.get(value, 0) + matching_pods(written, pod, node, pods)
    return counts


def twin_filter(constraints: list[Json], counts: list[dict[str, int]], pod: Pod, node: Node) -> str:
    """The reason why the node is rejected, or ""."""
    for written, count in zip(constraints, counts, strict=True):
        value = node.metadata.labels.get(written["topologyKey"])
        if value is None:
            return LACKS_LABEL
        least = min(count.values(), default=2**31 - 1)
        if len(count) < written.get("minDomains", 1):
            least = 0
        own = int(selects(written.get("labelSelector"), pod.metadata.labels))
        if count.get(value, 0) + own - least > written["maxSkew"]:
            return REASON
    return ""


def twin_scores(
    constraints: list[Json], pod: Pod, nodes: list[Node], pods: list[Pod], feasible: list[str]
) -> dict[str, int]:
    """Node -> normalized score."""
    keys = [written["topologyKey"] for written in constraints]
    having = {n.metadata.name for n in nodes if all(key in n.metadata.labels for key in keys)}
    candidates = [n for n in nodes if n.metadata.name in feasible and n.metadata.name in having]
    raw: dict[str, int] = {}
    domains: list[dict[str, int]] = [
        {n.metadata.labels[key]: 0 for n in candidates if key != HOSTNAME} for key in keys
    ]
    for node in nodes:
        for written, key, domain in zip(constraints, keys, domains, strict=True):
            value = node.metadata.labels.get(key)
            if node.metadata.name in having and value in domain and included(written, pod, node):
                domain[value] += matching_pods(written, pod, node, pods)
    for node in candidates:
        score = 0.0
        for written, key, domain in zip(constraints, keys, domains, strict=True):
            if key == HOSTNAME:
                count, size = matching_pods(written, pod, node, pods), len(candidates)
            else:
                count, size = domain[node.metadata.labels[key]], len(domain)
            score += count * math.log(size + 2) + (written["maxSkew"] - 1)
        raw[node.metadata.name] = math.floor(score) + (score - math.floor(score) >= 0.5)
    most, least = max(raw.values(), default=0), min(raw.values(), default=0)
    scores = dict.fromkeys(feasible, 0)
    for name, score in raw.items():
        scores[name] = 100 if most == 0 else 100 * (most + least - score) // most
    return scores
