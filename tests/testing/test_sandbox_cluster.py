"""SandboxCluster: start and stop, access, and what runs in it."""

from __future__ import annotations

import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from kubernetes import client as official
from kubernetes import config, watch
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import ProtocolError

from kubesched import UserError
from kubesched.api.errors import ApiError
from kubesched.framework.per_row import NodeRow, PerRowFilter
from kubesched.framework.plugin import QueueSortPlugin
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing import SandboxCluster
from kubesched.testing.builders import make_node

Factory = Callable[..., SandboxCluster]

BARE: dict[str, Any] = {"nodes": 0, "scheduler": False, "controllers": False}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """A pod with one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def read(cluster: SandboxCluster, name: str) -> Any:
    """The pod as the official client reads it; its fields may all be missing."""
    return official.CoreV1Api(cluster.client()).read_namespaced_pod(name, "default")


def nodes_of(cluster: SandboxCluster) -> list[str]:
    """The names of the nodes."""
    listed: Any = official.CoreV1Api(cluster.client()).list_node()
    return [node.metadata.name for node in listed.items]


def open_files() -> set[str]:
    """The targets of this process's file descriptors, sockets included."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.add(str(entry.readlink()))
        except FileNotFoundError:
            continue
    return found


# Start and stop.


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
def test_stopping_leaves_nothing(tls: bool) -> None:
    """No thread, socket or file is left, even with a watch under way and a pending pod."""
    with SandboxCluster(**BARE):
        pass  # the event loop's library opens a pipe with the first loop, for all that follow
    threads, files = threading.enumerate(), open_files()
    seen = threading.Event()
    ended = []

    def watch_nodes(client: official.ApiClient) -> None:
        try:
            for _ in watch.Watch().stream(official.CoreV1Api(client).list_node):
                seen.set()
        except ProtocolError as error:
            ended.append(error)

    with SandboxCluster(tls=tls) as cluster:
        cluster.create(pod("runs"))
        cluster.create(pod("waits", nodeSelector={"no": "node"}))
        cluster.wait_for(lambda: read(cluster, "runs").status.phase == "Running")
        watching = threading.Thread(target=watch_nodes, args=(cluster.client(),))
        watching.start()
        assert seen.wait(10)
        folder = cluster.kubeconfig.parent
    watching.join(10)
    assert 1 == len(ended)
    assert threads == threading.enumerate()
    assert set() == open_files() - files
    assert not folder.exists()


def test_it_can_start_again() -> None:
    """Each run is a new cluster; stopping twice is fine."""
    cluster = SandboxCluster(**BARE)
    cluster.start()
    with pytest.raises(RuntimeError, match="running already"):
        cluster.start()
    first = cluster.token
    cluster.stop()
    cluster.stop()
    with pytest.raises(RuntimeError, match="not running; use it in a `with`, or call start"):
        _ = cluster.url
    with cluster:
        assert first != cluster.token


