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


def refused(*arguments: object, stdin: str | bytes | None = None) -> str:
    """Run the command line with a mistake; return the error: a line, perhaps with a hint below."""
    result = run(*arguments, stdin=stdin)
    line, *hints = result.stderr.splitlines()
    head, _, message = line.partition("error: ")
    assert (2, "", "kubesched: ") == (result.exit_code, result.stdout, head), result.output
    assert all(hint.startswith("kubesched: try '") for hint in hints), result.output
    return message


def config(directory: Path, text: str = "", name: str = "config.yaml") -> Path:
    """Write a configuration of the scheduler, and return its path."""
    file = directory / name
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    file.write_text(head + text)
    return file


def interrupting(directory: Path) -> str:
    """Return a plugin that presses Ctrl-C when the second pod is tried."""
    file = directory / "interrupts.py"
    file.write_text(
        "import os, signal\n"
        "from kubesched.framework.per_row import PerRowFilter\n"
        "from kubesched.framework.status import SUCCESS\n"
        "seen = set()\n"
        "class Interrupts(PerRowFilter):\n"
        "    name = 'Interrupts'\n"
        "    def filter_node(self, state, pod, node):\n"
        "        if pod.key not in seen and len(seen) == 1:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "        seen.add(pod.key)\n"
        "        return SUCCESS\n"
    )
    return f"{file}:Interrupts"


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
