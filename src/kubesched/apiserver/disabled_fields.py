"""Fields of features that are off are dropped from what is written, unless they are there already.

Upstream: pkg/api/pod/util.go (DropDisabledPodFields), pkg/registry/*/*/strategy.go (v1.36)
Differs:  a scheduling group is kept, although the feature is off by default: what schedules groups
          is there if it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubesched.apiserver.plain import Plain, deep_copy, get

_KINDS: Final = ("containers", "initContainers", "ephemeralContainers")
_TEMPLATE: Final = ("spec", "template", "spec")
_POD_SPECS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
        _TEMPLATE,
    ),
    "CronJob": ("spec", "jobTemplate", *_TEMPLATE),
    "Pod": ("spec",),
    "PodTemplate": ("template", "spec"),
}
_FIELDS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "CSIDriver": (("spec", "preventPodSchedulingIfMissing"),),
    "Lease": (("spec", "strategy"), ("spec", "preferredHolder")),
    "StatefulSet": (("spec", "updateStrategy", "rollingUpdate", "maxUnavailable"),),
}


def without_disabled_fields(kind: str, new: Plain, old: Plain | None) -> Plain:
    """Return an object without fields that are off.

    Args:
        kind: Of the object.
        new: What is asked for.
        old: What is stored; None for nothing.
    """
    for names in _FIELDS.get(kind, ()):
        if get(new, *names) is not None and get(old or {}, *names) is None:
            new = deep_copy(new)
            del get(new, *names[:-1])[names[-1]]
    path = _POD_SPECS.get(kind)
    if path is None or not any(_stopped(get(new, *path))):
        return new
    if old is not None and any(_stopped(get(old, *path))):
        return new
    new = deep_copy(new)
    for container in _stopped(get(new, *path)):
        del container["lifecycle"]["stopSignal"]
        if not container["lifecycle"]:
            del container["lifecycle"]
    return new


def _stopped(spec: Plain | None) -> Iterator[Plain]:
    """Yield the containers that say which signal ends them."""
    for kind in _KINDS:
        for container in (spec or {}).get(kind) or ():
            if get(container, "lifecycle", "stopSignal") is not None:
                yield container
