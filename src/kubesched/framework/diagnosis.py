"""Diagnosis: why no node fits a pod, per node, per plugin, and as upstream's message.

Upstream: pkg/scheduler/framework/types.go, Diagnosis and FitError (v1.36)
Invariants: `node_names[i]` is the node of status `i`; a node with status success counts as absent.
Differs:  statuses are dictionary-encoded; absent nodes are counted, not listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Self

import msgspec
import numpy as np

from kubesched.framework.status import Code, NodeToStatus, Status, unresolvable

_NO_PLUGINS: Final[frozenset[str]] = frozenset()
_NO_STATUSES: Final = NodeToStatus.passing(0)


class Diagnosis(msgspec.Struct, frozen=True):
    """The outcome of a cycle that found no node.

    Attributes:
        node_names: The nodes that were tried; must not be changed afterwards.
        node_to_status: One status per tried node, in the same order.
        absent_status: The status of every other node.
        unschedulable_plugins: Plugins that rejected the pod.
        pending_plugins: Those of them that returned Pending and will activate the pod themselves.
        pre_filter_message: Why pre_filter rejected the pod on all nodes; empty if it did not.
        post_filter_message: The message of post_filter; empty if it succeeded or did not run.
    """

    node_names: Sequence[str] = ()
    node_to_status: NodeToStatus = _NO_STATUSES
    absent_status: Status = unresolvable()
    unschedulable_plugins: frozenset[str] = _NO_PLUGINS
    pending_plugins: frozenset[str] = _NO_PLUGINS
    pre_filter_message: str = ""
    post_filter_message: str = ""

    @classmethod
    def of_pre_filter(cls, status: Status, contributors: Iterable[str] = ()) -> Self:
        """Return the diagnosis of a pod that pre_filter rejected on all nodes.

        `contributors` are plugins that restricted the nodes; their events may help too.
        """
        return cls(
            absent_status=status,
            unschedulable_plugins=_rejecting(contributors, (status,)),
            pending_plugins=_pending((status,)),
            pre_filter_message=status.message,
        )

    @classmethod
    def of_filter(
        cls,
        node_names: Sequence[str],
        node_to_status: NodeToStatus,
        absent_status: Status | None = None,
        contributors: Iterable[str] = (),
    ) -> Self:
        """Return the diagnosis of a pod that filters rejected, with one status per tried node.

        `absent_status` is that of the other nodes, by default a rejection without a reason.
        `contributors` are plugins that restricted the nodes; their events may help too.
        """
        found = [status for status, _ in node_to_status.counts]
        return cls(
            node_names=node_names,
            node_to_status=node_to_status,
            absent_status=unresolvable() if absent_status is None else absent_status,
            unschedulable_plugins=_rejecting(contributors, found),
            pending_plugins=_pending(found),
        )

    def with_rejection_by(self, plugin: str) -> Self:
        """Return a copy with one more plugin that rejected the pod."""
        plugins = self.unschedulable_plugins | {plugin}
        return msgspec.structs.replace(self, unschedulable_plugins=plugins)

    def with_post_filter_message(self, message: str) -> Self:
        """Return a copy with the message of post_filter."""
        return msgspec.structs.replace(self, post_filter_message=message)

    def status_per_row(self, num_all_nodes: int) -> NodeToStatus:
        """Return one status per row of the table; untried rows have the absent status.

        The diagnosis's `node_names` must be those of the table, or empty.
        """
        if not len(self.node_to_status):
            return NodeToStatus.everywhere(num_all_nodes, self.absent_status)
        found = self.node_to_status
        if np.count_nonzero(found.index) == len(found):
            return found
        index = np.where(found.index == 0, np.int32(len(found.statuses)), found.index)
        return NodeToStatus(index, (*found.statuses, self.absent_status))

    def reason_counts(self, num_all_nodes: int) -> dict[str, int]:
        """Count the nodes per reason, tried or not; a node with several reasons counts for each."""
        reasons: dict[str, int] = {}
        absent = num_all_nodes
        for status, nodes in self.node_to_status.counts:
            _add_reasons(reasons, status, nodes)
            absent -= nodes
        if absent > 0:
            _add_reasons(reasons, self.absent_status, absent)
        return reasons

    def reasons(self, num_all_nodes: int) -> tuple[str, ...]:
        """Return why there is no node, without numbers of nodes; sorted."""
        if self.pre_filter_message:
            return (self.pre_filter_message,)
        return tuple(sorted(self.reason_counts(num_all_nodes)))

    def fit_error(self, num_all_nodes: int) -> str:
        """Return upstream's failure message, as written to the pod's condition."""
        text = f"0/{num_all_nodes} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        elif reasons := self.reason_counts(num_all_nodes):
            # Sorted as text that begins with the number, so 10 comes before 2.
            text += f" {', '.join(sorted(f'{n} {reason}' for reason, n in reasons.items()))}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text


def _add_reasons(reasons: dict[str, int], status: Status, nodes: int) -> None:
    for reason in status.all_reasons:
        reasons[reason] = reasons.get(reason, 0) + nodes


def _rejecting(contributors: Iterable[str], statuses: Iterable[Status]) -> frozenset[str]:
    rejecting = (s.plugin for s in statuses if s.plugin and s.is_rejected)
    return frozenset(contributors).union(rejecting)


def _pending(statuses: Iterable[Status]) -> frozenset[str]:
    return frozenset(s.plugin for s in statuses if s.plugin and s.code is Code.PENDING)
