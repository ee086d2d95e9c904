"""kubectl, if it is installed, against a sandbox with our scheduler."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

pytestmark = pytest.mark.slow

_KUBECTL: Final = shutil.which(os.environ.get("KUBECTL") or "kubectl")
_MISSING: Final = (
    "kubectl is not on PATH: install it (Debian: kubernetes-client) or name it in $KUBECTL"
)
_SECONDS_MAX: Final = 60.0
_NODES: Final = ("node-0", "node-1", "node-2")


class Cluster:
    """A sandbox, accessed by kubectl."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    def kubectl(self, *words: str, stdin: str = "", fails: bool = False) -> str:
        """Run kubectl; return its output, or its error if it must fail."""
        done = self._run(words, stdin)
        assert fails == (done.returncode != 0), f"{words}: {done.stdout}{done.stderr}"
        return done.stderr if fails else done.stdout

    def _run(self, words: tuple[str, ...], stdin: str) -> subprocess.CompletedProcess[str]:
        assert _KUBECTL is not None, _MISSING
        return subprocess.run(  # noqa: S603 - kubectl itself
            [_KUBECTL, *words],
            input=stdin,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS_MAX,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start kubectl with its output in a pipe."""
        assert _KUBECTL is not None, _MISSING
        return subprocess.Popen(  # noqa: S603 - kubectl itself
            [_KUBECTL, *words], env=self._environment, stdout=subprocess.PIPE, text=True
        )

    def object(self, *words: str) -> dict[str, Any]:
        """Return an object, or a list of them."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *words, "-o", "json"))
        return found

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for a condition."""
        deadline = time.monotonic() + _SECONDS_MAX
        while not is_so():
            assert time.monotonic() < deadline, self.kubectl("get", "pods,nodes,events", "-A")
            time.sleep(0.05)

    def until_running(self, name: str) -> str:
        """Wait until a pod runs; return its node."""
        self.until(lambda: self.object("pod", name)["status"]["phase"] == "Running")
        return str(self.object("pod", name)["spec"]["nodeName"])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return three nodes and a scheduler, for all tests of this module."""
    if _KUBECTL is None:
        if os.environ.get("CI"):
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    folder = tmp_path_factory.mktemp("sandbox")
    kubeconfig = folder / "kubeconfig"
    log = (folder / "log").open("w")
    words = ["--nodes", "3", "--start-latency", "10ms", "--stop-latency", "10ms"]
    words += ["--kubeconfig", str(kubeconfig), "--scheduler-log", str(folder / "scheduler.log")]
    sandbox = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "kubesched", "sandbox", *words], stdout=log, stderr=log
    )
    try:
        found = Cluster(kubeconfig, folder)
        deadline = time.monotonic() + _SECONDS_MAX
        while not (kubeconfig.exists() and len(found.object("nodes")["items"]) == len(_NODES)):
            assert sandbox.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, "there is no sandbox yet"
            time.sleep(0.05)
        yield found
    finally:
        sandbox.terminate()
        sandbox.wait(_SECONDS_MAX)
        log.close()


def _pod(name: str, **spec: Any) -> str:
    container = {
        "name": "main",
        "image": "web",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }
    return json.dumps(pod)


def _columns(table: str) -> list[list[str]]:
    return [re.split(r"  +", line.strip()) for line in table.splitlines()]


def test_pods_are_created_placed_shown_and_deleted(cluster: Cluster) -> None:
    """The output of apply, get, get -o wide, describe, events and delete."""
    assert "pod/first created\n" == cluster.kubectl("apply", "-f", "-", stdin=_pod("first"))
    assert "pod/first unchanged\n" == cluster.kubectl("apply", "-f", "-", stdin=_pod("first"))
    node = cluster.until_running("first")
    header, row = _columns(cluster.kubectl("get", "pod", "first"))
    assert ["NAME", "READY", "STATUS", "RESTARTS", "AGE"] == header
    assert ["first", "1/1", "Running", "0"] == row[:4]
    header, row = _columns(cluster.kubectl("get", "pod", "first", "-o", "wide"))
    assert ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"] == header[5:]
    assert [node, "<none>", "<none>"] == row[6:]
    assert "pod/first\n" in cluster.kubectl("get", "pods", "-o", "name")
    text = cluster.kubectl("describe", "pod", "first")
    assert re.search(rf"Node: +{node}/", text)
    assert re.search(r"PodScheduled +True", text)
    assigned = f"Successfully assigned default/first to {node}"
    assert assigned in text
    assert assigned in cluster.kubectl("get", "events")
    assert 'pod "first" deleted' in cluster.kubectl("delete", "pod", "first")
    assert "not found" in cluster.kubectl("get", "pod", "first", fails=True)


