"""The work of `kubesched whatif`: read the plan, load the cluster, try the plan, write the answer.

Rejects:  plans with field errors, one line each with file and path.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kubesched.answers.asking import run_trial
from kubesched.answers.manifests import read_manifests
from kubesched.answers.plan import ApplyManifest, PlanError, PlanStep, decode_plan
from kubesched.answers.trial_cluster import QuestionError, TrialCluster
from kubesched.answers.whatif import MovedPod, WhatIfReport, what_if
from kubesched.api.decode import STANDARD_INPUT
from kubesched.api.yaml_syntax import YamlError, load_documents
from kubesched.cli.drain_answer import write_troubles
from kubesched.cli.errors import write_warnings
from kubesched.cli.files import check_inputs
from kubesched.cli.output import Writer
from kubesched.cli.trials import (
    write_notes,
    write_preempted,
    write_use,
    write_without_node,
    write_wrapped,
)
from kubesched.inputs.cluster_input import read_cluster
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import load_scheduler
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from kubesched.snapshot.objects import KubernetesObject

_INDENT: Final = 2
_PODS_MAX: Final = 20


def ask_what_if(options: SchedulerOptions, source: ClusterSource, plan: Path) -> WhatIfReport:
    """Answer what a plan changes.

    Raises:
        UserError: The plan is wrong.
        DecodeError, ConfigError, SetupError: A file cannot be used.
        PluginError: A plugin raised.
    """
    check_inputs([plan, *source.files, options.config])
    if [plan, *source.files].count(Path(STANDARD_INPUT)) > 1:
        raise UserError("`-` stands twice, but standard input can be read only once")
    name = "stdin" if str(plan) == STANDARD_INPUT else str(plan)
    steps = _read_plan(plan, name)
    manifests, warnings = _manifests_of(steps, plan, name)
    scheduler = load_scheduler(options)
    given = read_cluster(source, (), options.profile)
    write_warnings([*given.warnings, *warnings])

    async def ask(cluster: TrialCluster) -> WhatIfReport:
        try:
            return await what_if(cluster, steps, manifests)
        except QuestionError as error:
            raise QuestionError(f"{name}: {error}") from error

    return run_trial(scheduler, options, given, ask)


def _read_plan(plan: Path, name: str) -> list[tuple[str, PlanStep]]:
    try:
        data = sys.stdin.buffer.read() if str(plan) == STANDARD_INPUT else plan.read_bytes()
        documents = [value for _, value in load_documents(data.decode(), rejects_repeats=True)]
    except (YamlError, UnicodeDecodeError) as error:
        raise UserError(f"{name}: it is no YAML: {error}") from error
    if len(documents) != 1:
        raise UserError(f"{name}: a plan is one document, and there are {len(documents)}")
    try:
        return decode_plan(documents[0])
    except PlanError as error:
        raise UserError(*(f"{name}: {message}" for message in error.messages)) from error


def _manifests_of(
    steps: Sequence[tuple[str, PlanStep]], plan: Path, name: str
) -> tuple[dict[str, list[KubernetesObject]], list[str]]:
    """Return the objects of each file that a step applies, and warnings."""
    found: dict[str, list[KubernetesObject]] = {}
    warnings: list[str] = []
    for path, step in steps:
        if isinstance(step, ApplyManifest) and step.file not in found:
            file = plan.parent / step.file
            if not file.exists():
                raise UserError(f"{name}: {path}.file: {file}: there is no such file")
            found[step.file], more = read_manifests([file], "default", needs_workload=False)
            warnings += more
    return found, warnings


def write_what_if(writer: Writer, report: WhatIfReport) -> None:
    """Write the answer."""
    write_wrapped(writer, _headline(report), headline=True)
    write_notes(writer, report.notes, report.unknown)
    writer.heading("Steps")
    for number, step in enumerate(report.steps, 1):
        write_wrapped(writer, f"{number}. {step}", _INDENT)
    _write_pods(writer, "Lost: nothing creates them again", report.lost)
    if report.waiting:
        writer.heading("Kept by a budget")
        write_troubles(writer, report.waiting)
    write_without_node(writer, "Pending now", report.now_pending)
    write_preempted(writer, "Evicted by preemption", report.preempted)
    _write_pods(writer, "No longer pending", report.no_longer_pending)
    _write_pods(writer, "Moved", report.moved)
    _write_pods(writer, "New", report.created)
    _write_pods(writer, "Removed by a step", report.removed)
    write_use(writer, report.before, report.after)


def _headline(report: WhatIfReport) -> str:
    pending = sum(len(group.pods) for group in report.now_pending)
    troubles = [
        (len(report.lost), "is lost", "are lost"),
        (len(report.waiting), "is kept by a budget", "are kept by budgets"),
        (pending, "is pending", "are pending"),
    ]
    changes = [
        (len(report.moved), "moves", "move"),
        (len(report.no_longer_pending), "is no longer pending", "are no longer pending"),
        (len(report.created), "is new", "are new"),
        (len(report.removed), "is removed", "are removed"),
    ]
    parts = [
        f"{number} {one if number == 1 else many}"
        for number, one, many in [*troubles, *changes]
        if number
    ]
    verdict = "The plan works" if report.works else "The plan leaves pods without a place"
    return f"{verdict}: {', '.join(parts) if parts else 'no pod changes'}."


def _write_pods(writer: Writer, heading: str, pods: Sequence[MovedPod]) -> None:
    if not pods:
        return
    writer.heading(heading)
    for one in pods[:_PODS_MAX]:
        begin = one.pod or one.new_pod
        left = f" from {one.node}" if one.node else ""
        came = f" to {one.new_node}" if one.new_node else ""
        write_wrapped(writer, f"{begin}{left}{came}", _INDENT)
    _write_more(writer, len(pods))


def _write_more(writer: Writer, number: int) -> None:
    if number > _PODS_MAX:
        writer.line(f"and {number - _PODS_MAX} more; -o json shows all", indent=_INDENT)
