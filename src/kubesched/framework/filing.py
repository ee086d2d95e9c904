"""Filing: an index of waiting pods, so that an event calls a hint only for pods it may concern.

A hint that reads labels takes them as names: a waiting pod is filed under the labels that a changed
pod must have, and a change has the labels that its pod had before or has after it.

Upstream: nothing like it; there, every event calls the hints of all pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from kubesched.api.core import Pod


class Filing(msgspec.Struct, frozen=True):
    """An index of waiting pods by name, so that an event need not call the hint for every pod.

    A hint with a filing returns false unless the change has one of the pod's names. Neither
    function raises.

    Attributes:
        of_pod: Returns the pod's names, such as those of the claims it uses.
        of_change: Returns the names of a change, given the old and the new object; None to call
            the hint for all pods.
    """

    of_pod: Callable[[Pod], Iterable[str]]
    of_change: Callable[[object | None, object | None], Iterable[str] | None]


ANY_POD: Final = "any pod"
"""The name under which a pod is filed that no label leads to."""


def names_of_labels(labels: Iterable[tuple[str, str]] | None) -> list[str]:
    """Return a name for each label; ANY_POD if the labels are not known, which is None."""
    return [ANY_POD] if labels is None else [f"{key}={value}" for key, value in labels]


def names_of_pods(old: object | None, new: object | None) -> list[str] | None:
    """Return the names of the changed pod, ANY_POD among them; None if no pod changed."""
    pods = [pod for pod in (old, new) if isinstance(pod, Pod)]
    labels = {pair: None for pod in pods for pair in pod.metadata.labels.items()}
    return [*names_of_labels(labels), ANY_POD] if pods else None
