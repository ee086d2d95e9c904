"""Candidates: a dry run of preemption on nodes until enough candidates are found.

Upstream: pkg/scheduler/framework/preemption/preemption.go, DryRunPreemption (v1.36)
Invariants: nodes are tried in a fixed order from a random offset; the batch size does not change
            the result.
Differs:  nodes are tried in table order, where upstream tries several in parallel in map order; a
          run that does not try all nodes may therefore stop at other nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from kubesched.framework.preemption.candidate import Candidate
from kubesched.framework.preemption.eligibility import has_lower_priority_pods
from kubesched.framework.preemption.verdict_memory import VerdictMemory
from kubesched.framework.preemption.victim_rows import (
    contested_rows,
    rows_are_independent,
    select_victims_on_rows,
)
from kubesched.framework.preemption.victims import (
    NO_VICTIMS,
    Question,
    Verdict,
    select_victims_on_node,
)
from kubesched.framework.status import Code, NodeToStatus, Status

_BATCH_ROWS_MIN: Final = 32
"""The smallest batch; one more row costs little."""


class Sampling(msgspec.Struct, frozen=True):
    """How many candidates end the dry run.

    Attributes:
        percentage: Of the potential nodes, 0 to 100.
        absolute: The minimum number.
    """

    percentage: int = 10
    absolute: int = 100

    def wanted(self, potential_nodes: int) -> int:
        """Return the number of candidates that ends the dry run."""
        share = potential_nodes * self.percentage // 100
        return min(potential_nodes, max(share, self.absolute))


class DryRun(msgspec.Struct, frozen=True):
    """The result of a dry run.

    Attributes:
        candidates: Nodes where evicting helps, those that violate no budget first.
        node_statuses: Node name -> why it is not a candidate, for the other nodes tried.
    """

    candidates: tuple[Candidate, ...] = ()
    node_statuses: dict[str, Status] = msgspec.field(default_factory=dict)


def potential_rows(statuses: NodeToStatus) -> list[int]:
    """Return the rows whose rejection evicting pods may resolve."""
    helpful = np.array([status.code is Code.UNSCHEDULABLE for status in statuses.statuses])
    rows: list[int] = np.flatnonzero(helpful[statuses.index]).tolist()
    return rows


def find_candidates(
    question: Question,
    statuses: NodeToStatus,
    sampling: Sampling,
    memory: VerdictMemory | None = None,
) -> DryRun:
    """Try the potential nodes until there are enough candidates.

    Args:
        question: The preemptor and the cluster.
        statuses: Why each row was rejected.
        sampling: How many candidates are enough.
        memory: Verdicts for earlier preemptors, which may be used for this one.
    """
    rows = potential_rows(statuses)
    if not rows:
        return DryRun()
    names = question.snapshot.nodes.names
    if not has_lower_priority_pods(question.pod, question.snapshot.nodes):
        return DryRun(node_statuses=dict.fromkeys([names[row] for row in rows], NO_VICTIMS))
    offset = question.handle.random.randrange(len(rows))
    wanted = sampling.wanted(len(rows))
    verdicts = judge(question, rows[offset:] + rows[:offset], wanted, memory)
    return collect(verdicts, wanted)


def judge(
    question: Question, rows: Sequence[int], batch_rows: int, memory: VerdictMemory | None = None
) -> Iterator[tuple[str, Verdict]]:
    """Yield node names and verdicts, computed in batches of at least `batch_rows` rows."""
    names = question.snapshot.nodes.names
    if not rows_are_independent(question.cycle):
        for row in rows:
            yield names[row], select_victims_on_node(question, row)
        return
    known = None if memory is None else memory.about(question)
    contested = contested_rows(question)
    batch_rows = max(batch_rows, _BATCH_ROWS_MIN)
    for start in range(0, len(rows), batch_rows):
        batch = rows[start : start + batch_rows]
        together = [row for row in batch if row not in contested] if contested else batch
        if known is None:
            verdicts = select_victims_on_rows(question, together)
        else:
            verdicts = known.judge(question, together)
        if together is not batch:
            found = dict(zip(together, verdicts, strict=True))
            for row in contested.keys() & set(batch):
                if known is None:
                    found[row] = select_victims_on_node(question, row)
                else:
                    found[row] = known.judge_contested(question, row, contested[row])
            verdicts = [found[row] for row in batch]
        yield from zip([names[row] for row in batch], verdicts, strict=True)


def collect(verdicts: Iterable[tuple[str, Verdict]], wanted: int) -> DryRun:
    """Read verdicts until `wanted` candidates are found, at least one without a violation.

    Keeps at most `wanted` candidates without and `wanted` with a violation.
    """
    clean: list[Candidate] = []
    violating: list[Candidate] = []
    node_statuses: dict[str, Status] = {}
    for node_name, found in verdicts:
        if isinstance(found, Status):
            node_statuses[node_name] = found
            continue
        kept = violating if found.pdb_violations else clean
        if len(kept) < wanted:
            kept.append(found)
        if clean and len(clean) + len(violating) >= wanted:
            break
    return DryRun((*clean, *violating), node_statuses)