def test_get_watch_shows_a_pod_until_it_runs(cluster: Cluster) -> None:
    """Existing pods first, then a line per change."""
    cluster.kubectl("create", "-f", "-", stdin=_pod("earlier"))
    cluster.until_running("earlier")
    watch = cluster.start("get", "pods", "-w", "--no-headers", "-l", "app in (earlier, watched)")
    try:
        assert watch.stdout is not None, "piped"
        assert "earlier" == watch.stdout.readline().split()[0]
        # The watch goes on from this list: it cannot miss what comes now.
        cluster.kubectl("create", "-f", "-", stdin=_pod("watched"))
        seen = []
        while "Running" not in seen:
            name, _, phase, *_ = watch.stdout.readline().split()
            assert "watched" == name
            seen.append(phase)
        assert "Pending" == seen[0]
    finally:
        watch.terminate()
        watch.communicate()
    cluster.kubectl("delete", "pod", "earlier", "watched")


def test_a_pending_pod_has_event_and_condition(cluster: Cluster) -> None:
    """They are kube-scheduler's; a label on a node makes it fit."""
    cluster.kubectl("create", "-f", "-", stdin=_pod("picky", nodeSelector={"disk": "ssd"}))
    reason = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
    cluster.until(lambda: reason in cluster.kubectl("describe", "pod", "picky"))
    assert re.search(r"Warning +FailedScheduling", cluster.kubectl("describe", "pod", "picky"))
    assert "node/node-1 labeled\n" == cluster.kubectl("label", "node", "node-1", "disk=ssd")
    assert "node-1" == cluster.until_running("picky")
    cluster.kubectl("label", "node", "node-1", "disk-")
    cluster.kubectl("delete", "pod", "picky")


def test_tainted_nodes_get_no_pods(cluster: Cluster) -> None:
    """The output of describe node has the taint and the node's pods."""
    for name in _NODES[1:]:
        said = cluster.kubectl("taint", "node", name, "team=blue:NoSchedule")
        assert f"node/{name} tainted\n" == said
    cluster.kubectl("create", "-f", "-", stdin=_pod("plain"))
    assert "node-0" == cluster.until_running("plain")
    assert re.search(
        r"Taints: +team=blue:NoSchedule", cluster.kubectl("describe", "node", "node-1")
    )
    text = cluster.kubectl("describe", "node", "node-0")
    assert re.search(r"default +plain +100m", text)
    assert re.search(r"cpu +100m \(", text)
    for name in _NODES[1:]:
        cluster.kubectl("taint", "node", name, "team-")
    cluster.kubectl("delete", "pod", "plain")


def test_cordon_and_drain(cluster: Cluster) -> None:
    """The pods of a Deployment move to the other nodes."""
    cluster.kubectl("create", "deployment", "web", "--image=web")
    cluster.kubectl("scale", "deployment", "web", "--replicas=4")

    def nodes() -> list[str]:
        pods = cluster.object("pods", "-l", "app=web")["items"]
        running = [pod for pod in pods if pod["status"]["phase"] == "Running"]
        return [
            pod["spec"]["nodeName"] for pod in running if "deletionTimestamp" not in pod["metadata"]
        ]

    cluster.until(lambda: len(nodes()) == 4)
    assert set(_NODES) == set(nodes())
    assert "node/node-2 cordoned\n" == cluster.kubectl("cordon", "node-2")
    assert "Ready,SchedulingDisabled" in cluster.kubectl("get", "node", "node-2")
    said = cluster.kubectl("drain", "node-2", "--ignore-daemonsets", "--force")
    assert "evicted" in said
    cluster.until(lambda: len(nodes()) == 4)
    assert {"node-0", "node-1"} == set(nodes())
    assert "node/node-2 uncordoned\n" == cluster.kubectl("uncordon", "node-2")
    cluster.kubectl("delete", "deployment", "web")


