"""Every rule of a completed configuration, with upstream's text and path."""

from typing import Any

import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
from kubesched.config.types import API_VERSION, KIND

_VERSION = f'"{API_VERSION}"'
_REMOVED = f"was invalid in version {_VERSION} (KubeSchedulerConfiguration is version {_VERSION})"


def _messages(fields: dict[str, Any]) -> list[str]:
    try:
        load_configuration({"apiVersion": API_VERSION, "kind": KIND, **fields}, FeatureGates())
    except ConfigError as error:
        return [str(field_error) for field_error in error.errors]
    return []


def _enabled(*names: str) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in names]}


def _profiles(*profiles: dict[str, Any]) -> dict[str, Any]:
    return {"profiles": list(profiles)}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, [], id="defaults"),
        pytest.param(
            {"parallelism": 0},
            ["parallelism: Invalid value: 0: should be an integer value greater than zero"],
            id="parallelism",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 101},
            ["percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
            id="percentage",
        ),
        pytest.param(
            _profiles({"percentageOfNodesToScore": -1}),
            ["profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"],
            id="profile-percentage",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 0},
            ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
            id="initial-backoff",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 20},
            [
                (
                    "podMaxBackoffSeconds: Invalid value: 10: "
                    "must be greater than or equal to PodInitialBackoffSeconds"
                )
            ],
            id="max-backoff",
        ),
        pytest.param(
            {"clientConnection": {"burst": -1}},
            ["clientConnection.burst: Invalid value: -1: must be non-negative"],
            id="burst",
        ),
    ],
)
def test_plain_fields(fields: dict[str, Any], expected: list[str]) -> None:
    """Numbers have their ranges."""
    assert expected == _messages(fields)


@pytest.mark.parametrize(
    ("election", "expected"),
    [
        pytest.param(
            {"leaseDuration": "10s"},
            ['leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`'],
            id="lease-equal",
        ),
        pytest.param(
            {"leaseDuration": "5s"},
            ['leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`'],
            id="lease-shows-the-deadline",
        ),
        pytest.param(
            {"renewDeadline": "-1s"},
            [
                'renewDeadline: Invalid value: "-1s": must be greater than zero',
                (
                    'renewDeadline: Invalid value: "-1s": must be greater than '
                    "retryPeriod*JitterFactor"
                ),
            ],
            id="negative",
        ),
        pytest.param(
            {"retryPeriod": "8.5s"},
            [
                (
                    'renewDeadline: Invalid value: "10s": must be greater than '
                    "retryPeriod*JitterFactor"
                ),
            ],
            id="elector",
        ),
        pytest.param(
            {"resourceLock": "configmaps"},
            ['resourceLock: Invalid value: "configmaps": resourceLock value must be "leases"'],
            id="lock",
        ),
        pytest.param({"resourceName": "", "retryPeriod": "0s"}, [], id="empty-is-default"),
        pytest.param({"leaderElect": False, "leaseDuration": "-5s"}, [], id="not-electing"),
    ],
)
def test_leader_election(election: dict[str, Any], expected: list[str]) -> None:
    """Leader election is validated only if enabled."""
    messages = _messages({"leaderElection": election})
    assert [f"leaderElection.{message}" for message in expected] == messages


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        pytest.param(
            _profiles({"schedulerName": ""}),
            ["profiles[0].schedulerName: Required value"],
            id="explicitly-empty",
        ),
        pytest.param(
            _profiles({}, {"schedulerName": "a"}),
            ["profiles[0].schedulerName: Required value"],
            id="one-of-two-without-name",
        ),
        pytest.param(
            _profiles({"schedulerName": "a"}, {"schedulerName": "a"}),
            ["profiles[1].schedulerName: Duplicate value: {}"],
            id="same-name",
        ),
        pytest.param(
            _profiles({"pluginConfig": [{"name": "x"}, {"name": "x"}]}),
            ['profiles[0].pluginConfig[1]: Duplicate value: "x"'],
            id="plugin-config-twice",
        ),
        pytest.param(
            _profiles(
                {
                    "plugins": {
                        "score": _enabled("NodeName", "EBSLimits"),
                        "filter": _enabled("AzureDiskLimits"),
                        "multiPoint": _enabled("CinderLimits"),
                    },
                    "pluginConfig": [{"name": "GCEPDLimits"}],
                }
            ),
            [
                (
                    "profiles[0].plugins.filter.enabled[0]: "
                    f'Invalid value: "AzureDiskLimits": {_REMOVED}'
                ),
                f'profiles[0].plugins.score.enabled[1]: Invalid value: "EBSLimits": {_REMOVED}',
                f'profiles[0].pluginConfig[0]: Invalid value: "GCEPDLimits": {_REMOVED}',
            ],
            id="removed-plugins-not-looked-for-in-multi-point",
        ),
    ],
)
def test_profiles(profiles: dict[str, Any], expected: list[str]) -> None:
    """Profiles have unique names and no removed plugins."""
    assert expected == _messages(profiles)


