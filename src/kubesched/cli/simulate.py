"""`kubesched simulate`: place all pending pods of a cluster, or simulate a scenario."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
from click.core import ParameterSource

from kubesched.cli.errors import EXIT_INTERRUPTED, write_warnings
from kubesched.cli.flags import (
    OutputFormat,
    TimelineOptions,
    cluster_options,
    output_option,
    scheduler_options,
    table_options,
    timeline_options,
)
from kubesched.cli.output import write_answer
from kubesched.inputs.errors import UserError
from kubesched.inputs.sources import ClusterSource, SchedulerOptions

SECTIONS = ("summary", "placements", "unplaced", "zones", "nodes")

_OF_DUMPS = {
    "sections": "--show",
    "everything": "--all",
    "top": "--top",
    "profile": "--profile",
    "complete": "--complete",
    "kubeconfig": "--kubeconfig",
    "context": "--context",
}
_OF_TIMELINES = {
    "decision_log": "--decision-log",
    "record": "--record",
    "duration_seconds": "--duration",
}


@click.command()
@cluster_options
@table_options("simulate")
@output_option
@scheduler_options
@timeline_options
def simulate(
    timeline: TimelineOptions,
    scheduler: SchedulerOptions,
    source: ClusterSource,
    pod_files: tuple[Path, ...],
    sections: tuple[str, ...],
    everything: bool,
    top: int,
    output: OutputFormat,
) -> int:
    """Place all pending pods of a cluster, or simulate a scenario.

    Without FILES, the cluster is the live one of the current context, or of --context or
    --kubeconfig; it is only read. FILES hold a cluster that was saved: by `kubesched snapshot`, or
    as output of kubectl in JSON or YAML, in any number of files or directories, compressed or not;
    `-` is stdin.

    Pods without a node are scheduled one after another in the order of the scheduler's queue. A pod
    of higher priority may evict others, which disappear at once and are not created again. A pod
    that fits nowhere is retried after events that may help according to the plugins that rejected
    it. The scheduler is that of `kubesched run`, and binding takes no time; a pod that waits on
    Permit in vain is rejected at the plugin's timeout. The same files and seed give the same
    result.

    Only Pods are placed. Deployments and other workloads are not expanded: without their pods among
    the files they are an error.

    `kubesched --help` shows the kubectl command that saves a cluster; use --complete with its
    output. Without it, kinds that the result depends on and the files lack are reported as not
    known, with the command that fetches them.

    Defaults of the API server are applied: requests from limits, priority from a PriorityClass.

    Node and pod lists of the openb GPU trace (CSV) are accepted too. A pod that shares a GPU
    requests a whole one, and pods are scheduled in the order of creation_time.

    A file with `version:` and without `kind:` is a scenario: nodes, pods that arrive and end, and
    other events. It runs on virtual time, and the report shows how long pods waited and how full
    nodes were; --html draws charts. openb lists with --times run in the same way.

    -o json and -o yaml print all decisions. Ctrl-C prints the decisions until then, marked as
    partial, with exit code 130.

    \b
    Examples:
      kubesched simulate
      kubesched simulate cluster.json
      kubesched simulate cluster.json --pods batch.yaml --show unplaced --show zones
      kubesched simulate nodes.csv --pods pods.csv.gz --seed 1 -o json
      kubesched simulate scenario.yaml --html report.html
      kubesched simulate nodes.csv --pods pods.csv.gz --times --html report.html
    """
    from kubesched.cli.files import check_inputs
    from kubesched.inputs.scenario_input import is_scenario

    check_inputs([*source.files, *pod_files, scheduler.config])
    if timeline.times or any(map(is_scenario, source.files)):
        _refuse(_OF_DUMPS, "is not for simulations over time")
        return _play(timeline, scheduler, source.files, pod_files, output)
    _refuse(_OF_TIMELINES, "is for simulations over time: of a scenario, or with --times")
    shown = SECTIONS if everything else sections
    return _place(scheduler, source, pod_files, shown, top, timeline.html, output)


def _refuse(flags: dict[str, str], why: str) -> None:
    """Raise UserError with all of these options that were given."""
    context = click.get_current_context()
    given = [
        flag
        for name, flag in flags.items()
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    ]
    if given:
        raise UserError(*(f"{flag} {why}" for flag in given))


def _play(
    timeline: TimelineOptions,
    options: SchedulerOptions,
    files: tuple[Path, ...],
    pod_files: tuple[Path, ...],
    output: OutputFormat,
) -> int:
    from kubesched.cli.files import check_outputs
    from kubesched.cli.simulate_timeline import play, write_timeline
    from kubesched.inputs.scenario_input import (
        named_files,
        read_scenario,
        read_trace,
        with_scheduler,
        workload_warnings,
    )
    from kubesched.simulator.playback_recorder import PlaybackRecorder

    if timeline.times:
        found = read_trace([*files, *pod_files])
    elif len(files) > 1 or pod_files:
        raise UserError(
            "a scenario is simulated alone: it names its files itself, and `kubesched compare` "
            "compares several"
        )
    else:
        found = read_scenario(files[0])
    check_outputs(
        {
            "--html": timeline.html,
            "--decision-log": timeline.decision_log,
            "--record": timeline.record,
        },
        [*files, *pod_files, options.config, *named_files(found.scenario).values()],
    )
    source = click.get_current_context().get_parameter_source("seed")
    seed = None if source is ParameterSource.DEFAULT else options.seed
    played = with_scheduler(found, options).changed(seed, timeline.duration_seconds)
    write_warnings(workload_warnings(played))
    recorder = None if timeline.html is None else PlaybackRecorder()
    report = play(played, timeline.decision_log, timeline.record, recorder)
    write_timeline(report, output, timeline.html, recorder)
    return EXIT_INTERRUPTED if report.partial else 0


def _place(
    options: SchedulerOptions,
    source: ClusterSource,
    pod_files: tuple[Path, ...],
    shown: tuple[str, ...],
    top: int,
    html: Path | None,
    output: OutputFormat,
) -> int:
    from kubesched.answers.cluster import Cluster
    from kubesched.cli.files import check_outputs
    from kubesched.cli.simulate_run import run_simulation, write_timing
    from kubesched.cli.simulate_text import write_report

    check_outputs({"--html": html}, [*source.files, *pod_files, options.config])
    cluster = Cluster.read(source, options, write_warnings, pod_files, expects_pods=True)
    end, seconds = run_simulation(cluster)
    report = end.report
    write_answer(report, output, partial(write_report, sections=shown, top=top), html)
    if output is OutputFormat.TABLE:
        write_timing(report, seconds)
    return EXIT_INTERRUPTED if report.partial else 0
