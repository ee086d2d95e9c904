"""`kubesched demo`: what kubesched does, shown on a small cluster.

Everything below the `$` lines is what the command prints now. Nothing is prepared or recorded.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from kubesched.cli.files import check_outputs, write_file
from kubesched.cli.main import kubesched

CLUSTER: Final = "cluster.yaml"
COLUMNS_MAX: Final = 100


def demo(file: Path | None) -> None:
    """Run the commands of the demo; with a file, only write their cluster there."""
    check_outputs({"--write": file}, ())
    cluster = Path(__file__).with_name("demo_cluster.yaml").read_bytes()
    if file is not None:
        write_file(file, cluster)
        return
    with TemporaryDirectory(prefix="kubesched-demo-") as folder, chdir(folder):
        Path(CLUSTER).write_bytes(cluster)
        _play()


def _play() -> None:
    _write("""
        A small shop runs on six nodes in three zones. Node b-2 is cordoned, c-2 is kept for the
        database. Ten pods run and eight are waiting: six web servers, which have to be spread
        evenly over the zones; the checkout, which matters more than anything else; and a report,
        which matters least. What would the Kubernetes scheduler do?
    """)
    _run("simulate", CLUSTER, "--show", "summary", "--top", "6")
    _write("One pod did not fit. Why not, and what is the least that would help?")
    _run("why", "report-0", CLUSTER)
    _write("""
        The checkout fits nowhere either, until other pods are evicted for it. Where would that hurt
        least? The disruption budget of the cache allows no eviction, so two batch pods have to go.
    """)
    _run("explain", "checkout-0", CLUSTER)
    _write("""
        And this is where everybody goes, in the order in which the scheduler takes them: by
        priority, then by age.
    """)
    _run("simulate", CLUSTER, "--show", "placements")
    _write("""
        That was kube-scheduler 1.36's logic, down to the messages, with no cluster behind it.
        Next, ask your own cluster; it is only read:
    """)
    click.echo("""
  kubesched why NAME-OF-A-PENDING-POD
  kubesched snapshot -o cluster.json.gz
  kubesched simulate cluster.json.gz""")


def _write(text: str) -> None:
    """Write a paragraph that fits the terminal."""
    columns = min(shutil.get_terminal_size().columns, COLUMNS_MAX)
    words = " ".join(text.split())
    click.echo()
    for line in textwrap.wrap(words, max(columns - 1, 20), break_on_hyphens=False):
        click.secho(line, fg="green")


def _run(*arguments: str) -> None:
    click.echo()
    click.secho(f"$ kubesched {shlex.join(arguments)}", bold=True)
    click.echo()
    sys.stdout.flush()
    try:
        kubesched.main(list(arguments))
    except SystemExit as end:
        if end.code:
            raise
    sys.stdout.flush()
