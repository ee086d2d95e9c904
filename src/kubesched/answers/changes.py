"""A change that makes a pod fit, as data.

Invariants: each change is of one field, one node or one pod.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class ChangeKind(StrEnum):
    """What is changed, from the smallest to the largest; `size` orders changes of one kind."""

    CORRECT_VALUE = "CorrectValue"
    REMOVE_GATE = "RemoveGate"
    LOWER_REQUEST = "LowerRequest"
    UNCORDON_NODE = "UncordonNode"
    RAISE_MAX_SKEW = "RaiseMaxSkew"
    ADD_TOLERATION = "AddToleration"
    DROP_CONSTRAINT = "DropConstraint"
    LABEL_NODE = "LabelNode"
    REMOVE_TAINT = "RemoveTaint"
    EVICT_POD = "EvictPod"
    ADD_NODE = "AddNode"
    FREE_NODE = "FreeNode"
    RAISE_PRIORITY = "RaisePriority"


class SuggestedChange(msgspec.Struct, frozen=True, rename="camel"):
    """A change after which the scheduler places the pod.

    Attributes:
        kind: What is changed.
        object: What the field belongs to: `pod shop/web-1`, `node n-3`.
        field: The field, such as `spec.nodeSelector[zone]`; empty if the object itself comes or
            goes.
        before: The field's value; empty if there is none.
        after: The new value; empty if the field or the object is removed.
        sentence: The change in words, in the imperative.
        node: The node that the pod goes to after the change.
        size: How large the change is compared with others of its kind.
    """

    kind: ChangeKind
    object: str
    field: str
    before: str
    after: str
    sentence: str
    node: str = ""
    size: float = 0.0


def by_size(change: SuggestedChange) -> tuple[int, float, str]:
    """Return the key that sorts changes from the smallest to the largest."""
    return list(ChangeKind).index(change.kind), change.size, change.sentence
