"""Every namespace has a service account and the certificate authority of the API server."""

from __future__ import annotations

import asyncio

from kubesched.cluster.store import Key
from tests.cluster.sandbox_world import World
from tests.cluster.test_controllers import controlled


@controlled
async def test_a_namespace_gets_its_objects(world: World) -> None:
    """Those that exist, new ones, and again if somebody deletes them."""
    world.client.create("namespaces", {"metadata": {"name": "new"}})
    await asyncio.sleep(1)
    for kind, name in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")):
        for namespace in ("default", "new"):
            assert world.client.find(kind, namespace, name) is not None
        world.client.delete(Key(kind, "new", name))
        await asyncio.sleep(1)
        assert world.client.find(kind, "new", name) is not None


@controlled
async def test_the_certificate_is_restored(world: World) -> None:
    """As after a restart of a stored cluster with a new one."""
    await asyncio.sleep(1)
    key = Key("configmaps", "default", "kube-root-ca.crt")
    found = world.client.find(*key)
    assert found is not None
    world.client.write(key, {**found, "data": {"ca.crt": "old"}})
    await asyncio.sleep(1)
    found = world.client.find(*key)
    assert found is not None
    assert {"ca.crt": ""} == found["data"]


@controlled
async def test_a_namespace_goes_with_its_objects(world: World) -> None:
    """Nothing is created in a namespace that terminates."""
    world.client.create("namespaces", {"metadata": {"name": "new"}})
    await asyncio.sleep(1)
    world.client.delete(Key("namespaces", "", "new"))
    await asyncio.sleep(10)
    assert world.client.find("namespaces", "", "new") is None
    assert world.client.find("serviceaccounts", "new", "default") is None
