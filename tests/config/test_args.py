"""Decoding a plugin's arguments into its Args class."""

from typing import Any

import pytest
from msgspec import field

from kubesched.api.field_errors import ConfigError
from kubesched.api.integers import Int32
from kubesched.config.args import PluginArgs, ResourceSpec, decode_args
from kubesched.config.decoding import DurationSeconds
from kubesched.config.types import API_VERSION


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
