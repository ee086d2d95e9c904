"""Manifests and chart: valid arguments, equal objects and few privileges."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import click
import pytest
import yaml

from kubesched import __version__
from kubesched.api.codec import decode_object
from kubesched.api.core import Pod
from kubesched.app.options import ALWAYS_ALLOWED_PATHS, SECURE_PORT_DEFAULT, with_flags
from kubesched.cli.commands import command as command_named
from kubesched.cli.run import options_of
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration, load_configuration
from tests.deploy.shipped import (
    CHART,
    MANIFESTS,
    VALUES,
    WAYS,
    configuration_of,
    container_of,
    deployed,
    of_kind,
    pod_of,
)

Plain = dict[str, Any]
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
DEPLOYMENTS = [way for way in WAYS if way != "static-pod"]


def flags_of(way: str) -> Plain:
    """Return the flags as `kubesched run` parses them."""
    command, *arguments = container_of(way)["args"]
    assert "run" == command
    run = command_named(command)
    context = run.make_context(command, list(arguments), parent=click.Context(run))
    return context.params


def mappings(value: Any) -> Iterator[Plain]:
    """Yield every mapping in a value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from mappings(part)


@pytest.mark.parametrize("way", WAYS)
def test_objects_have_kinds_and_unique_names(way: str) -> None:
    """No field is empty."""
    objects = deployed(way)
    names = [(found["kind"], found["metadata"]["name"]) for found in objects]
    assert len(set(names)) == len(names) > 0
    assert None not in [value for part in mappings(objects) for value in part.values()]
    for found in objects:
        namespace = found["metadata"].get("namespace")
        assert (None if found["kind"].startswith("Cluster") else "kube-system") == namespace


@pytest.mark.parametrize("way", WAYS)
def test_the_pod_can_be_decoded(way: str) -> None:
    """With the fields that scheduling reads."""
    pod = pod_of(way)
    whole = {"apiVersion": "v1", "kind": "Pod", **pod}
    whole["metadata"] = {"name": "x", "namespace": "kube-system", **pod["metadata"]}
    decoded = decode_object(json.dumps(whole).encode())
    assert isinstance(decoded, Pod)
    assert pod["spec"]["priorityClassName"] == decoded.spec.priority_class_name
    assert {"cpu", "memory"} == set(decoded.spec.containers[0].resources.requests)


@pytest.mark.parametrize("way", WAYS)
def test_arguments_are_flags_of_run(way: str) -> None:
    """None of them is without effect."""
    options = options_of(flags_of(way))
    assert SECURE_PORT_DEFAULT == options.serving.secure_port


@pytest.mark.parametrize("way", DEPLOYMENTS)
def test_the_configuration_is_accepted(way: str) -> None:
    """The ConfigMap's text is valid with the gates of the flags."""
    text = configuration_of(way)
    assert text is not None
    configuration = load_configuration(text, options_of(flags_of(way)).feature_gates)
    expected = {
        "second-scheduler": ["kubesched"],
        "replace-default": ["default-scheduler"],
        "chart": ["kubesched"],
        "chart with everything": ["default-scheduler", "gpu"],
    }
    assert expected[way] == [profile.scheduler_name for profile in configuration.profiles]


def test_the_chart_passes_unknown_configuration_fields_on() -> None:
    """Unchanged."""
    text = configuration_of("chart with everything")
    assert text is not None
    configuration = load_configuration(text, FeatureGates.parse("GenericWorkload=true"))
    assert (4, 20) == (configuration.parallelism, configuration.pod_max_backoff_seconds)


def test_the_static_pod_uses_kube_schedulers_identity() -> None:
    """Its kubeconfig for all connections, its lock, and its port on loopback."""
    options = options_of(flags_of("static-pod"))
    configuration = with_flags(default_configuration(options.feature_gates), options)
    kubeconfig = "/etc/kubernetes/scheduler.conf"
    assert kubeconfig == configuration.client_connection.kubeconfig
    assert kubeconfig == options.access.authentication_kubeconfig
    assert kubeconfig == options.access.authorization_kubeconfig
    assert "127.0.0.1" == options.serving.bind_address
    assert configuration.leader_election.leader_elect


@pytest.mark.parametrize("way", WAYS)
def test_probes_need_no_token(way: str) -> None:
    """They use open paths, over TLS, at the port."""
    container = container_of(way)
    ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
    for name in PROBES:
        probe = container[name]["httpGet"]
        assert probe["path"] in ALWAYS_ALLOWED_PATHS
        assert ("HTTPS", SECURE_PORT_DEFAULT) == (
            probe["scheme"],
            ports.get(probe["port"], probe["port"]),
        )
    assert ["/livez", "/healthz", "/readyz"] == [
        container[name]["httpGet"]["path"] for name in PROBES
    ]


