"""The dry run: how many candidates it looks for, and when it ends."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.framework.preemption.budgets import DisruptionBudgets
from kubesched.framework.preemption.candidates import (
    collect,
    find_candidates,
    potential_rows,
    rows_needed,
)
from kubesched.framework.preemption.report import Candidate
from kubesched.framework.preemption.verdict_memory import VerdictMemory, Verdicts
from kubesched.framework.preemption.victim_sums import Screening
from kubesched.framework.preemption.victims import select_victims_on_node
from kubesched.framework.status import SUCCESS, Code, NodeToStatus, Status, failure
from kubesched.snapshot.objects import ObjectStore
from kubesched.testing.builders import make_node, make_pod, make_snapshot

from .cluster import NEVER, NO_CPU, NO_PORT, candidate, question_of

CLEAN = [candidate(f"clean-{number}", 1) for number in range(3)]
DIRTY = [candidate(f"dirty-{number}", 1, pdb_violations=1) for number in range(3)]


@pytest.mark.parametrize(
    ("found", "wanted", "candidates", "statuses"),
    [
        pytest.param([], 2, [], [], id="nothing"),
        pytest.param(CLEAN, 2, ["clean-0", "clean-1"], [], id="stops-when-enough"),
        pytest.param(
            [NO_CPU, CLEAN[0], NO_PORT, CLEAN[1], NEVER],
            2,
            ["clean-0", "clean-1"],
            [NO_CPU, NO_PORT],
            id="nodes-tried-before-the-end-have-statuses",
        ),
        pytest.param(
            [DIRTY[0], CLEAN[0], CLEAN[1]],
            2,
            ["clean-0", "dirty-0"],
            [],
            id="both-kinds-count-clean-ones-come-first",
        ),
        pytest.param(
            [*DIRTY, CLEAN[0], CLEAN[1]],
            2,
            ["clean-0", "dirty-0", "dirty-1"],
            [],
            id="goes-on-until-one-is-clean",
        ),
        pytest.param(DIRTY, 2, ["dirty-0", "dirty-1"], [], id="keeps-no-more-than-wanted"),
        pytest.param([CLEAN[0], NO_CPU], 0, [], [NO_CPU], id="none-wanted-none-kept"),
    ],
)
def test_collect(
    found: list[Candidate | Status], wanted: int, candidates: list[str], statuses: list[Status]
) -> None:
    """The dry run ends when there are enough candidates, one of which violates no budget."""
    nodes = make_snapshot([make_node(f"node-{number}") for number in range(len(found))]).nodes
    verdicts = Verdicts(nodes, DisruptionBudgets(ObjectStore()), Screening())
    rows = np.arange(len(found))
    verdicts.put(rows, found)
    tried = rows[: rows_needed(verdicts.costs[0], wanted) or len(found)]
    run = collect(verdicts, tried, wanted, nodes.all_names)
    assert candidates == [each.node_name for each in run.candidates]
    assert statuses == list(run.node_statuses.values())


def test_potential_rows() -> None:
    """Only rows with the plain rejection are tried."""
    statuses = [NEVER, NO_CPU, SUCCESS, NO_PORT, Status(Code.PENDING), failure("broken")]
    assert [1, 3] == potential_rows(NodeToStatus.of(statuses)).tolist()
    assert [] == potential_rows(NodeToStatus.passing(0)).tolist()
    assert [0, 1] == potential_rows(NodeToStatus.everywhere(2, NO_CPU)).tolist()


def test_offset_decides_which_nodes_are_tried() -> None:
    """Trying starts at the offset and wraps around."""
    names = [f"n{number}" for number in range(5)]
    snapshot = make_snapshot(
        [make_node(name, allocatable={"cpu": 1}) for name in names],
        [make_pod(f"p-{name}", node_name=name, requests={"cpu": 1}) for name in names],
    )
    question = question_of(make_pod("new", priority=1, requests={"cpu": 1}), snapshot)
    statuses = NodeToStatus.everywhere(5, NO_CPU)
    seen = set()
    for _ in range(40):
        run = find_candidates(question, statuses, lambda _: 2, VerdictMemory())
        seen.add(tuple(each.node_name for each in run.candidates))
    assert {(names[at], names[(at + 1) % 5]) for at in range(5)} == seen


@pytest.mark.parametrize("wanted", [7, 100])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_judging_rows_beforehand_changes_nothing(wanted: int, size: int) -> None:
    """Verdicts do not depend on batches, and a search that finds them in memory is the same."""
    rows = 100
    snapshot = make_snapshot(
        [make_node(f"n{row}", allocatable={"cpu": 2}) for row in range(rows)],
        [
            make_pod(
                f"p{row}-{at}", node_name=f"n{row}", priority=(row + at) % 3, requests={"cpu": 1}
            )
            for row in range(rows)
            for at in range(2)
        ],
    )
    question = question_of(make_pod("new", priority=2, requests={"cpu": 2}), snapshot)
    judged = VerdictMemory()
    verdicts = judged.about(question)
    for start in range(0, rows, size):
        verdicts.judge(question, np.arange(start, min(start + size, rows)))
    assert [select_victims_on_node(question, row) for row in range(rows)] == verdicts.found.tolist()

    def search(memory: VerdictMemory) -> object:
        question.handle.random.seed(1)
        statuses = NodeToStatus.everywhere(rows, NO_CPU)
        run = find_candidates(question, statuses, lambda _: wanted, memory)
        return run.candidates, run.best, run.node_statuses

    assert search(VerdictMemory()) == search(judged)
