"""The defaults of in-tree plugins' arguments."""

from typing import Any

import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.config.args import complete_args, ignore_extender_resources
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.config.types import API_VERSION, KIND

_BOTH = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


@pytest.mark.parametrize(
    ("plugin", "raw", "settings", "expected"),
    [
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": None},
            {},
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 100},
            id="zero-is-a-value-null-is-not",
        ),
        pytest.param("NodeAffinity", None, {}, {}, id="node-affinity"),
        pytest.param(
            "DynamicResources",
            {},
            {"DRASchedulerFilterTimeout": False},
            {"bindingTimeout": "10m0s"},
            id="filter-timeout-gated",
        ),
        pytest.param(
            "DynamicResources",
            {},
            {"DRADeviceBindingConditions": False},
            {"filterTimeout": "10s"},
            id="binding-timeout-gated",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated"}},
            {},
            {"scoringStrategy": {"type": "MostAllocated", "resources": _BOTH}},
            id="fit-resources",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {}},
            {},
            {"scoringStrategy": {"resources": _BOTH}},
            id="fit-type-is-not-defaulted",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "a"}, {"name": "b", "weight": 0}, {"name": "c", "weight": 2}]},
            {},
            {
                "resources": [
                    {"name": "a", "weight": 1},
                    {"name": "b", "weight": 1},
                    {"name": "c", "weight": 2},
                ]
            },
            id="weight-0-is-1",
        ),
        pytest.param(
            "VolumeBinding",
            {},
            {"StorageCapacityScoring": True},
            {
                "bindTimeoutSeconds": 600,
                "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
            },
            id="shape-gated",
        ),
        pytest.param(
            "NodeResourcesFit", {"scoringStrategy": 3}, {}, {"scoringStrategy": 3}, id="mistyped"
        ),
    ],
)
def test_complete_args(
    plugin: str, raw: dict[str, Any] | None, settings: dict[str, bool], expected: dict[str, Any]
) -> None:
    """Exactly upstream's defaults are filled in."""
    head = {"apiVersion": API_VERSION, "kind": f"{plugin}Args"}
    assert {**head, **expected} == complete_args(plugin, raw, FeatureGates.of(settings))


def _with_extender(plugins: dict[str, Any]) -> dict[str, Any]:
    resources = [
        {"name": "example.com/a", "ignoredByScheduler": True},
        {"name": "example.com/b"},
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "profiles": [{"plugins": plugins}],
        "extenders": [{"urlPrefix": "http://localhost", "managedResources": resources}],
    }


def test_extenders_resources_are_ignored_by_fit() -> None:
    """The extenders' ignored resources replace NodeResourcesFit's own list."""
    configuration = load_configuration(_with_extender({}), FeatureGates())
    changed = ignore_extender_resources(configuration)
    args = {entry.name: entry.args or {} for entry in changed.profiles[0].plugin_config}
    assert args["NodeResourcesFit"]["ignoredResources"] == ["example.com/a"]


def test_extenders_resources_need_fit() -> None:
    """A profile without NodeResourcesFit cannot ignore resources."""
    raw = _with_extender({"multiPoint": {"disabled": [{"name": "*"}]}})
    configuration = load_configuration(raw, FeatureGates())
    with pytest.raises(ConfigError, match="can't find NodeResourcesFitArgs in plugin config"):
        ignore_extender_resources(configuration)
