"""All recorded kubectl conversations, and how much of each is compared."""

from __future__ import annotations

from typing import Final, NamedTuple


class Difference(NamedTuple):
    """A known difference.

    Attributes:
        command: Of kubectl.
        what: What is different.
    """

    command: str
    what: str


class Compared(NamedTuple):
    """The number of comparisons.

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

_DOCUMENT: Final = "OpenAPI documents hold only what kubectl asks for"
_WORDS: Final = "columns are described in words of our own"
_OLD: Final = "the recorded versions of what every cluster has are shorter"
_AGES: Final = "less time has gone by"

OTHER_SIZES: Final[dict[str, dict[str, str]]] = {
    "apply-client-side": {
        "/openapi/v3/api/v1": _DOCUMENT,
        "/openapi/v3/apis/policy/v1": _DOCUMENT,
    },
    "apply-server-side": {"/openapi/v3/api/v1": _DOCUMENT},
    "create-replace-patch": {"/openapi/v3/api/v1": _DOCUMENT},
    "delete": {"/openapi/v3/api/v1": _DOCUMENT},
    "describe": {"/api/v1/namespaces/default": _OLD},
    "discovery-and-version": {
        "/apis/scheduling.k8s.io/v1/priorityclasses": _OLD,
        "/apis/storage.k8s.io/v1/csinodes": _WORDS,
        "/openapi/v3/api/v1": _DOCUMENT,
        "/version": "it is another build",
    },
    "get-pods": {
        "/api/v1/namespaces/default/pods": "tokens to go on with are shorter",
        "/api/v1/namespaces/default/services": _WORDS,
        "/apis/apps/v1/namespaces/default/daemonsets": _WORDS,
        "/apis/apps/v1/namespaces/default/deployments": _WORDS,
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers": _WORDS,
        "/apis/batch/v1/namespaces/default/cronjobs": _WORDS,
        "/apis/batch/v1/namespaces/default/jobs": _WORDS,
    },
    "get-pods-watch": {
        "/api/v1/namespaces/default/pods": _AGES,
        "/api/v1/namespaces/default/pods/p1": _AGES,
        "/api/v1/pods": _AGES,
    },
    "legacy-discovery": {"/api": "the server's address is another"},
}
"""Whose answers are of another size than recorded, and why; all others are equally long."""
