"""Kinds of objects that a plugin's answer for a pod depends on, for explain and simulate.

A file that holds no object of a kind does not say that the cluster has none.

Differs:  upstream lists every kind from its API server, and needs no such question.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from kubesched.snapshot.objects import KubernetesObject


class Decides(StrEnum):
    """What objects of a kind may change."""

    FIT = "Fit"  # which nodes can take the pod
    CHOICE = "Choice"  # which of those nodes it gets
    VICTIMS = "Victims"  # which pods are evicted for it


class NeededKind(NamedTuple):
    """A kind, and what it is needed for.

    Attributes:
        kind: The class of the objects.
        why: A clause that says what the objects are to the pod.
        decides: What they may change.
    """

    kind: type[KubernetesObject]
    why: str
    decides: Decides = Decides.FIT
