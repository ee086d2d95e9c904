"""Options that name a cluster, as arguments or, beside other arguments, as --cluster."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from kubesched.cli.flags import cluster_flags, cluster_options
from kubesched.inputs.errors import UserError
from kubesched.inputs.sources import ClusterSource


@click.command()
@cluster_options
def _of_files(source: ClusterSource) -> ClusterSource:
    return source


@click.command()
@click.argument("nodes", nargs=-1)
@cluster_flags
def _of_nodes(source: ClusterSource, nodes: tuple[str, ...]) -> ClusterSource:
    assert nodes == ("n-1",)
    return source


@pytest.mark.parametrize(
    ("command", "words"),
    [
        pytest.param(_of_files, ["a.json", "-", "--complete"], id="arguments"),
        pytest.param(
            _of_nodes, ["n-1", "--cluster", "a.json", "--cluster", "-", "--complete"], id="flags"
        ),
    ],
)
def test_files(command: click.Command, words: list[str]) -> None:
    """Both ways name any number of files."""
    found = command.main(words, standalone_mode=False)
    assert ClusterSource((Path("a.json"), Path("-")), complete=True) == found


@pytest.mark.parametrize("flag", ["--kubeconfig", "--context"])
def test_files_and_a_live_cluster_are_one_too_many(flag: str) -> None:
    """The line names the option."""
    with pytest.raises(UserError, match=f"^{flag} names a live cluster, and there are files"):
        _of_nodes.main(["n-1", "--cluster", "a.json", flag, "x"], standalone_mode=False)


def test_nothing_is_the_current_context() -> None:
    """An empty source."""
    assert ClusterSource() == _of_nodes.main(["n-1"], standalone_mode=False)