@pytest.mark.parametrize("metadata", [{"name": "Not a name"}, {}, None])
def test_a_start_that_fails_leaves_nothing(
    metadata: dict[str, str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that the server rejects, or that has no name, raises UserError."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    threads = threading.enumerate()
    bad = SandboxCluster(nodes=[{} if metadata is None else {"metadata": metadata}])
    with pytest.raises(UserError, match="refuses the node"):
        bad.start()
    assert (threads, []) == (threading.enumerate(), list(tmp_path.iterdir()))


def test_clusters_are_separate(kubesched_cluster_factory: Factory) -> None:
    """Two clusters can run at once, each with its own objects."""
    one, other = (kubesched_cluster_factory(**BARE) for _ in range(2))
    one.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
    with pytest.raises(ApiException, match="not found"):
        official.CoreV1Api(other.client()).read_namespace("mine")


def test_importing_the_fixtures_imports_no_server() -> None:
    """Loading the fixtures without using them does not slow a test suite down."""
    code = (
        "import sys, kubesched.testing.pytest_plugin\n"
        "heavy = {'numpy', 'aiohttp', 'msgspec', 'kubesched.testing.sandbox_cluster'}\n"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)  # noqa: S603 - our own code
    assert 0 == done.returncode


# Access.


def test_there_is_no_access_without_the_token(kubesched_cluster_factory: Factory) -> None:
    """A request with a wrong token gets 401; only the user can read the kubeconfig."""
    cluster = kubesched_cluster_factory(**BARE)
    path = f"{cluster.url}/api/v1/nodes"
    headers = {"Authorization": "Bearer guessed"}
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(path, headers=headers))  # noqa: S310 - our own server
    refused.value.close()
    assert HTTPStatus.UNAUTHORIZED == refused.value.code
    assert 0o600 == cluster.kubeconfig.stat().st_mode & 0o777
    assert 0o700 == cluster.kubeconfig.parent.stat().st_mode & 0o777


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
def test_kubeconfig(kubesched_cluster_factory: Factory, tls: bool) -> None:
    """The file and the dict are equal, and clients connect with it."""
    cluster = kubesched_cluster_factory(**BARE, tls=tls)
    written = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
    assert cluster.kubeconfig_dict == written
    with config.new_client_from_config(str(cluster.kubeconfig)) as client:
        assert [] == official.CoreV1Api(client).list_node().items
        client.rest_client.pool_manager.clear()


@pytest.mark.slow
def test_tls_has_an_authority_of_its_own(kubesched_cluster_factory: Factory) -> None:
    """A client that trusts the system's authorities does not connect."""
    cluster = kubesched_cluster_factory(**BARE, tls=True)
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        urlopen(cluster.url, context=ssl.create_default_context())  # noqa: S310 - our own server


def test_client_without_the_kubernetes_package(
    kubesched_cluster_factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the package to install."""
    cluster = kubesched_cluster_factory(**BARE)
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    with pytest.raises(ImportError, match="pip install kubernetes"):
        cluster.client()


# What runs.


@pytest.mark.slow
def test_pods_run_on_nodes_of_its_own(kubesched_cluster_factory: Factory) -> None:
    """Nodes are those of builders or of JSON."""
    nodes = [make_node("a", labels={"disk": "ssd"}), {"metadata": {"name": "b"}}]
    cluster = kubesched_cluster_factory(nodes=nodes)
    cluster.create(pod("p", nodeSelector={"disk": "ssd"}))
    cluster.wait_for(lambda: read(cluster, "p").status.phase == "Running")
    assert "a" == read(cluster, "p").spec.node_name
    assert ["a", "b"] == nodes_of(cluster)


def test_without_a_scheduler_a_test_binds_pods(kubesched_cluster_factory: Factory) -> None:
    """A pod that the test binds runs."""
    cluster = kubesched_cluster_factory(nodes=1, scheduler=False)
    cluster.create(pod("p", nodeName="node-0"))
    cluster.wait_for(lambda: read(cluster, "p").status.phase == "Running")


def test_without_controllers_a_workload_is_an_object_only(
    kubesched_cluster_factory: Factory,
) -> None:
    """Nothing creates its pods, so that a test can act as the controller."""
    cluster = kubesched_cluster_factory(nodes=1, scheduler=False, controllers=False)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("")["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    cluster.create(
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"}, "spec": spec}
    )
    cluster.create(pod("p", nodeName="node-0"))
    cluster.wait_for(lambda: read(cluster, "p").status.phase == "Running")
    assert 1 == len(official.CoreV1Api(cluster.client()).list_namespaced_pod("default").items)


def test_without_controllers_a_definition_waits_for_finalizers(
    kubesched_cluster_factory: Factory,
) -> None:
    """As with an API server alone, it is gone after its last object."""
    cluster = kubesched_cluster_factory(nodes=0, scheduler=False, controllers=False)
    names = {"plural": "foos", "kind": "Foo"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    cluster.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "foos.x.io"},
            "spec": {"group": "x.io", "scope": "Cluster", "names": names, "versions": [version]},
        }
    )
    metadata = {"name": "f", "finalizers": ["x.io/held"]}
    cluster.create({"apiVersion": "x.io/v1", "kind": "Foo", "metadata": metadata})
    definitions: Any = official.ApiextensionsV1Api(cluster.client())
    definitions.delete_custom_resource_definition("foos.x.io")
    objects: Any = official.CustomObjectsApi(cluster.client())
    released: dict[str, Any] = {"metadata": {"finalizers": []}}
    objects.patch_cluster_custom_object("x.io", "v1", "foos", "f", released)
    cluster.wait_for(lambda: not definitions.list_custom_resource_definition().items)


class OnlyLast(PerRowFilter[None]):
    """Reject all nodes but node-2."""

    name = "OnlyLast"

    def filter_node(self, state: None, pod: PodInfo, node: NodeRow) -> Status:
        """Look at one node."""
        return SUCCESS if node.name == "node-2" else unresolvable("not the last")


class Broken(PerRowFilter[None]):
    """Raises in its constructor."""

    name = "Broken"

    def __init__(self, args: object, handle: object) -> None:
        raise ValueError("no such thing")

    def filter_node(self, state: None, pod: PodInfo, node: NodeRow) -> Status:
        """Look at one node."""
        return SUCCESS


class Unsortable(QueueSortPlugin):
    """Raises when the queue computes a key."""

    name = "Unsortable"

    def __init__(self, args: object, handle: object) -> None:
        """It needs nothing."""

    def sort_key(self, queued: QueuedPodInfo) -> tuple[int | float, ...]:
        """Fail."""
        raise ValueError("no key")


@pytest.mark.slow
def test_waiting_ends_when_the_scheduler_has_failed(kubesched_cluster_factory: Factory) -> None:
    """A QueueSort plugin that raises ends the scheduler; the exception is the error's cause."""
    sorts = {"enabled": [{"name": "Unsortable"}], "disabled": [{"name": "*"}]}
    config = {"profiles": [{"plugins": {"queueSort": sorts}}]}
    cluster = kubesched_cluster_factory(plugins=[Unsortable], config=config)
    cluster.create(pod("p"))
    with pytest.raises(RuntimeError, match="the scheduler failed") as failed:
        cluster.wait_for(lambda: False)
    cause = failed.value.__cause__
    assert isinstance(cause, ExceptionGroup)
    assert cause.subgroup(lambda error: str(error).endswith("ValueError: no key")) is not None


@pytest.mark.slow
def test_plugins_and_configuration(kubesched_cluster_factory: Factory) -> None:
    """A plugin is given as a class, a configuration as a dict."""
    profiles = [{"schedulerName": "mine"}]
    cluster = kubesched_cluster_factory(plugins=[OnlyLast], config={"profiles": profiles})
    cluster.create(pod("p", schedulerName="mine"))
    cluster.wait_for(lambda: read(cluster, "p").status.phase == "Running")
    assert "node-2" == read(cluster, "p").spec.node_name


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"config": "missing.yaml"}, "missing.yaml", id="file"),
        pytest.param({"config": {"profiles": 1}}, "profiles", id="field"),
        pytest.param(
            {"plugins": [str]}, "not a class that inherits an extension point", id="class"
        ),
        pytest.param({"plugins": [Broken]}, "no such thing", id="constructor"),
        pytest.param({"feature_gates": "Nonsense=true"}, "Nonsense", id="gate"),
    ],
)
def test_invalid_options_of_the_scheduler(options: dict[str, Any], words: str) -> None:
    """The constructor raises, before anything is started."""
    with pytest.raises(UserError, match=words):
        SandboxCluster(**options)


