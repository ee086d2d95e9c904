"""Changes of a cluster that make a pod fit: one node or one other pod each, found by trying.

Nodes are tried in the order of the number of plugins that reject the pod there, so the nearest
misses come first. In a large cluster the number of trials is bounded.

Reads:    the rejections of every node, by every filter
Invariants: every change that is returned was tried and places the pod.
Differs:  pods of DaemonSets and static pods are not evicted, because they come back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

import numpy as np
from msgspec.structs import replace

from kubesched.answers.trial import ChangeKind, ChangeTrial, SuggestedChange
from kubesched.answers.trial_cluster import published_by
from kubesched.answers.workload_pods import is_daemon
from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.api.quantity import canonical
from kubesched.api.resource import ResourceSlice
from kubesched.api.scheduling import PriorityClass
from kubesched.api.storage import CSINode
from kubesched.api.tolerations import HARD_EFFECTS, find_untolerated, taint_text
from kubesched.api.well_known import HOSTNAME
from kubesched.cluster.nodes import CORDON_TAINT, STATE_TAINTS
from kubesched.explain.report import NodeVerdict
from kubesched.explain.sentences import count, grouped_by, largest_first
from kubesched.framework.plugin import Scope
from kubesched.framework.status import Code
from kubesched.snapshot.pod_info import PodInfo

T = TypeVar("T")

_FOUND_MAX: Final = 3
"""Number of changes of one kind; more of them would not help to choose."""
_ROWS_TRIED_MAX: Final = 1_000_000
"""Number of rows that are decided on per kind of change: a second or so."""
_TRIALS_MIN: Final = 40
_SYSTEM: Final = "system-"
"""The prefix of PriorityClasses that are reserved for the cluster's own pods."""


def cluster_changes(
    trial: ChangeTrial, verdicts: Sequence[NodeVerdict]
) -> Iterator[SuggestedChange]:
    """Yield changes of nodes and of other pods after which the pod is placed.

    `verdicts` has every filter's rejections, for every node.
    """
    near = sorted((v for v in verdicts if not v.feasible), key=lambda v: len(v.rejections))
    table = trial.cluster.cache.nodes
    nodes = [table.nodes[table.row_of[verdict.node]] for verdict in near]
    curable = [
        v
        for v in near
        if all(a.code == _UNSCHEDULABLE or a.plugin == _DEVICES for a in v.rejections)
    ]
    evictable = [verdict.node for verdict in curable]
    rejecting = {answer.plugin for verdict in curable for answer in verdict.rejections}
    for found in (
        _uncordon(trial, nodes),
        _untaint(trial, nodes),
        _label(trial, nodes),
        _evict(trial, evictable, rejecting),
        _add_node(trial),
        _free_node(trial, evictable),
        _raise_priority(trial),
    ):
        yield from islice(found, _FOUND_MAX)


_UNSCHEDULABLE: Final = Code.UNSCHEDULABLE.label
_DEVICES: Final = "DynamicResources"
"""It rejects nodes for good, as preemption releases no devices; deleting a pod does."""


