"""Changes that make a pod fit, and ChangeTrial, which tries one and decides again.

Every answer is a decision of the scheduler's own plugins. The cluster is as before afterwards.

Invariants: each change is of one field, one node or one pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from enum import StrEnum
from functools import cached_property, partial
from typing import Final

import numpy as np

from kubesched.api.core import Node, Pod, Taint
from kubesched.api.meta import KubeObject
from kubesched.api.tolerations import find_untolerated
from kubesched.explain.document import DocumentPart
from kubesched.framework.cycle_state import CycleState
from kubesched.scheduler.decision import Placed, Rejected
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.pod_info import PodInfo, scheduler_name_of


class ChangeKind(StrEnum):
    """What is changed, from the smallest to the largest; `size` orders changes of one kind."""

    CORRECT_VALUE = "CorrectValue"
    REMOVE_GATE = "RemoveGate"
    LOWER_REQUEST = "LowerRequest"
    UNCORDON_NODE = "UncordonNode"
    RAISE_MAX_SKEW = "RaiseMaxSkew"
    ADD_TOLERATION = "AddToleration"
    DROP_CONSTRAINT = "DropConstraint"
    LABEL_NODE = "LabelNode"
    REMOVE_TAINT = "RemoveTaint"
    EVICT_POD = "EvictPod"
    ADD_NODE = "AddNode"
    FREE_NODE = "FreeNode"
    RAISE_PRIORITY = "RaisePriority"


class SuggestedChange(DocumentPart, frozen=True):
    """A change after which the scheduler places the pod.

    Attributes:
        kind: What is changed.
        object: What the field belongs to: `pod shop/web-1`, `node n-3`.
        field: The field, such as `spec.nodeSelector[zone]`; empty if the object itself is
            added or removed.
        before: The field's value; empty if there is none.
        after: The new value; empty if the field or the object is removed.
        sentence: The change in words, in the imperative.
        node: The node that the pod goes to after the change.
        size: How large the change is compared with others of its kind.
    """

    kind: ChangeKind
    object: str
    field: str
    before: str
    after: str
    sentence: str
    node: str = ""
    size: float = 0.0


def by_size(change: SuggestedChange) -> tuple[int, float, str]:
    """Return the key that sorts changes from the smallest to the largest."""
    return list(ChangeKind).index(change.kind), change.size, change.sentence


# Trials.

_REJECTED_BEFORE: Final = 1_000


class ChangeTrial:
    """Tries a pod again under other circumstances; the cluster is changed during a trial only."""

    def __init__(self, cluster: ClusterState, pod: Pod) -> None:
        self.cluster = cluster
        self.pod = pod

    @property
    def profile(self) -> Profile:
        """The profile that schedules the pod."""
        return self.cluster.profiles[scheduler_name_of(self.pod)]

    def node_for(self, pod: Pod | None = None) -> str:
        """Return the node that a pod goes to, "" if it fits nowhere; by default the trial's pod."""
        info = PodInfo(pod or self.pod)
        if not self.cluster.pre_enqueue(info).is_success:
            return ""
        decision = self.cluster.schedule_one(info, preempts=False)
        return decision.node_name if isinstance(decision, Placed) else ""

    def distance(self, pod: Pod) -> int:
        """Return for how many reasons a pod is rejected on its best node; 0 if it fits.

        A pod that PreFilter rejects has a greater distance than any other.
        """
        info, trace = PodInfo(pod), Trace(all_filters=True)
        if not self.cluster.pre_enqueue(info).is_success:
            return _REJECTED_BEFORE + len(pod.spec.scheduling_gates)
        decision = self.cluster.schedule_one(info, trace, preempts=False)
        if isinstance(decision, Placed):
            return 0
        if not len(trace.tried_rows):
            return _REJECTED_BEFORE

        def untolerated(taints: Sequence[Taint]) -> int:
            return sum(bool(find_untolerated([one], pod.spec.tolerations)) for one in taints)

        # The filter names only the first taint; each needs a toleration.
        taints = self.cluster.cache.nodes.taints.map(untolerated, np.intp)
        rejections = np.maximum(taints - 1, 0)
        for filtered in trace.filters:
            answers = filtered.answers
            reasons = [
                0 if one.is_success else len(one.all_reasons) or 1 for one in answers.statuses
            ]
            rejections[filtered.rows] += np.array(reasons, np.intp)[answers.index]
        return max(1, int(rejections[trace.tried_rows].min()))

    def node_for_with(self, *items: KubeObject) -> str:
        """Return the node that the pod goes to if objects are added, or replace others.

        An object replaces the one of its name. Name a node before the pods on it.
        """
        with ExitStack() as undo:
            for item in items:
                undo.callback(self._put(item))
            return self.node_for()

    def _put(self, item: KubeObject) -> Callable[[], object]:
        """Add or replace an object; return the function that undoes this."""
        cache = self.cluster.cache
        if isinstance(item, Pod):
            return partial(cache.remove_pod, cache.add_pod(item).uid)
        if isinstance(item, Node):
            row = cache.nodes.row_of.get(item.metadata.name)
            undo: Callable[[], object] = partial(cache.remove_node, item.metadata.name)
            if row is not None:
                undo = partial(cache.add_node, cache.nodes.nodes[row])
            cache.add_node(item)
            return undo
        before = cache.put(item)
        return partial(cache.delete, item) if before is None else partial(cache.put, before)

    def node_for_without(self, pods: Iterable[PodInfo]) -> str:
        """Return the node that the pod goes to if other pods are gone."""
        cache, gone = self.cluster.cache, list(pods)
        claims = self.cluster.delete(gone)
        try:
            return self.node_for()
        finally:
            for claim in claims:
                cache.put(claim)
            for info in gone:
                cache.add_pod(info.pod)

    def preempting(self, pod: Pod) -> tuple[str, int]:
        """Return the node that a pod would be nominated to, and how many pods it would evict."""
        info = PodInfo(pod)
        if not self.cluster.pre_enqueue(info).is_success:
            return "", 0
        decision = self.cluster.schedule_one(info)
        if not isinstance(decision, Rejected) or not decision.nominated_node_name:
            return "", 0
        return decision.nominated_node_name, len(decision.victims)

    @cached_property
    def filter_states(self) -> CycleState | None:
        """The states that the filters prepared for the pod; None if it was rejected by then."""
        trace = Trace()
        self.cluster.schedule_one(PodInfo(self.pod), trace, preempts=False)
        return trace.cycle if trace.tried_rows.size else None
