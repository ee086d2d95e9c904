"""How users name a cluster, and the scheduler that decides on it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from kubesched.api.decode import STANDARD_INPUT
from kubesched.framework.plugin import Plugin
from kubesched.inputs.errors import UserError, did_you_mean


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """Where a cluster is read from; without files and names it is the current context.

    Attributes:
        files: Files and directories; `-` is stdin.
        kubeconfig: A kubeconfig file; None for those that kubectl reads.
        context: The name of a context; "" for the current one.
        complete: Whether the source holds every object of the cluster.

    Raises:
        UserError: There are files, and a live cluster is named too.
    """

    files: tuple[Path, ...] = ()
    kubeconfig: Path | None = None
    context: str = ""
    complete: bool = False

    def __post_init__(self) -> None:
        if self.files and (self.kubeconfig or self.context):
            flag = "--kubeconfig" if self.kubeconfig else "--context"
            raise UserError(f"{flag} names a live cluster, and there are files; leave out one")


class SchedulerArguments(TypedDict, total=False):
    """The keywords that choose the scheduler; by default it is that of kube-scheduler 1.36.

    Attributes:
        config: A KubeSchedulerConfiguration file; None for the default configuration.
        profile: Scheduler name to use for all pods; None for each pod's own.
        feature_gates: As `A=true,B=false`.
        plugins: Out-of-tree plugins: classes, or as `module:Class` or `file.py:Class`.
        seed: Of the random source that breaks ties.
    """

    config: str | os.PathLike[str] | None
    profile: str | None
    feature_gates: str
    plugins: str | type[Plugin] | Iterable[str | type[Plugin]]
    seed: int


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """The options of the scheduler: those of `SchedulerArguments`, as commands give them."""

    config: Path | None = None
    profile: str | None = None
    feature_gates: str = ""
    plugins: tuple[str | type[Plugin], ...] = ()
    seed: int = 0

    @classmethod
    def of(cls, arguments: SchedulerArguments) -> SchedulerOptions:
        """Return the options given as keywords; raises TypeError for others, and UserError."""
        known = SchedulerArguments.__annotations__
        for name in arguments.keys() - known.keys():
            hint = did_you_mean(name, known, f"there are {', '.join(known)}", most=1)
            raise TypeError(f"unexpected keyword argument {name!r}; {hint}")
        given: dict[str, Any] = {**arguments}
        if given.get("seed", 0) < 0:
            raise UserError(f"seed {given['seed']}: it must not be negative")
        if given.get("config") is not None:
            given["config"] = Path(given["config"])
        plugins = given.get("plugins", ())
        given["plugins"] = (plugins,) if isinstance(plugins, str | type) else tuple(plugins)
        return cls(**given)


def gates_text(gates: Mapping[str, bool]) -> str:
    """Return feature gates as options take them."""
    return ",".join(f"{name}={str(on).lower()}" for name, on in gates.items())


def read_problem(file: Path) -> str:
    """Return why a file cannot be read, "" if it can."""
    if str(file) == STANDARD_INPUT:
        return ""
    try:
        file.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    else:
        reason = "" if os.access(file, os.R_OK) else os.strerror(errno.EACCES)
    return f"it cannot be read: {reason}" if reason else ""
