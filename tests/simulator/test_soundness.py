from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from kubesched.api.decode import load_bytes
from kubesched.simulator.soundness import errors_of


def _errors(kind: str, **parts: Any) -> list[str]:
    item = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, **parts}
    (loaded,) = load_bytes(msgspec.json.encode(item), "-", Counter())
    return [str(field_error) for field_error in errors_of(loaded.object)]


def _asking(**resources: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": resources}]}


_NODES = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
_PODS = "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            _asking(requests={"cpu": "-1", "memory": -5}),
            [
                (
                    'spec.containers[0].resources.requests[cpu]: Invalid value: "-1":'
                    " must be greater than or equal to 0"
                ),
                (
                    'spec.containers[0].resources.requests[memory]: Invalid value: "-5":'
                    " must be greater than or equal to 0"
                ),
            ],
            id="negative requests",
        ),
        pytest.param(
            _asking(requests={"cpu": "2"}, limits={"cpu": "1500m"}),
            [
                (
                    'spec.containers[0].resources.requests: Invalid value: "2":'
                    " must be less than or equal to cpu limit of 1500m"
                )
            ],
            id="requests above limits",
        ),
        pytest.param(
            {"overhead": {"cpu": "-1m"}},
            ['spec.overhead[cpu]: Invalid value: "-1m": must be greater than or equal to 0'],
            id="overhead",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "Bogus"}]},
            [
                (
                    "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0:"
                    " must be greater than zero"
                ),
                (
                    "spec.topologySpreadConstraints[0].whenUnsatisfiable:"
                    ' Unsupported value: "Bogus":'
                    ' supported values: "DoNotSchedule", "ScheduleAnyway"'
                ),
            ],
            id="spread",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Equals", "effect": "Never"}]},
            [
                (
                    'spec.tolerations[0].operator: Unsupported value: "Equals":'
                    ' supported values: "Equal", "Exists", "Gt", "Lt"'
                ),
                (
                    'spec.tolerations[0].effect: Unsupported value: "Never":'
                    ' supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
                ),
            ],
            id="toleration",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 101, "preference": {}}
                        ]
                    },
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": -1, "podAffinityTerm": {"topologyKey": "z"}}
                        ]
                    },
                }
            },
            [
                f"{_NODES}.weight: Invalid value: 101: must be in the range 1-100",
                f"{_PODS}.weight: Invalid value: -1: must be in the range 1-100",
            ],
            id="weights",
        ),
        pytest.param(
            {
                **_asking(requests={"cpu": "1", "gpu": "1e-3"}, limits={"cpu": "1000m"}),
                "tolerations": [{"operator": "Exists"}, {"key": "a", "operator": "Gt"}],
            },
            [],
            id="sound",
        ),
    ],
)
def test_invalid_pods_are_field_errors(spec: dict[str, Any], expected: list[str]) -> None:
    """All at once, in upstream's words."""
    assert expected == _errors("Pod", spec=spec)


def test_negative_amounts_of_nodes_are_field_errors() -> None:
    """Of capacity and allocatable."""
    status = {"allocatable": {"cpu": "-4"}, "capacity": {"cpu": "4", "memory": "-1Gi"}}
    assert [
        'status.allocatable[cpu]: Invalid value: "-4": must be greater than or equal to 0',
        'status.capacity[memory]: Invalid value: "-1Gi": must be greater than or equal to 0',
    ] == _errors("Node", status=status)
