"""`kubesched snapshot`: record a cluster into one file."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.flags import cluster_options, table_options
from kubesched.inputs.sources import ClusterSource


@click.command()
@cluster_options
@table_options("snapshot")
def snapshot(source: ClusterSource, output: Path, anonymize: bool) -> None:
    """Record a cluster into one file, which the other commands read.

    The cluster is the live one of the current context, or of --context or --kubeconfig, or it is
    put together from FILES. The ClusterRole kubesched-reader has the permissions to read it:
    deploy/rbac/reader.yaml.

    The file is a List of Kubernetes objects. It holds what decisions depend on, and which kinds it
    holds completely. It never holds Secrets, ConfigMaps, environment variables, commands and
    arguments of containers, parameters of drivers, messages, or annotations that scheduling does
    not read. Names and labels are kept.

    --anonymize renames objects, namespaces, label keys and values, images, disks and so on. Equal
    names stay equal, and names sort as before, so each pod goes to the same node. Kept are amounts,
    times, priorities, well-known label keys, integers, names of resources, drivers, device classes
    and schedulers, and what describes devices. Where a KubeSchedulerConfiguration names labels,
    rename them there too.

    \b
    Examples:
      kubesched snapshot
      kubesched snapshot --context production -o monday.json.gz
      kubesched snapshot --anonymize -o - | kubesched simulate -
      kubesched snapshot nodes.json pods.json --anonymize
    """
    from kubesched.cli.errors import write_warnings
    from kubesched.cli.files import check_inputs, check_outputs
    from kubesched.cli.snapshot_file import STDOUT, write_snapshot
    from kubesched.inputs.cluster_input import read_cluster
    from kubesched.inputs.errors import UserError

    if len(source.files) == 1 and not source.files[0].exists() and str(source.files[0]) != STDOUT:
        [file] = source.files
        raise UserError(f"{file}: there is no such file to read; -o {file} writes it")
    check_inputs(source.files)
    is_file = str(output) != STDOUT
    check_outputs({"-o": output if is_file else None}, source.files)
    found = read_cluster(source)
    write_warnings(found.warnings)
    click.echo(write_snapshot(found, output, anonymous=anonymize), err=True)
