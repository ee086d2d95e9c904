"""Where our server still answers other than the real one, conversation by conversation.

A conversation that is not listed agrees in everything that the comparison looks at. One that
begins to agree has to be taken off: the test says so.
"""

from typing import Final, NamedTuple


class Expected(NamedTuple):
    """One conversation that differs.

    Attributes:
        what: What differs, for readers.
        where: A part of the difference as the comparison tells it.
    """

    what: str
    where: str


_ZERO: Final = "a replication controller shows `minReadySeconds: 0`, which nobody gave"

EXPECTED_DIFFERENCES: Final[dict[str, Expected]] = {
    "node-cordon-and-taints": Expected(
        "a taint that stands twice is told once in `causes`, not twice",
        "step 5, PATCH /api/v1/nodes/n1 (two taints of the same key and effect)",
    ),
    "openapi-index": Expected(
        "the index has other hashes, since the documents hold only what kubectl asks for",
        "step 1, GET /openapi/v3: body",
    ),
    "pod-defaults-2": Expected(
        "the older name of the service account, `serviceAccount`, is not filled in",
        "missing ['serviceAccount']",
    ),
    "replicasets-crud": Expected(
        "a selector that is left out is told as an empty one",
        "spec.selector: Required value",
    ),
    "replicationcontrollers-defaults": Expected(_ZERO, "{'minReadySeconds': 0}"),
    "tables-others": Expected(_ZERO, "{'minReadySeconds': 0}"),
}
