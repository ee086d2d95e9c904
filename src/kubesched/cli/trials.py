"""What the commands that try something in a cluster have in common: how they ask, and write.

Text has at most 80 columns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

from kubesched.answers.pod_outcomes import PodsWithoutNode, PreemptedPod
from kubesched.answers.trial_cluster import QuestionError, TrialCluster
from kubesched.cli.explain_text import write_unknown
from kubesched.cli.output import Writer
from kubesched.config.field_errors import ConfigError
from kubesched.explain.report import Unknown
from kubesched.explain.sentences import count, names
from kubesched.inputs.cluster_input import ClusterInput
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import SchedulerSetup, in_file
from kubesched.inputs.sources import SchedulerOptions
from kubesched.simulator import virtual_loop
from kubesched.simulator.rehearsal import Rehearsal

T = TypeVar("T")

COLUMNS: Final = 80
_INDENT: Final = 2
_REASONS_MAX: Final = 5
_EVICTED_MAX: Final = 10


def run_trial(
    scheduler: SchedulerSetup,
    options: SchedulerOptions,
    given: ClusterInput,
    ask: Callable[[TrialCluster], Awaitable[T]],
) -> T:
    """Return the answer to a question about a cluster.

    Args:
        scheduler: The scheduler.
        options: Its options.
        given: The cluster.
        ask: Asks the question of the cluster, which is loaded and not yet settled.

    Raises:
        UserError: A plugin cannot be built, with one line per error and the configuration's file;
            or the question cannot be asked of the cluster.
        PluginError: A plugin raised.
    """

    async def main() -> T:
        rehearsal = Rehearsal(*scheduler, seed=options.seed)
        rehearsal.load(given.objects)
        for kind in given.complete:
            rehearsal.scheduler.cache.declare_complete(kind)
        return await ask(TrialCluster(rehearsal))

    try:
        return virtual_loop.run(main())
    except ConfigError as error:
        raise in_file(error, options.config) from error
    except QuestionError as error:
        raise UserError(str(error)) from error


def write_wrapped(writer: Writer, text: str, indent: int = 0, *, dim: bool = False) -> None:
    """Write a text on lines of at most 80 columns; words are not broken."""
    for line in textwrap.wrap(
        text, COLUMNS - indent, break_long_words=False, break_on_hyphens=False
    ):
        writer.line(line, indent=indent, dim=dim)


def write_notes(writer: Writer, notes: Iterable[str], unknown: Sequence[Unknown]) -> None:
    """Write what was assumed, and what the files lack."""
    for note in notes:
        write_wrapped(writer, f"Note: {note}", dim=True)
    write_unknown(writer, unknown)


def write_without_node(writer: Writer, heading: str, groups: Sequence[PodsWithoutNode]) -> None:
    """Write which pods have no node, and why."""
    if not groups:
        return
    writer.heading(heading)
    for group in groups[:_REASONS_MAX]:
        number = count(len(group.pods), "pod")
        write_wrapped(writer, f"{number}: {names(group.pods)}", _INDENT)
        text = "not known, because the input lacks objects" if group.unknown else group.message
        write_wrapped(writer, text, 3 * _INDENT, dim=True)
    left = groups[_REASONS_MAX:]
    if left:
        pods = count(sum(len(group.pods) for group in left), "pod")
        writer.line(f"and {pods} for other reasons; -o json shows all", indent=_INDENT)


def write_evicted(writer: Writer, heading: str, evicted: Sequence[PreemptedPod]) -> None:
    """Write which pods preemption evicts, and where they go."""
    if not evicted:
        return
    writer.heading(heading)
    for one in evicted[:_EVICTED_MAX]:
        if one.new_node:
            fate = f"goes to {one.new_node}"
        else:
            fate = "stays pending" if one.controller else "nothing creates it again"
        text = f"{one.pod} (priority {one.priority}) on {one.node}, for {one.preemptor}: {fate}"
        write_wrapped(writer, text, _INDENT)
    if len(evicted) > _EVICTED_MAX:
        left = len(evicted) - _EVICTED_MAX
        writer.line(f"and {left} more; -o json shows all", indent=_INDENT)
