"""Tests of the diagnosis and of its text."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.status import (
    SUCCESS,
    Code,
    NodeToStatus,
    Status,
    failure,
    unresolvable,
    unschedulable,
)

NAMES = tuple(f"node-{number}" for number in range(12))


def of(*statuses: Status, absent: Status | None = None) -> Diagnosis:
    """Return the diagnosis of nodes with these statuses."""
    return Diagnosis.of_filter(NAMES[: len(statuses)], NodeToStatus.of(statuses), absent)


CPU = unschedulable("Insufficient cpu")
CPU_AND_MEMORY = unschedulable("Insufficient cpu", "Insufficient memory")
TAINT = unresolvable("node(s) had untolerated taint(s)")
LATER = unresolvable("not now")
UNSATISFIED = unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]")


@pytest.mark.parametrize(
    ("diagnosis", "nodes", "story"),
    [
        pytest.param(of(CPU), 1, " 1 Insufficient cpu.", id="one-node"),
        pytest.param(
            of(CPU_AND_MEMORY, CPU),
            2,
            " 1 Insufficient memory, 2 Insufficient cpu.",
            id="each-reason-of-a-node-counts",
        ),
        pytest.param(
            of(*[CPU] * 10, TAINT, TAINT),
            12,
            " 10 Insufficient cpu, 2 node(s) had untolerated taint(s).",
            id="ten-sorts-before-two",
        ),
        pytest.param(
            of(TAINT, CPU),
            2,
            " 1 Insufficient cpu, 1 node(s) had untolerated taint(s).",
            id="equal-counts-sort-by-reason",
        ),
        pytest.param(
            of(CPU, absent=LATER), 3, " 1 Insufficient cpu, 2 not now.", id="absent-nodes-count"
        ),
        pytest.param(
            of(CPU, LATER, absent=LATER),
            3,
            " 1 Insufficient cpu, 2 not now.",
            id="absent-and-tried-nodes-share-a-reason",
        ),
        pytest.param(of(CPU), 5, " 1 Insufficient cpu.", id="absent-without-reason"),
        pytest.param(Diagnosis(), 4, "", id="nothing-to-say"),
        pytest.param(Diagnosis(), 0, "", id="no-nodes"),
        pytest.param(
            of(SUCCESS, CPU, absent=LATER),
            2,
            " 1 Insufficient cpu, 1 not now.",
            id="success-counts-as-absent",
        ),
        pytest.param(
            of(unschedulable("twice", "twice")), 1, " 2 twice.", id="given-twice-counts-twice"
        ),
        pytest.param(of(failure("broken")), 1, " 1 broken.", id="error-is-a-reason"),
        pytest.param(
            Diagnosis.of_pre_filter(unresolvable("a", "b")),
            3,
            " a, b.",
            id="pre-filter-has-no-counts",
        ),
        pytest.param(Diagnosis.of_pre_filter(unresolvable()), 3, "", id="pre-filter-is-silent"),
        pytest.param(
            of(CPU).with_post_filter_message("preemption: not eligible."),
            1,
            " 1 Insufficient cpu. preemption: not eligible.",
            id="post-filter-message-gets-no-period",
        ),
        pytest.param(
            Diagnosis.of_pre_filter(unresolvable("a")).with_post_filter_message("not found"),
            3,
            " a. not found",
            id="post-filter-after-pre-filter",
        ),
        pytest.param(of(unschedulable("é"), unschedulable("z")), 2, " 1 z, 1 é.", id="byte-order"),
    ],
)
def test_fit_error(diagnosis: Diagnosis, nodes: int, story: str) -> None:
    """The text is upstream's."""
    assert f"0/{nodes} nodes are available:{story}" == diagnosis.fit_error(nodes)


def test_plugins_of_filter() -> None:
    """Plugins of statuses that some node has are recorded; pending ones in both sets."""
    statuses = (
        SUCCESS,
        CPU.by("Fit"),
        unschedulable("unused").by("Unused"),
        Status(Code.PENDING, ("later",), "Devices"),
        failure("broken").by("Broken"),
        TAINT,
    )
    index = np.array([1, 3, 4, 5, 0], np.int32)
    diagnosis = Diagnosis.of_filter(
        NAMES[:5], NodeToStatus(index, statuses), contributors=["NodeAffinity"]
    )
    assert frozenset({"Fit", "Devices", "NodeAffinity"}) == diagnosis.unschedulable_plugins
    assert frozenset({"Devices"}) == diagnosis.pending_plugins


def test_plugins_of_pre_filter() -> None:
    """The plugin that rejected the pod is recorded next to those that restricted the nodes."""
    diagnosis = Diagnosis.of_pre_filter(UNSATISFIED.by("NodeAffinity"), ["DaemonSet"])
    assert frozenset({"NodeAffinity", "DaemonSet"}) == diagnosis.unschedulable_plugins
    assert frozenset() == diagnosis.pending_plugins
    assert UNSATISFIED.by("NodeAffinity") == diagnosis.absent_status


def test_with_rejection_by() -> None:
    """An extender is added to the plugins that rejected the pod."""
    diagnosis = of(CPU.by("Fit")).with_rejection_by("Extender")
    assert frozenset({"Fit", "Extender"}) == diagnosis.unschedulable_plugins


def test_status_per_row() -> None:
    """Rows that were not tried, and all rows after pre_filter, have the absent status."""
    tried = of(TAINT, SUCCESS, CPU, absent=UNSATISFIED).status_per_row(3)
    assert [TAINT, UNSATISFIED, CPU] == [tried[row] for row in range(3)]
    none_tried = Diagnosis.of_pre_filter(UNSATISFIED).status_per_row(2)
    assert [UNSATISFIED, UNSATISFIED] == [none_tried[row] for row in range(2)]


STATUSES = st.sampled_from(
    [SUCCESS, CPU, CPU_AND_MEMORY, TAINT, failure("broken"), unschedulable(), LATER]
)


@given(st.lists(STATUSES, max_size=12), STATUSES, st.integers(0, 5))
def test_fit_error_equals_its_slow_twin(
    statuses: list[Status], absent: Status, more_nodes: int
) -> None:
    """Counting by code equals counting node by node."""
    num_all_nodes = len(statuses) + more_nodes
    everyone = [status if status.code else absent for status in statuses] + [absent] * more_nodes
    counts = Counter(reason for status in everyone for reason in status.all_reasons)
    entries = sorted(
        (f"{count} {reason}" for reason, count in counts.items()), key=lambda entry: entry.encode()
    )
    expected = f"0/{num_all_nodes} nodes are available:"
    if entries:
        expected += " " + ", ".join(entries) + "."
    assert expected == of(*statuses, absent=absent).fit_error(num_all_nodes)