def _sorting(name: str, *plugins: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
    profile: dict[str, Any] = {"schedulerName": name, "plugins": {"queueSort": _enabled(*plugins)}}
    if args is not None:
        profile["pluginConfig"] = [{"name": plugins[0], "args": args}]
    return profile


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        pytest.param([_sorting("a", "X"), _sorting("b", "X")], [], id="same"),
        pytest.param(
            [_sorting("a", "X"), _sorting("b", "Y")],
            [
                (
                    "profiles[1].plugins.queueSort: Invalid value: "
                    '{"Enabled":[{"Name":"Y","Weight":0}]'
                    ',"Disabled":null}: must be the same for all profiles'
                )
            ],
            id="different",
        ),
        pytest.param(
            [_sorting("a", "X"), {"schedulerName": "b"}],
            [
                (
                    "profiles[1].plugins.queueSort: Invalid value: "
                    '{"Enabled":null,"Disabled":null}: '
                    "must be the same for all profiles"
                )
            ],
            id="one-empty",
        ),
        pytest.param(
            [_sorting("a", "X", "Y")],
            [
                (
                    "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: "
                    "only one queue sort plugin can be enabled"
                )
            ],
            id="two",
        ),
        pytest.param(
            [_sorting("a", "X", args={"k": 1}), _sorting("b", "X", args={"k": 2})],
            [
                (
                    'profiles[1].pluginConfig.args: Invalid value: {"k":2}: '
                    "queueSort must be the same for all profiles"
                )
            ],
            id="args",
        ),
        pytest.param(
            [_sorting("a", "X", args={"k": 1}), _sorting("b", "X")], [], id="args-only-in-the-first"
        ),
    ],
)
def test_queue_sort(profiles: list[dict[str, Any]], expected: list[str]) -> None:
    """All profiles share one queue, so they have the same queue sort."""
    assert expected == _messages(_profiles(*profiles))


@pytest.mark.parametrize(
    ("extenders", "expected"),
    [
        pytest.param([{"prioritizeVerb": "p", "weight": 1, "bindVerb": "b"}], [], id="good"),
        pytest.param(
            [{"prioritizeVerb": "p"}],
            ["[0].weight: Invalid value: 0: must have a positive weight applied to it"],
            id="weight",
        ),
        pytest.param(
            [{"bindVerb": "a"}, {"bindVerb": "b"}],
            [
                (
                    ': Invalid value: "found 2 extenders implementing bind": '
                    "only one extender can implement bind"
                )
            ],
            id="two-bind",
        ),
        pytest.param(
            [
                {"managedResources": [{"name": "example.com/a"}, {"name": "cpu"}]},
                {"managedResources": [{"name": "example.com/a"}]},
            ],
            [
                (
                    '[0].managedResources[1].name: Invalid value: "cpu": '
                    "is an invalid extended resource name"
                ),
                (
                    '[1].managedResources[0].name: Invalid value: "example.com/a": '
                    "duplicate extender managed resource name"
                ),
            ],
            id="managed-resources",
        ),
    ],
)
def test_extenders(extenders: list[dict[str, Any]], expected: list[str]) -> None:
    """Extenders that score have a weight, one binds, and none shares a resource."""
    assert [f"extenders{message}" for message in expected] == _messages({"extenders": extenders})
