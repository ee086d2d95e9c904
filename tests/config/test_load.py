"""Loading a whole configuration: completion, all field errors at once, and writing it out."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.api.field_errors import ConfigError
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration, encode_configuration, load_configuration
from kubesched.config.types import API_VERSION, KIND, Configuration

_HEAD = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"
_TESTDATA = Path(__file__).parent / "testdata"


def _load(text: str) -> Configuration:
    return load_configuration(_HEAD + text, FeatureGates())


def _errors(source: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load_configuration(source, FeatureGates())
    return [str(field_error) for field_error in error.value.errors]


def test_default_configuration() -> None:
    """The completed default, as `--write-config-to` writes it, is the recorded page."""
    written = yaml.safe_dump(encode_configuration(default_configuration(FeatureGates())))
    assert (_TESTDATA / "default_configuration.yaml").read_text(encoding="utf-8") == written


def _with_sorted_args(configuration: Configuration) -> Configuration:
    """Arguments are written in the order of their plugins' names."""
    profiles = tuple(
        replace(
            profile,
            plugin_config=tuple(sorted(profile.plugin_config, key=lambda entry: entry.name)),
        )
        for profile in configuration.profiles
    )
    return replace(configuration, profiles=profiles)


def test_everything_is_read_back() -> None:
    """A configuration with every field, written out, reads back as itself."""
    configuration = load_configuration(_TESTDATA / "full_configuration.yaml", FeatureGates())
    extender = configuration.extenders[0]
    assert extender.http_timeout_seconds == 1.5
    assert extender.tls_config is not None
    assert extender.tls_config.ca_data == b"certificate"
    assert configuration.leader_election.lease_duration_seconds == 60.0
    assert not configuration.enable_contention_profiling
    assert [profile.percentage_of_nodes_to_score for profile in configuration.profiles] == [
        50,
        None,
    ]
    written = encode_configuration(configuration)
    again = load_configuration(yaml.safe_dump(written), FeatureGates())
    assert _with_sorted_args(configuration) == again
    assert written["extenders"][0]["tlsConfig"]["caData"] == "Y2VydGlmaWNhdGU="


def test_many_field_errors_are_reported_together() -> None:
    """Field errors of syntax, types, names, arguments and rules come in one error."""
    expected = (_TESTDATA / "many_errors.txt").read_text(encoding="utf-8").splitlines()
    assert expected == _errors(_TESTDATA / "many_errors.yaml")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("", ["must be a KubeSchedulerConfiguration, not null"], id="empty"),
        pytest.param("[]", ["must be a KubeSchedulerConfiguration, not []"], id="list"),
        pytest.param(
            "a: 1",
            [
                f"kind: Required value: must be {KIND}",
                f"apiVersion: Required value: must be {API_VERSION}",
            ],
            id="no-version",
        ),
        pytest.param(
            _HEAD.replace("/v1", "/v1beta3") + "unknown: 1",
            [
                (
                    'apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1beta3": '
                    f"this version was removed from Kubernetes; convert it to {API_VERSION}"
                )
            ],
            id="removed-version",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod"},
            [
                f'kind: Unsupported value: "Pod": supported values: "{KIND}"',
                f'apiVersion: Unsupported value: "v1": supported values: "{API_VERSION}"',
            ],
            id="another-kind",
        ),
        pytest.param(
            _HEAD + "metadata: {name: x}",
            ['metadata: unknown field "metadata"'],
            id="metadata",
        ),
        pytest.param(
            _HEAD + "profiles: [{pluginConfig: [{name: NodePorts, args: {a: 1}}]}]",
            ["profiles[0].pluginConfig[0].args: Forbidden: plugin NodePorts takes no args"],
            id="args-for-a-plugin-without",
        ),
        pytest.param(
            _HEAD + "podInitialBackoffSeconds: many\npodMaxBackoffSeconds: 0",
            ['podInitialBackoffSeconds: Invalid value: "many": expected integer, got text'],
            id="no-error-from-a-field-not-read",
        ),
    ],
)
def test_rejected(source: Any, expected: list[str]) -> None:
    """A file that is not a configuration of this version has one error."""
    assert expected == _errors(source)


@pytest.mark.parametrize("name", ["missing.yaml", ".", "\0"])
def test_unreadable_file(name: str, tmp_path: Path) -> None:
    """A file that cannot be read is a field error that names it."""
    path = tmp_path / name
    (message,) = _errors(path)
    assert message.startswith(f"{path}: cannot read file: ")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "default-scheduler"),
        ("profiles: [null]", "default-scheduler"),
        ("profiles: [{}]", "default-scheduler"),
        ("profiles: [{schedulerName: a}]", "a"),
    ],
)
def test_single_profile_is_named(text: str, name: str) -> None:
    """Only a single profile without a name gets the default name."""
    assert [name] == [profile.scheduler_name for profile in _load(text).profiles]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (True, True)),
        ("enableProfiling: false", (False, False)),
        ("enableContentionProfiling: false", (True, False)),
        ("enableProfiling: false\nenableContentionProfiling: true", (False, True)),
    ],
)
def test_profiling(text: str, expected: tuple[bool, bool]) -> None:
    """Contention is profiled by default when profiling is on."""
    loaded = _load(text)
    assert expected == (loaded.enable_profiling, loaded.enable_contention_profiling)


def test_args_of_enabled_plugins_are_added() -> None:
    """Written arguments stay first; enabled plugins with arguments follow by name."""
    text = """
profiles:
- plugins: {multiPoint: {disabled: [{name: VolumeBinding}, {name: PodTopologySpread}]}}
  pluginConfig:
  - {name: Mine, args: {foo: [bar]}}
  - {name: NodeResourcesFit}
  - {name: VolumeBinding, args: null}
"""
    entries = {entry.name: entry.args for entry in _load(text).profiles[0].plugin_config}
    assert list(entries) == [
        "Mine",
        "NodeResourcesFit",
        "VolumeBinding",
        "DefaultPreemption",
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
    ]
    assert entries["Mine"] == {"foo": ["bar"]}
    assert (entries["VolumeBinding"] or {})["bindTimeoutSeconds"] == 600


@given(
    st.lists(
        st.sampled_from(
            [
                ("parallelism: 0", "parallelism"),
                ("percentageOfNodesToScore: 200", "percentageOfNodesToScore"),
                ("podInitialBackoffSeconds: -1", "podInitialBackoffSeconds"),
                ("clientConnection: {burst: -1}", "clientConnection.burst"),
                ("leaderElection: {resourceLock: x}", "leaderElection.resourceLock"),
                ("profiles: [{schedulerName: ''}]", "profiles[0].schedulerName"),
                ("extenders: [{prioritizeVerb: p}]", "extenders[0].weight"),
                ("enableProfiling: 3", "enableProfiling"),
                ("unknown: x", "unknown"),
            ]
        ),
        unique=True,
        min_size=1,
    )
)
def test_field_errors_do_not_hide_each_other(parts: list[tuple[str, str]]) -> None:
    """Any set of independent field errors is reported in full."""
    text = _HEAD + "\n".join(line for line, _ in parts)
    with pytest.raises(ConfigError) as error:
        load_configuration(text, FeatureGates())
    assert sorted(path for _, path in parts) == sorted(f.path for f in error.value.errors)
