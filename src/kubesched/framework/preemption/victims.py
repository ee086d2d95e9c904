"""Victims on one node: the least important pods whose eviction lets the preemptor fit.

All pods of lower priority are removed. If the preemptor fits then, they return one by one, as long
as it still fits. The pods that cannot return are the victims.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption, SelectVictimsOnNode (v1.36)
Reads:    pods on the node, PodDisruptionBudgets, nominated pods
Rejects:  UnschedulableAndUnresolvable if no pod has a lower priority; otherwise with the status of
          the filter that rejects the node even without these pods.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final, TypeAlias

import msgspec
import numpy as np

from kubesched.framework.cycle_state import CycleState, is_clonable
from kubesched.framework.handle import FilterReads, Handle
from kubesched.framework.plugin import Scope
from kubesched.framework.preemption.budgets import DisruptionBudgets
from kubesched.framework.preemption.candidate import Candidate
from kubesched.framework.preemption.eligibility import lower_priority_pods
from kubesched.framework.preemption.importance import by_importance
from kubesched.framework.status import SUCCESS, Status, failure, unresolvable
from kubesched.snapshot.node_table import SelectedRows
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")

Verdict: TypeAlias = Candidate | Status
"""The result for one node: a candidate, or the status that explains why it is not one."""


class Question(msgspec.Struct, frozen=True, dict=True):
    """The preemptor and the cluster.

    Attributes:
        handle: Runs the filters.
        cycle: The states after pre_filter; only clones are changed.
        pod: The preemptor.
        snapshot: The cluster.
        budgets: The cluster's disruption budgets.
    """

    handle: Handle
    cycle: CycleState
    pod: PodInfo
    snapshot: Snapshot
    budgets: DisruptionBudgets

    @cached_property
    def reads(self) -> FilterReads:
        """What the filters' answers depend on."""
        return self.handle.reads_of_filters(self.cycle, self.pod)

    @property
    def requests_have_columns(self) -> bool:
        """Whether the node table has columns for all resources that the preemptor requests."""
        return self.pod.template.requests.keys() <= self.snapshot.nodes.resources.keys()

    @cached_property
    def verdicts_can_be_kept(self) -> bool:
        """Whether the verdict on a row depends on that row and the versions in `reads` alone."""
        return self.rows_are_independent and Scope.CLUSTER not in self.reads.scopes.values()

    @cached_property
    def rows_are_independent(self) -> bool:
        """Whether rows can be filtered together: no plugin's state changes with pods on nodes.

        A state that `add_pod` changes must be clonable, because each what-if changes its own copy.
        """
        return not any(
            is_clonable(state)
            for name, state in self.cycle.filter_states.items()
            if name not in self.cycle.skip_filter
        )


def select_victims_on_node(question: Question, row: int) -> Verdict:
    """Return the verdict on one row."""
    potential = lower_priority_pods(question.pod, question.snapshot.nodes, row)
    if not potential:
        return NO_VICTIMS
    what_if = _WhatIf(question, row)
    for victim in potential:
        status = what_if.remove(victim)
        if not status.is_success:
            return status
    status = what_if.fits()
    if not status.is_success:
        return status
    violating, others = question.budgets.split(by_importance(potential))
    tried = (*violating, *others)
    evicted: list[PodInfo] = []
    for victim in tried:
        status = what_if.add(victim)
        if status.is_success and not what_if.fits().is_success:
            status = what_if.remove(victim)
            evicted.append(victim)
        if not status.is_success:
            return status
    return verdict(question.snapshot.nodes.names[row], tried, evicted, violating)


def verdict(
    node_name: str,
    tried: Sequence[PodInfo],
    evicted: Sequence[PodInfo],
    violating: Sequence[PodInfo],
) -> Verdict:
    """Return a candidate, or a failure if no pod needs to be evicted.

    `tried` are the pods of lower priority, `evicted` those of them that could not return, in the
    same order, and `violating` those that a disruption budget protects.
    """
    if not evicted:
        return failure(f'expected at least one victim pod on node "{node_name}"')
    protected = {pod.uid for pod in violating}
    violations = sum(pod.uid in protected for pod in evicted)
    # Protected pods were tried first, regardless of importance.
    victims = by_importance(evicted) if 0 < len(violating) < len(tried) else evicted
    return Candidate(node_name, tuple(victims), violations)


class _WhatIf:
    """Copies of one node and of a cycle's states, in which pods are added and removed."""

    def __init__(self, question: Question, row: int) -> None:
        self._question = question
        self._cycle = question.cycle.clone()
        self._node: SelectedRows = question.snapshot.nodes.take(np.array([row], np.intp))

    def add(self, victim: PodInfo) -> Status:
        question = self._question
        return _as_failure(question.handle.add_pod(self._cycle, question.pod, victim, self._node))

    def remove(self, victim: PodInfo) -> Status:
        question = self._question
        return _as_failure(
            question.handle.remove_pod(self._cycle, question.pod, victim, self._node)
        )

    def fits(self) -> Status:
        question = self._question
        return question.handle.filter_with_nominated_pods(
            self._cycle, question.pod, question.snapshot, self._node
        )


def _as_failure(status: Status) -> Status:
    """Turn any status but success into a failure, because adding or removing must succeed."""
    return SUCCESS if status.is_success else failure(status.message)
