"""A live cluster that is followed: its objects at any time, and errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.scheduling import PriorityClass
from kubesched.apiserver.request import User
from kubesched.inputs.errors import UserError
from kubesched.inputs.live_cluster import FollowedCluster
from kubesched.inputs.sources import ClusterSource
from kubesched.testing import SandboxCluster
from kubesched.testing.builders import make_node
from tests.cli.cluster import node
from tests.cli.live import live, write_kubeconfig
from tests.loops import in_real_time
from tests.testing.test_sandbox_cluster import pod

pytestmark = pytest.mark.slow


@asynccontextmanager
async def following(kubeconfig: Path) -> AsyncIterator[FollowedCluster]:
    """Follow a cluster whose objects are known."""
    followed = FollowedCluster(ClusterSource(kubeconfig=kubeconfig))
    task = asyncio.create_task(followed.run())
    try:
        await followed.wait_for_sync()
        yield followed
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def changed(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, by yielding to the event loop."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  # informers have no event for every change
            await asyncio.sleep(0)


def _pods(followed: FollowedCluster) -> dict[str, str]:
    items = followed.live().objects
    return {item.metadata.name: item.spec.node_name for item in items if isinstance(item, Pod)}


@in_real_time
async def test_changes_are_followed() -> None:
    """A pod that is created, bound and deleted is seen in each state."""
    with SandboxCluster(nodes=1, scheduler=False, controllers=False) as cluster:
        core: Any = client.CoreV1Api(cluster.client())
        async with following(cluster.kubeconfig) as followed:
            before = followed.version
            await asyncio.to_thread(cluster.create, pod("web"))
            await changed(lambda: _pods(followed) == {"web": ""})
            assert before < followed.version
            binding = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "node-0"}}
            await asyncio.to_thread(
                core.create_namespaced_binding, "default", binding, _preload_content=False
            )
            await changed(lambda: _pods(followed) == {"web": "node-0"})
            await asyncio.to_thread(
                core.delete_namespaced_pod, "web", "default", grace_period_seconds=0
            )
            await changed(lambda: not _pods(followed))


@in_real_time
async def test_changes_of_fields_that_are_not_read(tmp_path: Path) -> None:
    """They do not count as a change of the cluster."""
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:9")
    followed = FollowedCluster(ClusterSource(kubeconfig=kubeconfig))
    old, new = make_node("n"), make_node("n", labels={"disk": "nvme"})
    versions = [
        replace(each, metadata=replace(each.metadata, resource_version=version))
        for each, version in ((old, "1"), (old, "2"), (new, "3"))
    ]
    followed.updated(versions[0], versions[1])
    assert 0 == followed.version
    followed.updated(versions[1], versions[2])
    assert 1 == followed.version
    await followed.aclose()


@in_real_time
async def test_all_kinds_are_known() -> None:
    """A kind without objects is known to have none."""
    with SandboxCluster(nodes=1, scheduler=False, controllers=False) as cluster:
        async with following(cluster.kubeconfig) as followed:
            found = followed.live()
    assert PriorityClass in found.complete
    assert ([], "default") == (found.warnings, found.namespace)
    assert "context kubesched-sandbox" == found.source


@in_real_time
async def test_missing_permissions_are_named(tmp_path: Path) -> None:
    """With the words of commands that read once."""
    stranger = User("stranger", ("system:authenticated",))
    with live(tmp_path, [node("alpha", "4")], user=stranger) as kubeconfig:
        words = r"you may not list (nodes, pods|pods, nodes) in all namespaces;.*kubesched-reader"
        with pytest.raises(UserError, match=words):
            async with following(kubeconfig):
                pass


@in_real_time
async def test_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    """The error has the context, and comes within a few seconds."""
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"context dev .*127.0.0.1:9.*check the context's cluster"):
        async with following(kubeconfig):
            pass


@in_real_time
async def test_an_address_without_a_cluster_is_named(tmp_path: Path) -> None:
    """It is not followed as a cluster without pods."""
    with live(tmp_path, [node("alpha", "4")]) as kubeconfig:
        url = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        write_kubeconfig(kubeconfig, f"{url}/nowhere")
        with pytest.raises(UserError, match=r"/nowhere.: the server is no API server"):
            async with following(kubeconfig):
                pass


@in_real_time
async def test_a_server_that_stops_is_reported(tmp_path: Path) -> None:
    """The objects stay; `problem` says that they are no longer followed."""
    with ExitStack() as running:
        kubeconfig = running.enter_context(live(tmp_path, [node("alpha", "4")]))
        async with following(kubeconfig) as followed:
            assert "" == followed.problem
            await asyncio.to_thread(running.close)
            await changed(lambda: bool(followed.problem))
            assert "context dev" in followed.problem
            assert ["alpha"] == [
                item.metadata.name for item in followed.live().objects if item.kind == "Node"
            ]