@pytest.mark.parametrize("way", WAYS)
def test_containers_have_no_privileges(way: str) -> None:
    """They write to volumes only; root only where only root can read."""
    spec = pod_of(way)["spec"]
    for container in [*spec["containers"], *spec.get("initContainers", ())]:
        security = container["securityContext"]
        assert {"drop": ["ALL"]} == security["capabilities"]
        assert not security["allowPrivilegeEscalation"]
        assert security["readOnlyRootFilesystem"]
        assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]]  # noqa: S108 - in the container
    assert {"type": "RuntimeDefault"} == spec["securityContext"]["seccompProfile"]
    assert (way != "static-pod") == spec["securityContext"].get("runAsNonRoot", False)


@pytest.mark.parametrize("way", WAYS)
def test_mounts_have_volumes(way: str) -> None:
    """Every volume is mounted, and configurations are where flags name them."""
    spec = pod_of(way)["spec"]
    mounted = {
        mount["name"]
        for container in [*spec["containers"], *spec.get("initContainers", ())]
        for mount in container["volumeMounts"]
    }
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes.keys() == mounted
    maps = {found["metadata"]["name"] for found in of_kind(way, "ConfigMap")}
    used = {found["configMap"]["name"] for found in volumes.values() if "configMap" in found}
    assert maps == used
    config_file = flags_of(way)["config_file"]
    folders = [mount["mountPath"] for mount in container_of(way)["volumeMounts"]]
    assert config_file is None or str(config_file.parent) in folders


@pytest.mark.parametrize("way", DEPLOYMENTS)
def test_three_replicas_are_spread(way: str) -> None:
    """Over nodes and zones; the budget allows one disruption at a time."""
    (deployment,) = of_kind(way, "Deployment")
    (budget,) = of_kind(way, "PodDisruptionBudget")
    spec = deployment["spec"]
    selector = spec["selector"]["matchLabels"]
    assert selector.items() <= spec["template"]["metadata"]["labels"].items()
    assert (3, 1) == (spec["replicas"], budget["spec"]["maxUnavailable"])
    assert selector == budget["spec"]["selector"]["matchLabels"]
    spread = spec["template"]["spec"]["topologySpreadConstraints"]
    assert ["kubernetes.io/hostname", "topology.kubernetes.io/zone"] == [
        constraint["topologyKey"] for constraint in spread
    ]
    assert all(selector == constraint["labelSelector"]["matchLabels"] for constraint in spread)


def test_deployments_can_coexist() -> None:
    """They share no object, and no selector matches both's pods."""
    names = [
        {(found["kind"], found["metadata"]["name"]) for found in deployed(way)}
        for way in ("second-scheduler", "replace-default")
    ]
    assert set() == names[0] & names[1]
    selectors = [
        of_kind(way, "Deployment")[0]["spec"]["selector"]["matchLabels"]
        for way in ("second-scheduler", "replace-default")
    ]
    assert selectors[0] != selectors[1]


def test_the_default_chart_equals_the_manifest() -> None:
    """Of the second scheduler."""
    kinds = [
        sorted((found["kind"], found["metadata"]["name"]) for found in deployed(way))
        for way in ("second-scheduler", "chart")
    ]
    assert kinds[0] == kinds[1]
    specs = [pod_of(way)["spec"] for way in ("second-scheduler", "chart")]
    for name in ("securityContext", *PROBES, "resources", "ports", "volumeMounts"):
        found = [spec["containers"][0][name] for spec in specs]
        assert found[0] == found[1]


def test_versions_agree() -> None:
    """Those of the chart, the manifests' image and the package."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (__version__, __version__) == (chart["version"], chart["appVersion"])
    images = {container_of(way)["image"] for way in WAYS}
    assert {f"kubesched:{__version__}"} == images


def properties(schema: Plain, values: Plain, path: str = "") -> Iterator[str]:
    """Yield the paths of values without a schema, and of schemas without a value."""
    known = schema.get("properties")
    if known is None:
        return
    assert not schema["additionalProperties"]
    yield from (f"{path}{name}" for name in sorted(known.keys() ^ values.keys()))
    for name in known.keys() & values.keys():
        if isinstance(values[name], dict):
            yield from properties(known[name], values[name], f"{path}{name}.")


def test_every_value_has_a_schema() -> None:
    """And every schema a value, except Helm's own."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert ["global"] == list(properties(schema, values))


def test_every_value_is_used() -> None:
    """And every used value exists."""
    text = "".join(
        path.read_text(encoding="utf-8") for path in sorted((CHART / "templates").iterdir())
    )
    used = set(re.findall(r"\.Values\.(\w+)", text))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert values.keys() == used


def test_every_manifest_is_tested() -> None:
    """A new manifest or set of values has to be added to the tests."""
    assert ["replace-default", "second-scheduler", "static-pod"] == MANIFESTS
    assert ["chart", "chart with everything"] == list(VALUES)
