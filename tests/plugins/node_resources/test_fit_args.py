"""NodeResourcesFit: its arguments."""

from __future__ import annotations

import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.config.args import ResourceSpec
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.plugins.node_resources.fit import NodeResourcesFitArgs, ScoringStrategy
from kubesched.testing.builders import Json
from kubesched.testing.handle import FakeHandle
from tests.plugins.node_resources.fits import new_plugin, strategy_args


@pytest.mark.parametrize(
    ("args", "errors"),
    [
        pytest.param(
            {"ignoredResources": ["a b"]},
            [("ignoredResources[0]", 'Invalid value: "a b": name part must consist of')],
            id="no label name",
        ),
        pytest.param(
            {"ignoredResourceGroups": ["example.com/gpu"]},
            [
                (
                    "ignoredResourceGroups[0]",
                    "Invalid value: \"example.com/gpu\": resource group name can't contain '/'",
                )
            ],
            id="a resource instead of a group",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "Best"}},
            [
                (
                    "scoringStrategy.type",
                    'Unsupported value: "Best": supported values: "LeastAllocated", "MostAllo',
                )
            ],
            id="unknown strategy",
        ),
        pytest.param(
            {"scoringStrategy": {}},
            [("scoringStrategy.type", 'Unsupported value: "": supported values:')],
            id="no strategy",
        ),
        pytest.param(
            strategy_args("MostAllocated", ("cpu", 101), ("memory", -1)),
            [
                (
                    "scoringStrategy.resources[0].weight",
                    "Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
                ),
                (
                    "scoringStrategy.resources[1].weight",
                    "Invalid value: -1: resource weight of memory not in valid range (0, 100]",
                ),
            ],
            id="weights",
        ),
        pytest.param(
            strategy_args("RequestedToCapacityRatio"),
            [
                (
                    "scoringStrategy.requestedToCapacityRatio",
                    "Required value: must be specified when type is RequestedToCapacityRatio",
                )
            ],
            id="no shape",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": {},
                }
            },
            [
                (
                    "scoringStrategy.requestedToCapacityRatio.shape",
                    "Required value: at least one point must be specified",
                )
            ],
            id="empty shape",
        ),
        pytest.param(
            strategy_args("LeastAllocated", shape=[{"utilization": 0, "score": 0}]),
            [
                (
                    "scoringStrategy.requestedToCapacityRatio",
                    "Forbidden: must be nil when type is not RequestedToCapacityRatio",
                )
            ],
            id="shape of another strategy",
        ),
    ],
)
def test_wrong_args(args: Json, errors: list[tuple[str, str]]) -> None:
    """Every field error is reported, with its path and upstream's text."""
    with pytest.raises(ConfigError) as caught:
        new_plugin(args)
    found = caught.value.errors
    assert [f"args.{path}" for path, _ in errors] == [field_error.path for field_error in found]
    assert all(f.message.startswith(text) for f, (_, text) in zip(found, errors, strict=True))


def test_default_args() -> None:
    """Least allocated cpu and memory."""
    resources = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
    args = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("LeastAllocated", resources))
    assert args == NodeResourcesFit.decode_args(None, FakeHandle(), "args")
