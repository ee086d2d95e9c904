"""Shows what kubesched does, on the cluster of examples/demo; `make tour` runs it.

Everything below the `$` lines is what the command prints now. Nothing is prepared or recorded.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import textwrap
from pathlib import Path

import click

from kubesched.cli.main import kubesched
from kubesched.explain.saving import SAVE_COMMAND

CLUSTER = os.path.relpath(Path(__file__).resolve().parent / "demo" / "cluster.yaml")
COLUMNS_MAX = 100


def say(text: str) -> None:
    """Write a paragraph that fits the terminal."""
    columns = min(shutil.get_terminal_size().columns, COLUMNS_MAX)
    words = " ".join(text.split())
    click.echo()
    for line in textwrap.wrap(words, max(columns - 1, 20), break_on_hyphens=False):
        click.secho(line, fg="green")


def run(*arguments: str) -> None:
    """Write a command as one would type it, and run it."""
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


def main() -> None:
    """Tell the story."""
    say("""
        A small shop runs on six nodes in three zones. Node b-2 is cordoned, c-2 is kept for the
        database. Ten pods run and eight are waiting: six web servers, which have to be spread
        evenly over the zones; the checkout, which matters more than anything else; and a report,
        which matters least. What would the Kubernetes scheduler do?
    """)
    run("simulate", CLUSTER, "--show", "summary", "--top", "6")
    say("One pod did not fit. Why not? Every node is asked, and says what was missing.")
    run("explain", "report-0", CLUSTER)
    say("""
        The checkout fits nowhere either, until other pods are evicted for it. Where would that hurt
        least? The disruption budget of the cache allows no eviction, so two batch pods have to go.
    """)
    run("explain", "checkout-0", CLUSTER)
    say("""
        And this is where everybody goes, in the order in which the scheduler takes them: by
        priority, then by age.
    """)
    run("simulate", CLUSTER, "--show", "placements")
    say("""
        That was kube-scheduler 1.36's logic, down to the messages, with no cluster behind it.
        Next, try it on yours (it only reads the file):
    """)
    click.echo(f"""
  {SAVE_COMMAND}
  .venv/bin/kubesched explain NAME-OF-A-PENDING-POD cluster.json

  More: docs/README.md""")


if __name__ == "__main__":
    main()
