"""A small cluster as plain JSON, and the command line as a function."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kubesched.cli.main import kubesched

Json = dict[str, Any]


def run(*arguments: object, stdin: str | bytes | None = None, **environment: str) -> Result:
    """Run the command line."""
    words = [str(argument) for argument in arguments]
    # No live cluster is read by accident.
    own = {"KUBESCHED_DEBUG": "", "KUBECONFIG": "/no/kubeconfig", **environment}
    return CliRunner().invoke(kubesched, words, input=stdin, env=own)


def document(*arguments: object, stdin: str | bytes | None = None, code: int | None = None) -> Any:
    """Run the command line, and return the document that it prints as JSON.

    With `code`, its exit code must be this one.
    """
    result = run(*arguments, "-o", "json", stdin=stdin)
    assert code in (None, result.exit_code), result.stderr
    return json.loads(result.stdout)


def node(
    name: str,
    cpu: str = "4",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Json] = (),
) -> Json:
    """Return a node with 8Gi of memory."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def pod(
    name: str,
    cpu: str = "1",
    *,
    namespace: str = "shop",
    node_name: str = "",
    priority: int = 0,
    status: Json | None = None,
    **spec: object,
) -> Json:
    """Return a pod with one container; the keywords are fields of its spec."""
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    bound = {"nodeName": node_name} if node_name else {}
    began = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"} if node_name else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "priority": priority,
            "containers": [{"name": "main", "image": "app", "resources": resources}],
            **bound,
            **spec,
        },
        "status": {**began, **(status or {})},
    }


def owned(made: Json, owner: str, kind: str = "ReplicaSet") -> Json:
    """Return a pod as that of an owner, whose name is also its label `app`."""
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": owner}
    made["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    made["metadata"]["labels"] = {"app": owner}
    return made


def manifest(kind: str, name: str = "web", cpu: str = "1", **spec: object) -> Json:
    """Return a workload of the group apps with one container; the keywords are of its spec."""
    resources = {"requests": {"cpu": cpu}}
    pod_spec = {"containers": [{"name": "main", "image": "app", "resources": resources}]}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec},
            **spec,
        },
    }


GPU_TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def shop() -> list[Json]:
    """Return four nodes, one full, one tainted, and a pod that fits two of them."""
    return [
        node("alpha", labels={"disk": "ssd"}),
        node("beta", "8"),
        node("gamma", "2"),
        node("delta", taints=[GPU_TAINT]),
        pod("db-0", "1500m", node_name="gamma", priority=5),
        pod("cache-0", "500m", node_name="alpha"),
        pod("web-1", "1", priority=10),
    ]


def write(directory: Path, objects: Sequence[Json], name: str = "cluster.json") -> Path:
    """Write a dump as kubectl does, and return its path."""
    file = directory / name
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return file
