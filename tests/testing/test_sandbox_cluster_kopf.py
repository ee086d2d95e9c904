"""SandboxCluster with kopf as in production: login from the kubeconfig, finalizers, status."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import kopf
import pytest
from kubernetes.client import CustomObjectsApi
from kubernetes.client.exceptions import ApiException

from kubesched.testing import SandboxCluster

PLACE = ("example.com", "v1", "default", "things")
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Thing", "plural": "things"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
THING = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}


@contextmanager
def operating(registry: kopf.OperatorRegistry) -> Iterator[None]:
    """Run an operator in a thread."""
    stop, ready = threading.Event(), threading.Event()

    async def main() -> None:
        await kopf.operator(
            registry=registry, namespaces=["default"], stop_flag=stop, ready_flag=ready
        )

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield
    finally:
        stop.set()
        thread.join()
        with warnings.catch_warnings(action="ignore", category=ResourceWarning):
            # kopf does not wait until the server has closed its side of TLS connections.
            gc.collect()


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
def test_an_operator_finalizes_what_it_has_seen(
    kubesched_cluster_factory: Callable[..., SandboxCluster],
    monkeypatch: pytest.MonkeyPatch,
    tls: bool,
) -> None:
    """An object has the operator's status, and is deleted only after its handler has run."""
    cluster = kubesched_cluster_factory(nodes=0, scheduler=False, tls=tls)
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    cluster.create(DEFINITION)
    things: Any = CustomObjectsApi(cluster.client())
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)
    deleted = []

    @kopf.on.create("example.com", "v1", "things", id="created", registry=registry)
    def created(**_: Any) -> str:
        return "seen"

    @kopf.on.delete("example.com", "v1", "things", registry=registry)
    def removed(name: str, **_: Any) -> None:
        deleted.append(name)

    def thing() -> Any:
        try:
            return things.get_namespaced_custom_object(*PLACE, "t")
        except ApiException:
            return None

    with operating(registry):
        cluster.create(THING)
        cluster.wait_for(lambda: thing().get("status", {}).get("created") == "seen")
        assert 1 == len(thing()["metadata"]["finalizers"])
        things.delete_namespaced_custom_object(*PLACE, "t")
        cluster.wait_for(lambda: thing() is None)
    assert ["t"] == deleted
