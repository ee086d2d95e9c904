"""Events that handlers report, depending on feature gates."""

from __future__ import annotations

from typing import ClassVar

import pytest

from kubesched.scheduler.eventhandlers import HandlingObserver
from kubesched.simulator.virtual_loop import run
from kubesched.testing.builders import make_node
from tests.scheduler.running import running


class _Events(HandlingObserver):
    """Records the labels of events."""

    is_listening: ClassVar = True

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[str] = []

    def handled(self, event: str, seconds: float) -> None:
        """Record an event."""
        self.labels.append(event)


@pytest.mark.parametrize(
    ("enabled", "expected"), [(True, ["NodeUpdateNodeDeclaredFeature"]), (False, [])]
)
def test_declared_features_need_their_gate(enabled: bool, expected: list[str]) -> None:
    """With the gate off, a node that declares a feature moves no pod, as upstream."""

    async def main() -> None:
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
        async with running(gates=gates) as cluster:
            handlers = cluster.api.handlers
            assert handlers is not None
            node = make_node("n")
            handlers.added(node)
            handlers.observer = events = _Events()
            handlers.updated(node, make_node("n", declared_features=["F"]))
            assert expected == events.labels

    run(main())