def _bounded(trial: ChangeTrial, candidates: Iterable[T]) -> Iterator[T]:
    """Yield as many candidates as may be tried."""
    rows = max(1, len(trial.cluster.cache.nodes))
    return islice(candidates, max(_TRIALS_MIN, _ROWS_TRIED_MAX // rows))


# Nodes.


def _uncordon(trial: ChangeTrial, nodes: Iterable[Node]) -> Iterator[SuggestedChange]:
    for node in _bounded(trial, (node for node in nodes if node.spec.unschedulable)):
        name = node.metadata.name
        taints = tuple(t for t in node.spec.taints if t.key != CORDON_TAINT)
        spec = replace(node.spec, unschedulable=False, taints=taints)
        if found := trial.node_for_with(replace(node, spec=spec)):
            kind, field = ChangeKind.UNCORDON_NODE, "spec.unschedulable"
            sentence = f"uncordon node {name}"
            yield SuggestedChange(kind, f"node {name}", field, "true", "false", sentence, found)


def _untaint(trial: ChangeTrial, nodes: Iterable[Node]) -> Iterator[SuggestedChange]:
    tolerations = trial.pod.spec.tolerations
    tainted = (node for node in nodes if find_untolerated(node.spec.taints, tolerations))
    for node in _bounded(trial, tainted):
        name = node.metadata.name
        for at, taint in enumerate(node.spec.taints):
            if taint.effect not in HARD_EFFECTS or not find_untolerated([taint], tolerations):
                continue
            if taint.key in STATE_TAINTS:
                # It comes back while the node is in that state.
                continue
            left = (*node.spec.taints[:at], *node.spec.taints[at + 1 :])
            if found := trial.node_for_with(replace(node, spec=replace(node.spec, taints=left))):
                kind, field = ChangeKind.REMOVE_TAINT, f"spec.taints[{at}]"
                text = taint_text(taint)
                sentence = f"remove the taint {text} from node {name}"
                yield SuggestedChange(kind, f"node {name}", field, text, "", sentence, found)


def _label(trial: ChangeTrial, nodes: Iterable[Node]) -> Iterator[SuggestedChange]:
    """Try labels that the pod selects; well-known labels of nodes, such as zones, are kept."""
    wanted = sorted((trial.pod.spec.node_selector or {}).items())
    lacking = (
        (node, key, text)
        for node in _bounded(trial, nodes)
        for key, text in wanted
        if (has := node.metadata.labels.get(key)) != text
        and (has is None or "kubernetes.io/" not in key)
    )
    for node, key, text in lacking:
        name, before = node.metadata.name, node.metadata.labels.get(key, "")
        labels = {**node.metadata.labels, key: text}
        if found := trial.node_for_with(
            replace(node, metadata=replace(node.metadata, labels=labels))
        ):
            kind, field = ChangeKind.LABEL_NODE, f"metadata.labels[{key}]"
            sentence = f"label node {name} with {key}={text}"
            yield SuggestedChange(kind, f"node {name}", field, before, text, sentence, found)


def _add_node(trial: ChangeTrial) -> Iterator[SuggestedChange]:
    """Try a node of each shape that exists, the most frequent ones first.

    It has only the pods of DaemonSets and static pods that the existing node has, and its drivers.
    """
    stored = trial.cluster.cache.objects
    objects = (*stored.list(ResourceSlice), *stored.list(CSINode))
    offered = _offered(objects)
    nodes = trial.cluster.cache.nodes
    shapes = grouped_by(
        nodes.nodes,
        lambda node: (_shape(node), frozenset(offered[node.metadata.name].items())),
    )
    for _, alike in _bounded(trial, largest_first(shapes)):
        model = alike[0]
        like = model.metadata.name
        name = f"{like}-new"
        while name in nodes.row_of:
            name += "-new"
        labels = {**model.metadata.labels}
        if HOSTNAME in labels:
            labels[HOSTNAME] = name
        new = replace(model, metadata=replace(model.metadata, name=name, uid="", labels=labels))
        published, daemons = published_by(new, like, objects), _daemons(trial, like, name)
        if found := trial.node_for_with(new, *published, *daemons):
            amounts = model.status.allocatable
            size = ", ".join(
                f"{resource} {canonical(amounts[resource])}"
                for resource in ("cpu", "memory")
                if resource in amounts
            )
            kind, sentence = ChangeKind.ADD_NODE, f"add a node like {like} ({size})"
            yield SuggestedChange(kind, f"node {name}", "", "", like, sentence, found)


def _daemons(trial: ChangeTrial, like: str, name: str) -> list[Pod]:
    """Return copies of the DaemonSet pods of a node like the new one, bound to the new one."""
    nodes = trial.cluster.cache.nodes
    return [
        replace(
            info.pod,
            metadata=replace(info.pod.metadata, uid=f"{info.uid}-{name}"),
            spec=replace(info.pod.spec, node_name=name),
        )
        for info in nodes.pods[nodes.row_of[like]].values()
        if is_daemon(info.pod)
    ]


def _offered(objects: Iterable[KubeObject]) -> defaultdict[str, Counter[str]]:
    """Return by node how many devices each driver offers, and the CSI drivers with their limits."""
    offered: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for item in objects:
        if isinstance(item, ResourceSlice) and item.spec.node_name:
            offered[item.spec.node_name][item.spec.driver] += len(item.spec.devices)
        elif isinstance(item, CSINode):
            offered[item.metadata.name].update(map(repr, item.spec.drivers))
    return offered


def _shape(node: Node) -> object:
    labels = ((key, text) for key, text in node.metadata.labels.items() if key != HOSTNAME)
    return (
        tuple(sorted((name, str(amount)) for name, amount in node.status.allocatable.items())),
        tuple(sorted(labels)),
        tuple((taint.key, taint.value, taint.effect) for taint in node.spec.taints),
        node.spec.unschedulable,
    )


# Other pods.


def _evictable(trial: ChangeTrial, node_name: str) -> list[PodInfo]:
    """Return the pods of a node that an eviction removes for good, the least important first."""
    nodes = trial.cluster.cache.nodes
    pods = [
        info
        for info in nodes.pods[nodes.row_of[node_name]].values()
        if not info.is_terminating and not is_daemon(info.pod)
    ]

    def importance(info: PodInfo) -> tuple[int, int, int, str]:
        held = info.template.held
        return info.priority, held.get("cpu", 0), held.get("memory", 0), info.key

    return sorted(pods, key=importance)


def _evict(
    trial: ChangeTrial, names: Sequence[str], rejecting: Iterable[str]
) -> Iterator[SuggestedChange]:
    """Try each pod of the nearest nodes, then each pod of the cluster if it may help elsewhere.

    `names` are the nodes where evictions may help; `rejecting` are the plugins that reject the pod
    there.
    """
    seen: set[str] = set()
    for name in _bounded(trial, names):
        for info in _helpful_on(trial, name):
            seen.add(info.uid)
            if found := trial.node_for_without([info]):
                yield _eviction(info, found)
    plugins, rejecting = trial.profile.plugins, set(rejecting)
    any_helps = any(plugins[name].scope is Scope.CLUSTER for name in rejecting if name in plugins)
    if not (any_helps or _DEVICES in rejecting):
        return
    elsewhere = (
        info
        for name in list(trial.cluster.cache.nodes.names)
        for info in _evictable(trial, name)
        if info.uid not in seen and (any_helps or any(info.pod.claims_in_use()))
    )
    for info in _bounded(trial, elsewhere):
        if found := trial.node_for_without([info]):
            yield _eviction(info, found)


def _helpful_on(trial: ChangeTrial, node_name: str) -> Iterator[PodInfo]:
    """Yield the first pod of a node without which the pod fits that node, if there is one."""
    pod, profile, cycle = PodInfo(trial.pod), trial.profile, trial.filter_states
    if cycle is None:
        return
    nodes = trial.cluster.cache.nodes
    row = np.array([nodes.row_of[node_name]], np.intp)
    for info in _evictable(trial, node_name):
        supposed, node = cycle.clone(), nodes.take(row)
        removed = profile.remove_pod(supposed, pod, info, node)
        if removed.is_success and profile.filter_rows(supposed, pod, node)[0].is_success:
            yield info
            return


def _eviction(info: PodInfo, found: str) -> SuggestedChange:
    return SuggestedChange(
        ChangeKind.EVICT_POD,
        f"pod {info.key}",
        "",
        info.node_name,
        "",
        f"evict pod {info.key} (priority {info.priority}) from node {info.node_name}",
        found,
        float(info.priority),
    )


def _free_node(trial: ChangeTrial, names: Iterable[str]) -> Iterator[SuggestedChange]:
    for name in _bounded(trial, names):
        pods = _evictable(trial, name)
        if len(pods) > 1 and (found := trial.node_for_without(pods)):
            kind, before, size = ChangeKind.FREE_NODE, count(len(pods), "pod"), float(len(pods))
            sentence = f"free node {name} of its {before}"
            yield SuggestedChange(kind, f"node {name}", "", before, "", sentence, found, size)


def _raise_priority(trial: ChangeTrial) -> Iterator[SuggestedChange]:
    own = trial.pod.spec.priority or 0
    classes = sorted(
        (one.value, one.metadata.name)
        for one in trial.cluster.cache.objects.list(PriorityClass)
        if one.value > own
        and one.preemption_policy != "Never"
        and not one.metadata.name.startswith(_SYSTEM)
    )
    for priority, name in classes:
        # The preemption policy is that of the class, too.
        spec = replace(
            trial.pod.spec, priority=priority, priority_class_name=name, preemption_policy=None
        )
        found, victims = trial.preempting(replace(trial.pod, spec=spec))
        if found:
            yield SuggestedChange(
                ChangeKind.RAISE_PRIORITY,
                f"pod {trial.pod.metadata.key}",
                "spec.priorityClassName",
                trial.pod.spec.priority_class_name,
                name,
                f"give it the PriorityClass {name}; it would evict {count(victims, 'pod')}",
                found,
                float(victims),
            )
            return