@pytest.mark.slow
def test_feature_gates_enable_their_kinds(kubesched_cluster_factory: Factory) -> None:
    """With the gates of pod groups, a group can be created."""
    gates = "GenericWorkload=true,GangScheduling=true"
    cluster = kubesched_cluster_factory(feature_gates=gates)
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
    }
    assert "default" == cluster.create(group)["metadata"]["namespace"]


# Creating and waiting.


@pytest.mark.parametrize(
    ("manifest", "error", "words"),
    [
        pytest.param({"apiVersion": "x.y/v1", "kind": "K"}, UserError, "K of x.y/v1", id="kind"),
        pytest.param({}, UserError, "an object without kind of no apiVersion", id="empty"),
        pytest.param(pod("Not a name"), ApiError, "Invalid value", id="name"),
        pytest.param(
            {**pod("p"), "metadata": {"name": "p", "namespace": "nowhere"}},
            ApiError,
            'namespaces "nowhere" not found',
            id="namespace",
        ),
    ],
)
def test_rejected_objects(
    kubesched_cluster_factory: Factory,
    manifest: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    """The message is the server's, or names the kind."""
    with pytest.raises(error, match=words):
        kubesched_cluster_factory(**BARE).create(manifest)


def test_waiting_returns_the_first_value_that_is_true(kubesched_cluster_factory: Factory) -> None:
    """`wait_for` calls the condition until it returns a true value."""
    values = iter((0, None, "", "found"))
    assert "found" == kubesched_cluster_factory(**BARE).wait_for(lambda: next(values))


@pytest.mark.slow
def test_a_timeout_lists_pending_pods(kubesched_cluster: SandboxCluster) -> None:
    """The error has the scheduler's message for each of the first pods."""
    cluster = kubesched_cluster
    for number in range(7):
        cluster.create(pod(f"p{number}", nodeSelector={"no": "node"}))
    cluster.wait_for(lambda: read(cluster, "p6").status.conditions)
    with pytest.raises(TimeoutError) as late:
        cluster.wait_for(lambda: False, timeout=0)
    first, pending, *_, last = str(late.value).splitlines()
    assert "the condition does not hold after 0 s" == first
    assert "pod default/p0 is pending: 0/3 nodes are available: 3 node(s) didn't" in pending
    assert "  and 2 other pods that do not run" == last


@pytest.mark.slow
def test_a_write_on_an_old_version_is_refused(kubesched_cluster_factory: Factory) -> None:
    """Leader elections depend on it: the second update of a lease gets 409."""
    cluster = kubesched_cluster_factory(**BARE)
    api: Any = official.CoordinationV1Api(cluster.client())
    cluster.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "l"},
            "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15},
        }
    )
    mine, others = (api.read_namespaced_lease("l", "default") for _ in range(2))
    others.spec.holder_identity = "b"
    api.replace_namespaced_lease("l", "default", others)
    mine.spec.lease_duration_seconds = 20
    with pytest.raises(ApiException) as refused:
        api.replace_namespaced_lease("l", "default", mine)
    assert HTTPStatus.CONFLICT == refused.value.status
    assert "b" == api.read_namespaced_lease("l", "default").spec.holder_identity
