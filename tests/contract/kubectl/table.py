"""Every recorded conversation of kubectl, and how much of it is compared."""

from __future__ import annotations

from typing import Final, NamedTuple


class Difference(NamedTuple):
    """Where ours is different.

    Attributes:
        command: Of kubectl.
        what: What is different.
    """

    command: str
    what: str


class Compared(NamedTuple):
    """How much was compared.

    Attributes:
        requests: Those that the real server answered itself.
        outputs: Those that show what a server said: tables, objects, names, reviews.
    """

    requests: int
    outputs: int


TABLE: Final = {
    "apply-client-side": Compared(46, 1),
    "apply-server-side": Compared(24, 1),
    "cordon-drain": Compared(59, 0),
    "create-replace-patch": Compared(38, 0),
    "delete": Compared(35, 0),
    "describe": Compared(43, 0),
    "discovery-and-version": Compared(23, 9),
    "empty-openapi": Compared(3, 0),
    "get-nodes": Compared(19, 13),
    "get-pods": Compared(42, 20),
    "get-pods-watch": Compared(14, 6),
    "label-annotate": Compared(27, 0),
    "legacy-discovery": Compared(51, 3),
    "minimal-openapi": Compared(20, 0),
    "no-openapi": Compared(20, 1),
    "no-protobuf": Compared(35, 1),
    "no-tables": Compared(9, 0),
    "scale-wait": Compared(19, 0),
    "taint": Compared(19, 0),
}
"""All of them by name."""

DIFFERENCES: Final[dict[str, list[Difference]]] = {}
"""What is different, in the order of the commands; conversations that agree are left out."""
