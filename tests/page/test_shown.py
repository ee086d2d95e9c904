"""What a live page shows: views that follow a cluster, and a scenario while it is simulated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubesched.answers.cluster import Cluster
from kubesched.inputs.errors import UserError
from kubesched.inputs.live_cluster import FollowedCluster
from kubesched.inputs.loading import load_scheduler
from kubesched.inputs.scenario_input import read_scenario
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from kubesched.page.shown import SentDocuments, ShownCluster, ShownPlay
from kubesched.testing import SandboxCluster
from kubesched.testing.builders import make_node
from tests.cli.cluster import node
from tests.cli.live import write_kubeconfig
from tests.inputs.test_live_cluster_followed import following
from tests.loops import in_real_time
from tests.testing.test_sandbox_cluster import pod

SCENARIO = """
version: 1
name: short
duration: 1h
nodes: [{name: node, count: 2, allocatable: {cpu: 4}}]
workloads: [{name: w, pods: {every: 10m, runTime: {fixed: 5m}}, requests: {cpu: 1}}]
"""


def documents_of(sent: SentDocuments) -> list[dict[str, Any]]:
    """The documents that were sent."""
    found: list[dict[str, Any]] = json.loads(sent.body)["documents"]
    return found


@asynccontextmanager
async def shown_live(kubeconfig: Path) -> AsyncIterator[ShownCluster]:
    """Show a live cluster."""
    options = SchedulerOptions()
    async with following(kubeconfig) as followed:
        yield ShownCluster(followed, "live", load_scheduler(options), options)


@pytest.mark.slow
@in_real_time
async def test_a_bound_pod_arrives() -> None:
    """The next request gets another ETag, and the pod on its node."""
    with SandboxCluster(nodes=1) as cluster:
        async with shown_live(cluster.kubeconfig) as shown:
            first = await shown.documents()
            assert [[]] == documents_of(first)[0]["nodes"]["pods"]
            await asyncio.to_thread(cluster.create, pod("web"))
            async with asyncio.timeout(10):
                sent = first
                while documents_of(sent)[0]["nodes"]["pods"] == [[]]:
                    await asyncio.sleep(0)
                    sent = await shown.documents()
            (view,) = documents_of(sent)
            assert first.tag != sent.tag
            assert ([[0, 1]], 0) == (view["nodes"]["pods"], view["pendingPods"])
            report = await shown.ask(lambda found: found.why("default/web"))
            assert "default/web" in report.to_dict()["sentence"]


@in_real_time
async def test_a_view_that_takes_long_is_not_computed_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that changes all the time leaves the machine time for other things."""
    monkeypatch.setattr("kubesched.page.shown._PAUSE", 1e6)
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:9")
    options = SchedulerOptions()
    followed = FollowedCluster(ClusterSource(kubeconfig=kubeconfig))
    shown = ShownCluster(followed, "busy", load_scheduler(options), options)
    first = await shown.documents()
    followed.added(make_node("new"))
    assert first is await shown.documents()
    # A question is about the newest cluster, which the next view shows.
    await shown.ask(lambda cluster: cluster.top())
    assert first is not await shown.documents()
    await followed.aclose()


@in_real_time
async def test_a_saved_cluster_stays_as_it_is() -> None:
    """Its view is computed once, also for simultaneous requests."""
    options = SchedulerOptions()
    cluster = Cluster.from_objects([node("alpha", "4")])
    shown = ShownCluster(cluster, "saved", load_scheduler(options), options)
    first, second = await asyncio.gather(shown.documents(), shown.documents())
    assert first is second
    assert ["ClusterView"] == [one["kind"] for one in documents_of(first)]
    assert "saved" == json.loads(first.body)["title"]


@in_real_time
async def test_a_scenario_is_shown_while_it_runs_and_afterwards(tmp_path: Path) -> None:
    """The record grows during the simulation; then it is complete, with the report."""
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    shown = ShownPlay(read_scenario(file))
    early = asyncio.create_task(shown.documents())
    await asyncio.sleep(0)
    report = await shown.run()
    (playback,) = documents_of(await early)
    assert ("Playback", True) == (playback["kind"], playback["endSeconds"] <= 3600)
    final = documents_of(await shown.documents())
    assert ["Playback", "TimelineReport"] == [one["kind"] for one in final]
    assert (3600, report.totals.arrived) == (
        final[0]["endSeconds"],
        len(final[0]["pods"]["names"]),
    )
    assert await shown.documents() is await shown.documents()
    with pytest.raises(UserError, match="there is no cluster to ask"):
        await shown.ask(lambda cluster: cluster.top())


@in_real_time
async def test_a_scenario_that_is_stopped_ends(tmp_path: Path) -> None:
    """The report is partial."""
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    shown = ShownPlay(read_scenario(file))
    shown.stop()
    assert (await shown.run()).partial
