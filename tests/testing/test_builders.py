from __future__ import annotations

from kubesched.api.core import Namespace, Service
from kubesched.api.meta import ObjectMeta
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_snapshot, make_table


def test_pod_defaults() -> None:
    """A pod without keywords has one container and a uid."""
    pod = make_pod("a", namespace="ns")
    assert ("ns", "a", "ns/a") == (
        pod.metadata.namespace,
        pod.metadata.name,
        pod.metadata.uid,
    )
    assert 1 == len(pod.spec.containers)
    assert pod.spec.node_selector is None
    assert pod.spec.affinity is None
    assert pod.spec.priority is None


def test_json_wins_over_keywords() -> None:
    """Fields given as JSON override those of keywords."""
    pod = make_pod(priority=1, spec={"priority": 2, "hostNetwork": True})
    assert (2, True) == (pod.spec.priority, pod.spec.host_network)
    assert "x" == make_node("a", metadata={"name": "x"}).metadata.name


def test_pods_are_on_the_nodes_of_their_specification() -> None:
    """Pods without a node, or on an unknown one, are not in the table."""
    pods = [make_pod("a", node_name="n"), make_pod("b"), make_pod("c", node_name="unknown")]
    table = make_table([make_node("m"), make_node("n")], pods)
    assert [[], ["default/a"]] == [list(on_row) for on_row in table.pods]


def test_snapshot() -> None:
    """A cluster has its objects, and its pending pods may be nominated."""
    service = Service(metadata=ObjectMeta(name="s", namespace="default"))
    cluster = make_snapshot(
        [make_node("n")],
        [make_pod("a", node_name="n"), make_pod("b", nominated_node_name="n"), make_pod("c")],
        [service],
    )
    assert service is cluster.objects.get(Service, "s", "default")
    assert not cluster.objects.any(Namespace)
    assert ["n"] == list(cluster.nominated.by_node)
    assert ["b"] == [pod.name for pod in cluster.nominated.on_node("n")]
    assert [] == list(cluster.nominated.on_node("m"))
    assert not make_snapshot().nominated


def test_pod_info() -> None:
    """`make_pod_info` has the keywords of `make_pod`."""
    assert 7 == make_pod_info(priority=7).priority
