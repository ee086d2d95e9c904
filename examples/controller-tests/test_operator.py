"""The operator, run in a thread of the test."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import kopf
from kubernetes.client import ApiClient, AppsV1Api, CustomObjectsApi
from kubernetes.client.exceptions import ApiException
from operator_of_greetings import GREETINGS, handlers

from kubesched.testing import SandboxCluster

GREETING = {
    "apiVersion": "example.com/v1",
    "kind": "Greeting",
    "metadata": {"name": "hello"},
    "spec": {"words": ["hello", "world"]},
}


@contextmanager
def operator(cluster: SandboxCluster) -> Iterator[None]:
    """Run the operator on a cluster."""
    registry = handlers(cluster.client())

    @kopf.on.login(registry=registry)
    def login(**_: object) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=cluster.url, token=cluster.token)

    stop, ready = threading.Event(), threading.Event()
    work = kopf.operator(
        registry=registry, clusterwide=True, standalone=True, stop_flag=stop, ready_flag=ready
    )
    thread = threading.Thread(target=asyncio.run, args=(work,))
    thread.start()
    try:
        assert ready.wait(10)
        yield
    finally:
        stop.set()
        thread.join()


def replicas_ready(client: ApiClient) -> int | None:
    """Return the ready replicas of the deployment; None if there is none."""
    try:
        status = AppsV1Api(client).read_namespaced_deployment("hello", "default").status
    except ApiException:
        return None
    return status.ready_replicas


def test_a_greeting_becomes_a_deployment(kubesched_cluster: SandboxCluster) -> None:
    """Its deployment changes with its words, and is deleted with it."""
    kubesched_cluster.create(GREETINGS)
    client = kubesched_cluster.client()
    greetings = CustomObjectsApi(client)
    place = ("example.com", "v1", "default", "greetings")
    with operator(kubesched_cluster):
        greetings.create_namespaced_custom_object(*place, GREETING)
        kubesched_cluster.wait_for(lambda: replicas_ready(client) == 2)
        greetings.patch_namespaced_custom_object(*place, "hello", {"spec": {"words": ["hi"]}})
        kubesched_cluster.wait_for(lambda: replicas_ready(client) == 1)
        greetings.delete_namespaced_custom_object(*place, "hello")
        kubesched_cluster.wait_for(lambda: replicas_ready(client) is None)
