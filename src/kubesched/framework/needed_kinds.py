"""The kinds of objects that a plugin's answer for a pod depends on, for explain and simulate.

An input file without objects of a kind does not prove that the cluster has none.

Differs:  not in upstream, which lists every kind from its API server.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from kubesched.api.meta import KubeObject


class Decides(StrEnum):
    """The part of a decision that objects of a kind may change."""

    FIT = "Fit"  # which nodes can run the pod
    CHOICE = "Choice"  # which of those nodes it gets
    VICTIMS = "Victims"  # which pods are evicted for it


class NeededKind(NamedTuple):
    """A kind and the reason why it is needed.

    Attributes:
        kind: The class of the objects.
        why: A clause that describes how the pod depends on the objects.
        decides: What the objects may change.
    """

    kind: type[KubeObject]
    why: str
    decides: Decides = Decides.FIT
