"""A deployment survives the drain of a node; with Kubernetes' official client."""

from collections.abc import Callable
from http import HTTPStatus

from kubernetes import watch
from kubernetes.client import AppsV1Api, CoreV1Api, PolicyV1Api, V1Eviction, V1ObjectMeta, V1Pod
from kubernetes.client.exceptions import ApiException

from kubesched.testing import SandboxCluster

LABELS = {"app": "web"}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 4,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {
                "containers": [
                    {"name": "web", "image": "web", "resources": {"requests": {"cpu": "1"}}}
                ]
            },
        },
    },
}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"minAvailable": 3, "selector": {"matchLabels": LABELS}},
}


def running(core: CoreV1Api) -> list[V1Pod]:
    """Return the pods of the deployment that run and stay."""
    pods = core.list_namespaced_pod("default", label_selector="app=web").items
    return [
        pod for pod in pods if pod.status.phase == "Running" and not pod.metadata.deletion_timestamp
    ]


def evict(core: CoreV1Api, pod: V1Pod) -> bool:
    """Ask for an eviction; return whether the disruption budget allows it now."""
    name = pod.metadata.name
    try:
        core.create_namespaced_pod_eviction(
            name, "default", V1Eviction(metadata=V1ObjectMeta(name=name))
        )
    except ApiException as error:
        if error.status != HTTPStatus.TOO_MANY_REQUESTS:
            raise
        return False
    return True


def test_a_drain_moves_pods_one_by_one(kubesched_cluster: SandboxCluster) -> None:
    """Pods leave the node as the budget allows, and run elsewhere."""
    client = kubesched_cluster.client()
    apps, core, policy = AppsV1Api(client), CoreV1Api(client), PolicyV1Api(client)
    apps.create_namespaced_deployment("default", DEPLOYMENT)
    policy.create_namespaced_pod_disruption_budget("default", BUDGET)
    kubesched_cluster.wait_for(lambda: len(running(core)) == 4)
    node = running(core)[0].spec.node_name

    core.patch_node(node, {"spec": {"unschedulable": True}})
    leaving = [pod for pod in running(core) if pod.spec.node_name == node]
    for pod in leaving:
        kubesched_cluster.wait_for(lambda pod=pod: evict(core, pod))
    kubesched_cluster.wait_for(lambda: len(running(core)) == 4)

    assert node not in {pod.spec.node_name for pod in running(core)}


def test_a_watch_shows_the_way_of_a_pod(kubesched_cluster: SandboxCluster) -> None:
    """A pod is pending, then on a node, then running."""
    core = CoreV1Api(kubesched_cluster.client())
    before = core.list_namespaced_pod("default").metadata.resource_version
    kubesched_cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
    )
    seen = []
    for event in watch.Watch().stream(
        core.list_namespaced_pod, "default", resource_version=before, timeout_seconds=10
    ):
        pod = event["object"]
        seen.append((pod.status.phase, pod.spec.node_name is not None))
        if pod.status.phase == "Running":
            break
    assert list(dict.fromkeys(seen)) == [("Pending", False), ("Pending", True), ("Running", True)]


def test_pods_wait_for_nodes_that_fit(
    kubesched_cluster_factory: Callable[..., SandboxCluster],
) -> None:
    """A cluster with nodes of one's own: the pod goes where its selector allows."""
    names = {"small": "a", "large": "b"}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"pool": pool}},
        }
        for name, pool in names.items()
    ]
    cluster = kubesched_cluster_factory(nodes=nodes)
    core = CoreV1Api(cluster.client())
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"pool": "b"}},
    }
    core.create_namespaced_pod("default", pod)
    cluster.wait_for(lambda: core.read_namespaced_pod("p", "default").status.phase == "Running")
    assert core.read_namespaced_pod("p", "default").spec.node_name == "large"
