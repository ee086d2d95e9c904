"""Events that handlers report, depending on feature gates."""

from __future__ import annotations

import pytest

from kubesched.testing.builders import make_node
from tests.loops import on_virtual_time
from tests.scheduler.running import HandledEvents, running


@pytest.mark.parametrize(
    ("enabled", "expected"), [(True, ["NodeUpdateNodeDeclaredFeature"]), (False, [])]
)
@on_virtual_time
async def test_declared_features_need_their_gate(enabled: bool, expected: list[str]) -> None:
    """With the gate off, a node that declares a feature moves no pod, as upstream."""
    gates = dict.fromkeys(
        (
            "NodeDeclaredFeatures",
            "InPlacePodLevelResourcesVerticalScaling",
            "ExtendWebSocketsToKubelet",
            "InPlacePodVerticalScalingInitContainers",
            "RestartAllContainersOnContainerExits",
        ),
        enabled,
    )
    handled = HandledEvents()
    async with running(gates=gates, instruments=handled) as cluster:
        node = make_node("n")
        cluster.api.create(node)
        handled.labels.clear()
        cluster.api.handlers.updated(node, make_node("n", declared_features=["F"]))
        assert expected == handled.labels
