"""The shipped objects."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from tests.deploy.go_templates import render_chart

Plain = dict[str, Any]

ROOT: Final = Path(__file__).resolve().parents[2]
DEPLOY: Final = ROOT / "deploy"
CHART: Final = DEPLOY / "helm" / "kubesched"
MANIFESTS: Final = sorted(path.stem for path in (DEPLOY / "manifests").glob("*.yaml"))

EVERYTHING: Final[Plain] = {
    "schedulerName": "gpu",
    "leaderElection": {"resourceName": "kube-scheduler", "resourceNamespace": "kube-system"},
    "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "gpu"}],
    "config": {"parallelism": 4, "podMaxBackoffSeconds": 20},
    "plugins": {
        "files": {"own.py": "class Own:\n    name = 'Own'\n"},
        "enabled": ["/plugins/own.py:Own"],
        "packages": ["racks==1.0"],
    },
    "featureGates": {"GenericWorkload": True},
    "extraArgs": ["--seed=1"],
    "rbac": {"extraRules": [{"apiGroups": ["a.b"], "resources": ["racks"], "verbs": ["list"]}]},
    "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
    "monitoring": {
        "serviceMonitor": {"enabled": True},
        "prometheus": {"serviceAccountName": "prometheus", "namespace": "monitoring"},
    },
}
VALUES: Final[dict[str, Plain]] = {"chart": {}, "chart with everything": EVERYTHING}
WAYS: Final = [*MANIFESTS, *VALUES]
"""All ways to deploy, by name."""


def objects_of(text: str) -> list[Plain]:
    """Return the objects of a YAML text."""
    return [found for found in yaml.safe_load_all(text) if found is not None]


@cache
def deployed(way: str) -> list[Plain]:
    """Return all objects of one deployment."""
    if way in MANIFESTS:
        file = DEPLOY / "manifests" / f"{way}.yaml"
        return objects_of(file.read_text(encoding="utf-8"))
    rendered = render_chart(CHART, VALUES[way], "kubesched")
    return [
        found
        for name, text in rendered.items()
        if name.endswith(".yaml")
        for found in objects_of(text)
    ]


def of_kind(way: str, kind: str) -> list[Plain]:
    """Return the objects of a kind."""
    return [found for found in deployed(way) if found["kind"] == kind]


def pod_of(way: str) -> Plain:
    """Return the only pod, or the only pod template."""
    pods = [
        found if found["kind"] == "Pod" else found["spec"]["template"]
        for found in deployed(way)
        if found["kind"] in {"Pod", "Deployment"}
    ]
    (pod,) = pods
    return pod


def container_of(way: str) -> Plain:
    """Return the scheduler's container."""
    (container,) = pod_of(way)["spec"]["containers"]
    found: Plain = container
    return found


def configuration_of(way: str) -> str | None:
    """Return the text of the configuration, None if flags replace it."""
    for found in of_kind(way, "ConfigMap"):
        if "config.yaml" in found["data"]:
            text: str = found["data"]["config.yaml"]
            return text
    return None
