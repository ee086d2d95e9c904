"""What the commands that ask about a cluster have in common: their options, and the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kubesched.answers.cluster import Cluster
from kubesched.cli.errors import write_warnings
from kubesched.cli.files import check_inputs, check_outputs
from kubesched.cli.output import OutputFormat
from kubesched.inputs.sources import ClusterSource, SchedulerOptions


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """The scheduler that decides, and the form of the answer; without `html` no page is written."""

    scheduler: SchedulerOptions
    html: Path | None
    output: OutputFormat


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
