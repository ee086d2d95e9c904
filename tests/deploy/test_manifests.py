"""Manifests and the chart agree with what they start, and run it with few rights."""

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
from kubesched.app.options import ALWAYS_ALLOWED_PATHS, SECURE_PORT_DEFAULT
from kubesched.app.options import configuration_of as of
from kubesched.cli.run import run
from kubesched.cli.run_process import options_of
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration
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
    """Return the flags as `kubesched run` reads them."""
    command, *arguments = container_of(way)["args"]
    assert "run" == command
    context = run.make_context("run", list(arguments), parent=click.Context(run))
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
def test_objects_are_whole(way: str) -> None:
    """Each has a kind and a name that no other of its kind has; none holds an empty field."""
    objects = deployed(way)
    names = [(found["kind"], found["metadata"]["name"]) for found in objects]
    assert len(set(names)) == len(names) > 0
    assert None not in [value for part in mappings(objects) for value in part.values()]
    for found in objects:
        namespace = found["metadata"].get("namespace")
        assert (None if found["kind"].startswith("Cluster") else "kube-system") == namespace


@pytest.mark.parametrize("way", WAYS)
def test_the_pod_is_one_that_we_can_read_too(way: str) -> None:
    """The pod decodes, with what scheduling reads of it."""
    pod = pod_of(way)
    whole = {"apiVersion": "v1", "kind": "Pod", **pod}
    whole["metadata"] = {"name": "x", "namespace": "kube-system", **pod["metadata"]}
    decoded = decode_object(json.dumps(whole).encode())
    assert isinstance(decoded, Pod)
    assert pod["spec"]["priorityClassName"] == decoded.spec.priority_class_name
    assert {"cpu", "memory"} == set(decoded.spec.containers[0].resources.requests)


@pytest.mark.parametrize("way", WAYS)
def test_flags_are_those_of_run(way: str) -> None:
    """`kubesched run` takes the arguments, and they mean something to it."""
    options = options_of(flags_of(way))
    assert SECURE_PORT_DEFAULT == options.serving.secure_port


@pytest.mark.parametrize("way", DEPLOYMENTS)
def test_the_configuration_is_accepted(way: str) -> None:
    """The text in the ConfigMap is loaded without a fault, with the gates of the flags."""
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


def test_the_chart_hands_on_what_it_does_not_know() -> None:
    """Further fields of the configuration arrive as they are given."""
    text = configuration_of("chart with everything")
    assert text is not None
    configuration = load_configuration(text, FeatureGates.parse("GenericWorkload=true"))
    assert (4, 20) == (configuration.parallelism, configuration.pod_max_backoff_seconds)


def test_the_static_pod_is_who_kube_scheduler_is() -> None:
    """One kubeconfig for all connections, kube-scheduler's lock, and its port on loopback."""
    options = options_of(flags_of("static-pod"))
    configuration = of(options)
    kubeconfig = "/etc/kubernetes/scheduler.conf"
    assert kubeconfig == configuration.client_connection.kubeconfig
    assert kubeconfig == options.access.authentication_kubeconfig
    assert kubeconfig == options.access.authorization_kubeconfig
    assert "127.0.0.1" == options.serving.bind_address
    assert configuration.leader_election.leader_elect


@pytest.mark.parametrize("way", WAYS)
def test_probes_ask_what_is_open_to_all(way: str) -> None:
    """Probes send no token, so they ask paths that need none, over TLS, at the port."""
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
def test_containers_may_do_little(way: str) -> None:
    """No privileges, nothing to write to but volumes; root only where only root can read."""
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
    """Every mount names a volume, every volume is mounted, and configurations lie where asked."""
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
def test_three_replicas_stay_apart(way: str) -> None:
    """Selectors find the pods; drains take one at a time; nodes and zones get one each."""
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


def test_deployments_can_stand_side_by_side() -> None:
    """No object of one manifest is an object of the other, and no selector finds both's pods."""
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


def test_the_chart_does_what_the_manifest_does() -> None:
    """With its defaults the chart gives the objects of the second scheduler."""
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
    """The chart, and the image that manifests name, are of this version."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (__version__, __version__) == (chart["version"], chart["appVersion"])
    images = {container_of(way)["image"] for way in WAYS}
    assert {f"kubesched:{__version__}"} == images


def properties(schema: Plain, values: Plain, path: str = "") -> Iterator[str]:
    """Yield the paths of values that a schema does not know, and of what only it knows."""
    known = schema.get("properties")
    if known is None:
        return
    assert not schema["additionalProperties"]
    yield from (f"{path}{name}" for name in sorted(known.keys() ^ values.keys()))
    for name in known.keys() & values.keys():
        if isinstance(values[name], dict):
            yield from properties(known[name], values[name], f"{path}{name}.")


def test_the_schema_knows_the_values() -> None:
    """Every value of the chart is in its schema, and the other way round; but Helm's own."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert ["global"] == list(properties(schema, values))


def test_the_templates_use_the_values() -> None:
    """No value is without effect, and none is used that does not exist."""
    text = "".join(
        path.read_text(encoding="utf-8") for path in sorted((CHART / "templates").iterdir())
    )
    used = set(re.findall(r"\.Values\.(\w+)", text))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert values.keys() == used


def test_every_manifest_is_tested() -> None:
    """A new manifest or set of values has to be added where tests name them."""
    assert ["replace-default", "second-scheduler", "static-pod"] == MANIFESTS
    assert ["chart", "chart with everything"] == list(VALUES)
