"""The cluster that a command asks about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kubesched.answers.cluster import Cluster
from kubesched.api.decode import STANDARD_INPUT
from kubesched.cli.errors import write_warnings
from kubesched.cli.files import check_inputs, check_outputs
from kubesched.cli.flags import AnswerOptions
from kubesched.inputs.errors import UserError
from kubesched.inputs.pod_names import NODE_PREFIXES
from kubesched.inputs.sources import ClusterSource


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


def nodes_and_source(
    words: Sequence[str], source: ClusterSource, selector: str
) -> tuple[list[str], ClusterSource]:
    """Return the names of nodes among the words, and the cluster with the files after them.

    Raises:
        UserError: There are neither nodes nor a selector, or both, or files beside a live cluster.
    """
    first = next((at for at, word in enumerate(words) if _is_file(word)), len(words))
    files = tuple(Path(word) for word in words[first:])
    if selector:
        if first:
            raise UserError(f"{words[0]}: there is a --selector already; leave out one")
    elif not words:
        raise UserError("name a node, or give a --selector such as pool=a")
    elif not first:
        if words[0] != STANDARD_INPUT and not Path(words[0]).exists():
            raise UserError(f"{words[0]}: it is no node, and there is no such file; name a node")
        raise UserError(f"{words[0]}: it is a file; name a node before it")
    if files and (source.kubeconfig or source.context):
        raise UserError(f"{files[0]}: there is a live cluster already; leave out one")
    return list(words[:first]), replace(source, files=(*source.files, *files))


def _is_file(word: str) -> bool:
    """Whether a word cannot be the name of a node, or names a file that exists."""
    return (
        word == STANDARD_INPUT
        or ("/" in word and not word.startswith(NODE_PREFIXES))
        or word.endswith((".json", ".yaml", ".yml", ".gz"))
        or Path(word).exists()
    )