def test_tokens_of_service_accounts(cluster: Cluster) -> None:
    """`kubectl create token` prints a token with which the service account is logged in."""
    cluster.kubectl("create", "serviceaccount", "robot")
    token = cluster.kubectl("create", "token", "robot", "--duration", "10m").strip()
    who = cluster.kubectl("auth", "whoami", "--token", token, "-o", "json")
    assert (
        "system:serviceaccount:default:robot" == json.loads(who)["status"]["userInfo"]["username"]
    )


def test_autoscalers_and_approvals_in_protobuf(cluster: Cluster) -> None:
    """This is how kubectl sends both."""
    cluster.kubectl("create", "deployment", "scaled", "--image=web", "--replicas=0")
    said = cluster.kubectl("autoscale", "deployment", "scaled", "--min=2", "--max=5")
    assert "horizontalpodautoscaler.autoscaling/scaled autoscaled\n" == said
    spec = cluster.object("hpa", "scaled")["spec"]
    assert (2, 5) == (spec["minReplicas"], spec["maxReplicas"])
    request = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "jane"},
        "spec": {"request": "", "signerName": "example.com/s", "usages": ["client auth"]},
    }
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(request))
    cluster.kubectl("certificate", "approve", "jane")
    [condition] = cluster.object("csr", "jane")["status"]["conditions"]
    assert ("Approved", "True") == (condition["type"], condition["status"])


_CHART: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: backups, kind: Backup, shortNames: [bk]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Schedule, type: string, jsonPath: .spec.schedule}]
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {schedule: {type: string}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
  - host: example.com
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
"""
_BACKUP: Final = """
apiVersion: example.com/v1
kind: Backup
metadata: {name: nightly}
spec: {schedule: "@daily", keep: {days: 7}}
"""


def test_a_chart_with_custom_resources_is_applied(cluster: Cluster) -> None:
    """Definitions, their objects and kinds without controllers are stored unchanged."""
    for words in (("apply", "-f", "-"), ("apply", "--server-side", "-f", "-")):
        cluster.kubectl(*words, stdin=_CHART)
        cluster.kubectl("wait", "--for", "condition=Established", "crd/backups.example.com")
        cluster.kubectl(*words, stdin=_BACKUP)
    backup = cluster.object("bk", "nightly")
    assert {"schedule": "@daily", "keep": {"days": 7}} == backup["spec"]
    ingress = cluster.object("ingress", "web")
    assert "example.com" == ingress["spec"]["rules"][0]["host"]
    assert "@daily" in cluster.kubectl("get", "backups")
    cluster.kubectl("delete", "crd", "backups.example.com")
    assert "NotFound" in cluster.kubectl("get", "backups", fails=True)
    cluster.kubectl("delete", "ingress,hpa", "web")


def test_stored_roles_are_enforced(cluster: Cluster) -> None:
    """For other users."""
    as_alice = ("--as", "alice")
    assert "Forbidden" in cluster.kubectl("get", "pods", *as_alice, fails=True)
    cluster.kubectl("create", "rolebinding", "r", "--clusterrole", "view", "--user", "alice")
    cluster.kubectl("get", "pods", *as_alice)
    assert "yes\n" == cluster.kubectl("auth", "can-i", "list", "pods", *as_alice)
    cluster.kubectl("auth", "can-i", "delete", "pods", *as_alice, fails=True)
    assert "replicasets.apps/scale" in cluster.kubectl("auth", "can-i", "--list", *as_alice)
    groups = ("--as", "bob", "--as-group", "a", "--as-group", "b")
    cluster.kubectl("create", "rolebinding", "g", "--clusterrole", "view", "--group", "a")
    cluster.kubectl("get", "pods", *groups)
    cluster.kubectl("delete", "rolebinding", "r", "g")
    assert "Forbidden" in cluster.kubectl("get", "pods", *groups, fails=True)


def test_explain_finds_every_field(cluster: Cluster) -> None:
    """With its type and description."""
    assert "restartPolicy" in cluster.kubectl("explain", "pod.spec")
    text = cluster.kubectl("explain", "deployment.spec.template.spec.tolerations")
    assert "tolerationSeconds" in text
    assert "<integer>" in text
