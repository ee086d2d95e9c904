"""Arguments of plugins: decoding into the plugin's Args class, and defaults of those in tree."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import field

from kubesched.api.field_errors import ConfigError
from kubesched.api.integers import Int32
from kubesched.config.args import (
    PluginArgs,
    ResourceSpec,
    complete_args,
    decode_args,
    exhaustive,
    ignore_extender_resources,
)
from kubesched.config.decoding import DurationSeconds
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.config.types import API_VERSION, KIND, Configuration


class VolumeBindingArgs(PluginArgs, frozen=True):
    """Arguments with a field of each special kind."""

    bind_timeout_seconds: Int32 = 600
    filter_timeout_seconds: DurationSeconds | None = field(default=None, name="filterTimeout")
    resources: tuple[ResourceSpec, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)


def _another_kind(expected: str, got: str) -> str:
    group = "kubescheduler.config.k8s.io"
    plugin = expected.removesuffix("Args")
    return f"args: args for plugin {plugin} were not of type {expected}.{group}, got {got}.{group}"


def _unknown_field(path: str, near: str) -> str:
    return f'{path}: unknown field "{path}", did you mean "{near}"?'


def test_absent_args_are_defaults() -> None:
    """None, {} and nulls all give the defaults."""
    for raw in (None, {}, {"bindTimeoutSeconds": None, "resources": None}):
        assert VolumeBindingArgs() == decode_args(VolumeBindingArgs, raw, "args")


def test_all_kinds_of_fields() -> None:
    """Fields decode by their JSON names; apiVersion and kind may be there."""
    raw = {
        "apiVersion": API_VERSION,
        "kind": "VolumeBindingArgs",
        "bindTimeoutSeconds": 5,
        "filterTimeout": "1m30s",
        "resources": [{"name": "cpu"}, {"name": "memory", "weight": 3}],
        "labels": {"a": "b"},
    }
    expected = VolumeBindingArgs(
        bind_timeout_seconds=5,
        filter_timeout_seconds=90.0,
        resources=(ResourceSpec("cpu", 1), ResourceSpec("memory", 3)),
        labels={"a": "b"},
    )
    assert expected == decode_args(VolumeBindingArgs, raw, "args")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(
            {"kind": "InterPodAffinityArgs"},
            [_another_kind("VolumeBindingArgs", "InterPodAffinityArgs")],
            id="another-plugins-kind",
        ),
        pytest.param(
            {"kind": "VolumeBinding"},
            [f'args: no kind "VolumeBinding" is registered for version "{API_VERSION}"'],
            id="no-kind",
        ),
        pytest.param(
            {"apiVersion": "v1"},
            ['args: no kind "VolumeBindingArgs" is registered for version "v1"'],
            id="another-version",
        ),
        pytest.param({"kind": 3}, ["args.kind: Invalid value: 3: must be text"], id="kind-type"),
        pytest.param(
            {
                "bindTimeoutSecond": 1,
                "bindTimeoutSeconds": "x",
                "filterTimeout": "10",
                "resources": [{"Name": "cpu"}, {"name": "a", "weight": 1.5}, 7],
                "labels": {"a": 1},
            },
            [
                _unknown_field("args.bindTimeoutSecond", "bindTimeoutSeconds"),
                'args.bindTimeoutSeconds: Invalid value: "x": expected integer, got text',
                'args.filterTimeout: Invalid value: "10": time: missing unit in duration "10"',
                _unknown_field("args.resources[0].Name", "name"),
                "args.resources[0].name: Required value",
                "args.resources[1].weight: Invalid value: 1.5: expected integer, got number",
                "args.resources[2]: Invalid value: 7: must be a mapping, not a number",
                "args.labels.a: Invalid value: 1: expected text, got integer; write it in quotes",
            ],
            id="all-at-once",
        ),
    ],
)
def test_rejected(raw: dict[str, Any], expected: list[str]) -> None:
    """Every field error is reported with its path."""
    with pytest.raises(ConfigError) as error:
        decode_args(VolumeBindingArgs, raw, "args")
    assert expected == [str(field_error) for field_error in error.value.errors]


def test_kind_by_plugin_name() -> None:
    """With a plugin's name, the class may have any name."""
    with pytest.raises(ConfigError, match="args for plugin Mine were not of type MineArgs"):
        decode_args(VolumeBindingArgs, {"kind": "VolumeBindingArgs"}, "args", plugin="Mine")


# Defaults.


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


def _loaded(**fields: object) -> Configuration:
    return load_configuration({"apiVersion": API_VERSION, "kind": KIND, **fields}, FeatureGates())


def _with_extender(plugins: dict[str, Any]) -> Configuration:
    resources = [
        {"name": "example.com/a", "ignoredByScheduler": True},
        {"name": "example.com/b"},
    ]
    extender = {"urlPrefix": "http://localhost", "managedResources": resources}
    return _loaded(profiles=[{"plugins": plugins}], extenders=[extender])


def test_extenders_resources_are_ignored_by_fit() -> None:
    """The extenders' ignored resources replace NodeResourcesFit's own list."""
    changed = ignore_extender_resources(_with_extender({}))
    args = {entry.name: entry.args or {} for entry in changed.profiles[0].plugin_config}
    assert args["NodeResourcesFit"]["ignoredResources"] == ["example.com/a"]


def test_extenders_resources_need_fit() -> None:
    """A profile without NodeResourcesFit cannot ignore resources."""
    configuration = _with_extender({"multiPoint": {"disabled": [{"name": "*"}]}})
    with pytest.raises(ConfigError, match="can't find NodeResourcesFitArgs in plugin config"):
        ignore_extender_resources(configuration)


def test_percentages_become_one_hundred() -> None:
    """In all profiles; other arguments do not change."""
    arguments = {"name": "DefaultPreemption", "args": {"minCandidateNodesAbsolute": 3}}
    own = {"schedulerName": "a", "percentageOfNodesToScore": 7, "pluginConfig": [arguments]}
    profiles = [own, {"schedulerName": "b"}]
    found = exhaustive(_loaded(percentageOfNodesToScore=5, profiles=profiles))
    assert found.percentage_of_nodes_to_score == 100
    for profile in found.profiles:
        assert profile.percentage_of_nodes_to_score == 100
        args = {entry.name: entry.args or {} for entry in profile.plugin_config}
        assert args["DefaultPreemption"]["minCandidateNodesPercentage"] == 100
    args = {entry.name: entry.args or {} for entry in found.profiles[0].plugin_config}
    assert args["DefaultPreemption"]["minCandidateNodesAbsolute"] == 3
