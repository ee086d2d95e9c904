"""The nodes that the pods of a DaemonSet are for."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.cluster.controllers.daemon_sets import node_name_of
from kubesched.testing.builders import make_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _term(kind: str, key: str, value: str) -> dict[str, Any]:
    requirement = {"key": key, "operator": "In", "values": [value]}
    return {"node_affinity": {REQUIRED: {"nodeSelectorTerms": [{kind: [requirement]}]}}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"node_name": "a"}, "a", id="bound"),
        pytest.param(_term("matchFields", "metadata.name", "a"), "a", id="pending"),
        pytest.param({}, "", id="of-a-user"),
        pytest.param(_term("matchExpressions", "zone", "a"), "", id="of-a-user-for-a-zone"),
    ],
)
def test_the_node_of_a_pod(fields: dict[str, Any], expected: str) -> None:
    """A pod that a user created with this owner may be meant for no node, and is left alone."""
    assert expected == node_name_of(make_pod(**fields))
