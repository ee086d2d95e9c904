"""`kubesched replay`: recorded decisions, made again."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.errors import EXIT_DIFFERENT, EXIT_INTERRUPTED
from kubesched.cli.options import FILE_PATH, OutputFormat, output_option, scheduler_options
from kubesched.cli.output import write_document, writer
from kubesched.inputs.sources import SchedulerOptions


@click.command()
@click.argument("recording", type=FILE_PATH)
@output_option
@scheduler_options
def replay(options: SchedulerOptions, recording: Path, output: OutputFormat) -> int:
    """Make the decisions of a RECORDING again, and show where they would differ now.

    A recording is written by `kubesched run`, `shadow` or `simulate` with --record FILE; `-` is
    stdin. It holds the cluster, what changed, and the decisions. Each pod is decided again in the
    cluster as it was, with the plugins and the configuration of now; then the recorded decision
    takes effect. Give the configuration of the recorded scheduler with --config to test a new
    version of kubesched or of a plugin, or another one to see what it would change.

    Decisions are the same, ties, or different: each difference is listed with the scores of both
    nodes, or with what the recorded node lacks now. In a recording of `shadow`, whose decisions
    were seen a little later, some are the same only shortly before or after.

    The exit code is 1 if a decision is different, else 0. Ctrl-C prints the report until then,
    with exit code 130.

    \b
    Examples:
      kubesched replay monday.jsonl.gz --config scheduler.yaml
      kubesched replay monday.jsonl.gz --config packing.yaml -o json
      kubesched simulate scenario.yaml --record run.jsonl && kubesched replay run.jsonl
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.files import check_inputs
    from kubesched.cli.replay_run import run_replay, write_replay

    check_inputs([recording, options.config])
    report = run_replay(options, recording)
    if output is not OutputFormat.TABLE:
        write_document(report, output)
    else:
        write_replay(writer(), report)
    if report.partial:
        return EXIT_INTERRUPTED
    return EXIT_DIFFERENT if report.different else 0
