"""Options that name a cluster: files, or a live cluster as kubectl finds it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from kubesched.cli.options import FILE_PATH
from kubesched.inputs.sources import ClusterSource

P = ParamSpec("P")
R = TypeVar("R")


def cluster_options(
    command: Callable[Concatenate[ClusterSource, P], R],
) -> Callable[P, R]:
    """Add FILES and the options of a live cluster to a command, as its first argument."""
    files = click.argument("files", metavar="[FILES]...", nargs=-1, type=FILE_PATH)
    return _with_source(files, command)


def cluster_flags(
    command: Callable[Concatenate[ClusterSource, P], R],
) -> Callable[P, R]:
    """Add the same to a command whose arguments are something else: files are --cluster FILE."""
    files = click.option(
        "--cluster",
        "files",
        type=FILE_PATH,
        multiple=True,
        metavar="FILE",
        help="File, directory or `-` that holds the cluster, instead of a live one. Repeatable.",
    )
    return _with_source(files, command)


def _with_source(
    files: Callable[[Callable[P, R]], Callable[P, R]],
    command: Callable[Concatenate[ClusterSource, P], R],
) -> Callable[P, R]:
    @files
    @_kubeconfig
    @_context
    @_complete
    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        own: dict[str, Any] = dict(kwargs)
        names = ("files", "kubeconfig", "context", "complete")
        source = ClusterSource(**{name: own.pop(name) for name in names})
        return command(source, *args, **own)

    return wrapped


_kubeconfig = click.option(
    "--kubeconfig",
    type=FILE_PATH,
    metavar="FILE",
    help="Read the live cluster of this kubeconfig [default: as kubectl, KUBECONFIG or "
    "~/.kube/config, if there are no files].",
)
_context = click.option(
    "--context",
    default="",
    metavar="NAME",
    help="Read the live cluster of this context [default: the current one].",
)
_complete = click.option(
    "--complete",
    is_flag=True,
    help="The files hold every object of the cluster: a kind without an object in them has none, "
    "and is not reported as not known.",
)
namespace_option = click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    help="The namespace of names without one.",
)
