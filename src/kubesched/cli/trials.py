"""Opening a cluster to ask about, and writing the parts that answers have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from kubesched.answers.cluster import Cluster
from kubesched.answers.pod_outcomes import PodsWithoutNode, PreemptedPod
from kubesched.answers.whatif import ClusterUse
from kubesched.api.decode import STANDARD_INPUT
from kubesched.cli.errors import write_warnings
from kubesched.cli.explain_text import write_unknown
from kubesched.cli.files import check_inputs, check_outputs
from kubesched.cli.flags import AnswerOptions
from kubesched.cli.output import Writer, simple_table
from kubesched.cli.simulate_text import amount
from kubesched.explain.report import Unknown
from kubesched.explain.sentences import count, names
from kubesched.inputs.errors import UserError
from kubesched.inputs.pod_names import NODE_PREFIXES
from kubesched.inputs.sources import ClusterSource

_REASONS_MAX: Final = 5
_EVICTED_MAX: Final = 10


def open_cluster(source: ClusterSource, asked: AnswerOptions, *files: Path) -> Cluster:
    """Return the cluster to ask; warnings go to stderr.

    Other files that the command reads, and the page that it writes, are checked too.

    Raises:
        UserError: A file, plugin or profile is invalid, a live cluster cannot be read, or the page
            cannot be written.
        DecodeError, ConfigError, SetupError: A file cannot be used.
    """
    inputs = [*files, *source.files, asked.scheduler.config]
    check_inputs(inputs)
    check_outputs({"--html": asked.html}, inputs)
    return Cluster.read(source, asked.scheduler, write_warnings)


def nodes_and_source(
    words: Sequence[str], source: ClusterSource
) -> tuple[list[str], ClusterSource]:
    """Return the names of nodes among the words, and the cluster with the files after them.

    Raises:
        UserError: There are files only, or files beside a live cluster.
    """
    first = next((at for at, word in enumerate(words) if _is_file(word)), len(words))
    files = tuple(Path(word) for word in words[first:])
    if not first:
        if words[0] != STANDARD_INPUT and not Path(words[0]).exists():
            raise UserError(f"{words[0]}: it is no node, and there is no such file; name a node")
        raise UserError(f"{words[0]}: it is a file; name a node before it")
    if files and (source.kubeconfig or source.context):
        raise UserError(f"{files[0]}: there is a live cluster already; leave out one")
    return list(words[:first]), replace(source, files=(*source.files, *files))


def _is_file(word: str) -> bool:
    """Whether a word cannot be the name of a node, or names a file that exists."""
    return (
        word == STANDARD_INPUT
        or ("/" in word and not word.startswith(NODE_PREFIXES))
        or word.endswith((".json", ".yaml", ".yml", ".gz"))
        or Path(word).exists()
    )


def write_notes(writer: Writer, notes: Iterable[str], unknown: Sequence[Unknown]) -> None:
    """Write what was assumed, and what the files lack."""
    for note in notes:
        writer.line(f"Note: {note}", dim=True)
    write_unknown(writer, unknown)


def write_list(writer: Writer, heading: str, lines: Sequence[str], limit: int) -> None:
    """Write lines below a heading, the first of many; nothing if there are none."""
    if not lines:
        return
    writer.heading(heading)
    for line in lines[:limit]:
        writer.item(line)
    writer.rest(len(lines) - limit, "-o json shows all")


def write_without_node(writer: Writer, heading: str, groups: Sequence[PodsWithoutNode]) -> None:
    """Write which pods have no node, and why."""
    if not groups:
        return
    writer.heading(heading)
    for group in groups[:_REASONS_MAX]:
        number = count(len(group.pods), "pod")
        writer.item(f"{number}: {names(group.pods)}")
        text = "not known, because the input lacks objects" if group.unknown else group.message
        writer.detail(text)
    left = groups[_REASONS_MAX:]
    if left:
        pods = count(sum(len(group.pods) for group in left), "pod")
        writer.item(f"and {pods} for other reasons; -o json shows all")


def write_preempted(writer: Writer, heading: str, evicted: Sequence[PreemptedPod]) -> None:
    """Write which pods preemption evicts, and where they go."""
    write_list(writer, heading, [_preempted(one) for one in evicted], _EVICTED_MAX)


def _preempted(one: PreemptedPod) -> str:
    if one.new_node:
        fate = f"goes to {one.new_node}"
    else:
        fate = "stays pending" if one.controller else "nothing creates it again"
    return f"{one.pod} (priority {one.priority}) on {one.node}, for {one.preemptor}: {fate}"


def write_use(writer: Writer, before: ClusterUse, after: ClusterUse) -> None:
    """Write how full a cluster is before and after a change."""
    writer.heading("Requested of allocatable")
    known = {one.resource: one for one in before.resources}
    rows = []
    for one in after.resources:
        earlier = known.get(one.resource, one)
        cells = [
            f"{amount(use.resource, use.requested)} of {amount(use.resource, use.allocatable)}"
            f"{'' if use.share is None else f' ({use.share:.0%})'}"
            for use in (earlier, one)
        ]
        rows.append((one.resource, *cells))
    writer.table(simple_table(("resource", "before", "after"), rows, "before", "after"))
    nodes = f"{before.nodes:,} → {count(after.nodes, 'node')}"
    pending = f"{before.pending:,} → {count(after.pending, 'pending pod')}"
    writer.item(f"{nodes}, {pending}")
