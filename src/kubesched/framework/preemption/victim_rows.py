"""Victims on many nodes at once: the same decision as node by node, computed with columns.

If a row's answer depends on that row alone, all pods of lower priority are removed from all rows at
once. They return in rounds: each round adds the next pod of every row, and one call of the filters
decides on which rows it stays.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption, SelectVictimsOnNode (v1.36)
Invariants: the verdicts equal those of `select_victims_on_node` row by row.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.preemption.eligibility import lower_priority_pods
from kubesched.framework.preemption.importance import by_importance
from kubesched.framework.preemption.victims import NO_VICTIMS, Question, Verdict, verdict
from kubesched.snapshot.node_table import SelectedRows
from kubesched.snapshot.pod_info import PodInfo


@dataclass(slots=True, eq=False)
class _Reprieve:
    """One row of the what-if table, and its pods in the order in which they may return."""

    place: int
    row: int
    violating: list[PodInfo]
    pods: list[PodInfo]
    evicted: list[PodInfo] = field(default_factory=list)


def contested_rows(
    question: Question, names: Collection[str] | None = None
) -> dict[int, list[PodInfo]]:
    """Return the pods that the preemptor must not displace, by the row they are nominated to.

    `names` are the nodes to look at; None for all.
    """
    pod, snapshot = question.pod, question.snapshot
    by_node, row_of = snapshot.nominated.by_node, snapshot.nodes.row_of
    contested: dict[int, list[PodInfo]] = {}
    for name in by_node.keys() & (row_of.keys() if names is None else names):
        rivals = [
            rival
            for rival in by_node[name]
            if rival.priority >= pod.priority and rival.uid != pod.uid
        ]
        if name in row_of and rivals:
            contested[row_of[name]] = rivals
    return contested


def select_victims_on_rows(question: Question, rows: Sequence[int]) -> list[Verdict]:
    """Return one verdict for each of `rows`, which must be independent and without rivals."""
    nodes = question.snapshot.nodes
    verdicts: list[Verdict] = [NO_VICTIMS] * len(rows)
    potential = [lower_priority_pods(question.pod, nodes, row) for row in rows]
    places = [place for place, pods in enumerate(potential) if pods]
    if not places:
        return verdicts
    what_if = nodes.take(np.array([rows[place] for place in places], np.intp))
    what_if.remove_pods(
        [(row, victim) for row, place in enumerate(places) for victim in potential[place]]
    )
    statuses = question.handle.filter_rows(question.cycle, question.pod, what_if)
    reprieves: list[_Reprieve] = []
    for row, place in enumerate(places):
        if statuses.index[row]:
            verdicts[place] = statuses[row]
        else:
            violating, others = question.budgets.split(by_importance(potential[place]))
            reprieves.append(_Reprieve(place, row, violating, violating + others))
    _let_pods_come_back(question, what_if, reprieves)
    for reprieve in reprieves:
        name = nodes.names[rows[reprieve.place]]
        verdicts[reprieve.place] = verdict(
            name, reprieve.pods, reprieve.evicted, reprieve.violating
        )
    return verdicts


def _let_pods_come_back(
    question: Question, what_if: SelectedRows, reprieves: list[_Reprieve]
) -> None:
    """Add the pods back, one per row and round; those that cannot stay go to `evicted`."""
    turn = 0
    while reprieves := [reprieve for reprieve in reprieves if turn < len(reprieve.pods)]:
        what_if.add_pods([(reprieve.row, reprieve.pods[turn]) for reprieve in reprieves])
        # Rows whose pods are all decided are not filtered again.
        remaining = what_if.take(np.array([reprieve.row for reprieve in reprieves], np.intp))
        fits = question.handle.filter_rows(question.cycle, question.pod, remaining).passed.tolist()
        leaving = [each for each, fit in zip(reprieves, fits, strict=True) if not fit]
        what_if.remove_pods([(reprieve.row, reprieve.pods[turn]) for reprieve in leaving])
        for reprieve in leaving:
            reprieve.evicted.append(reprieve.pods[turn])
        turn += 1
