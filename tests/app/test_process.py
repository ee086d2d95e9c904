"""A whole process against the embedded API server, over loopback."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from kubesched.apiserver.request import ApiRequest, User
from kubesched.apiserver.server import ADMIN, ApiServer
from kubesched.app.election import Election
from kubesched.app.environment import REAL_ENVIRONMENT
from kubesched.app.http_exchange import HttpRequest, HttpResponse
from kubesched.app.options import ElectionOptions, Options, ServingOptions, with_flags
from kubesched.app.process import EXIT_DONE, EXIT_FAILED, SchedulerProcess
from kubesched.client.connection_settings import ConnectionSettings, UserSettings
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration
from kubesched.plugins.registry import in_tree_registry
from tests.loops import in_real_time

SCHEDULER = User("system:kube-scheduler", ("system:authenticated",))
TOKEN = "s"  # noqa: S105 - of a server that lives as long as a test
ADMIN_TOKEN = "a"  # noqa: S105 - of the same
PODS = "/api/v1/namespaces/default/pods"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
Plain = dict[str, Any]

LATE_CLASS: Plain = {
    "metadata": {"name": "late"},
    "provisioner": "example.com/nobody",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM: Plain = {
    "metadata": {"name": "data"},
    "spec": {
        "storageClassName": "late",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
VOLUME: Plain = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


class Cluster:
    """A server and one scheduler on it.

    Attributes:
        server: The server.
        process: The scheduler.
        reports: What a dry run says.
        stops_when_synced: Whether the scheduler is stopped once it has the cluster.
        exit_code: That of the scheduler; None while it runs.
    """

    def __init__(self, server: ApiServer, options: Options) -> None:
        self.server = server
        self.reports: list[Plain] = []
        self.process = SchedulerProcess(
            options,
            with_flags(default_configuration(options.feature_gates), options),
            in_tree_registry(),
            ConnectionSettings(server=server.url, user=UserSettings(token=TOKEN)),
            report=self.reports.append if options.dry_run else None,
            environment=msgspec.structs.replace(REAL_ENVIRONMENT, settle_memory=self._settle),
        )
        self.stops_when_synced = False
        self.exit_code: int | None = None

    def _settle(self) -> None:
        if self.stops_when_synced:
            self.process.stop()

    async def send(self, method: str, path: str, body: Plain | None = None) -> Plain:
        """Send a request as admin."""
        answer = await self.server.handle(
            ApiRequest(
                method=method,
                path=path,
                headers={"content-type": "application/json"},
                body=b"" if body is None else msgspec.json.encode(body),
                user=ADMIN,
            )
        )
        found: Plain = json.loads(answer.body)
        return found

    async def add_node(self, name: str, cpu: str) -> None:
        """Add a node that is ready."""
        amounts = {"cpu": cpu, "memory": "1Gi", "pods": "10"}
        node = {"metadata": {"name": name}, "status": {"capacity": amounts, "allocatable": amounts}}
        stored = await self.send("POST", "/api/v1/nodes", node)
        del stored["spec"]["taints"]
        await self.send("PUT", f"/api/v1/nodes/{name}", stored)

    async def add_pod(self, name: str, cpu: str, **spec: Any) -> None:
        """Add a pod."""
        resources = {"requests": {"cpu": cpu}}
        container = {"name": "c", "image": "pause", "resources": resources}
        pod = {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
        await self.send("POST", PODS, pod)

    async def add_pod_with_a_claim(self, name: str) -> None:
        """Add a pod whose claim nobody provisions, and a node for it."""
        await self.add_node("n1", "2")
        await self.send("POST", "/apis/storage.k8s.io/v1/storageclasses", LATE_CLASS)
        await self.send("POST", CLAIMS, CLAIM)
        await self.add_pod(name, "1", volumes=[VOLUME])

    async def until(self, path: str, is_so: Callable[[Plain], bool]) -> Plain:
        """Wait until a condition of an object holds; return it."""
        async with asyncio.timeout(20):
            while True:
                found = await self.send("GET", path)
                if found["kind"] != "Status" and is_so(found):
                    return found
                await asyncio.sleep(0.01)


async def until_true(is_so: Callable[[], bool]) -> None:
    """Poll until a condition holds."""
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - what is looked at knows no events
            await asyncio.sleep(0.01)


@asynccontextmanager
async def playing(options: Options) -> AsyncIterator[Cluster]:
    """Run a scheduler, and stop it at the end."""
    server = ApiServer({TOKEN: SCHEDULER, ADMIN_TOKEN: ADMIN})
    await server.start()
    try:
        cluster = Cluster(server, options)
        running = asyncio.ensure_future(cluster.process.run())
        try:
            yield cluster
            cluster.process.stop()
            async with asyncio.timeout(20):
                cluster.exit_code = await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    finally:
        await server.stop()


def options_with(**changes: Any) -> Options:
    """Return options without a port, and with quick elections."""
    election = ElectionOptions(
        leader_elect=changes.pop("leader_elect", False),
        lease_duration_seconds=1.5,
        renew_deadline_seconds=1.0,
        retry_period_seconds=0.2,
    )
    return Options(serving=ServingOptions(secure_port=0), election=election, seed=1, **changes)


def page(path: str, options: Options) -> HttpResponse:
    """Return the page of a process that was not started."""
    process = SchedulerProcess(
        options,
        with_flags(default_configuration(options.feature_gates), options),
        in_tree_registry(),
        ConnectionSettings(server="http://127.0.0.1:1"),
        flags={"config": "a.yaml"},
    )
    answer = process._endpoints().answer(HttpRequest(path=path))
    assert isinstance(answer, HttpResponse), "small pages are answered at once"
    return answer


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param({}, (200, 200), id="default"),
        pytest.param({"ComponentFlagz": False}, (404, 200), id="no-flagz"),
        pytest.param({"ComponentStatusz": False}, (200, 404), id="no-statusz"),
    ],
)
def test_flagz_and_statusz(gates: dict[str, bool], expected: tuple[int, int]) -> None:
    """Both have feature gates, which are on by default."""
    options = options_with(feature_gates=FeatureGates.of(gates))
    flagz, statusz = page("/flagz", options), page("/statusz", options)
    assert expected == (flagz.status, statusz.status)
    if flagz.status == 200:
        assert b"config=a.yaml\n" in flagz.body
    if statusz.status == 200:
        assert b"Binary version  1.36\n" in statusz.body
        listed = "/configz /flagz /healthz /livez /metrics /readyz"
        if flagz.status != 200:
            listed = listed.replace("/flagz ", "")
        assert f"Paths  {listed}\n" in statusz.body.decode()


@pytest.mark.parametrize(
    ("records", "port", "status"),
    [
        pytest.param(10, 10259, 200, id="kept"),
        pytest.param(0, 10259, 404, id="turned-off"),
        pytest.param(10, 0, 404, id="no-port"),
    ],
)
def test_decisions_are_served_if_they_are_kept(records: int, port: int, status: int) -> None:
    """Without a secure port no decisions are recorded."""
    serving = ServingOptions(secure_port=port)
    options = msgspec.structs.replace(options_with(decision_records=records), serving=serving)
    assert status == page("/debug/decisions", options).status


@pytest.mark.slow
@in_real_time
async def test_bound_and_pending_pods() -> None:
    """A pod gets its node, another one a condition; both get an event."""
    async with playing(options_with()) as cluster:
        await cluster.add_node("n1", "2")
        await cluster.add_pod("small", "1")
        await cluster.add_pod("large", "4")
        bound = await cluster.until(f"{PODS}/small", lambda pod: "nodeName" in pod["spec"])
        assert "n1" == bound["spec"]["nodeName"]
        waiting = await cluster.until(f"{PODS}/large", lambda pod: "conditions" in pod["status"])
        message = waiting["status"]["conditions"][0]["message"]
        assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
        events = await cluster.until(
            "/api/v1/namespaces/default/events", lambda found: len(found["items"]) > 1
        )
        assert {"Scheduled", "FailedScheduling"} == {each["reason"] for each in events["items"]}
    assert EXIT_FAILED == cluster.exit_code


@pytest.mark.slow
@in_real_time
async def test_a_leader_releases_the_lock() -> None:
    """The lease has a holder before the first binding, and none at the end."""
    async with playing(options_with(leader_elect=True)) as cluster:
        await cluster.add_node("n1", "2")
        await cluster.add_pod("small", "1")
        await cluster.until(f"{PODS}/small", lambda pod: "nodeName" in pod["spec"])
        lease = await cluster.send("GET", LEASE)
        election = cluster.process.election
        assert election is not None
        assert election.identity == lease["spec"]["holderIdentity"]
        cluster.process.stop()
        await cluster.until(LEASE, lambda found: not found["spec"].get("holderIdentity"))
    assert EXIT_DONE == cluster.exit_code


@pytest.mark.slow
@in_real_time
async def test_stopping_while_a_pod_waits_for_its_claim(caplog: pytest.LogCaptureFixture) -> None:
    """The process ends though PreBind waits for a claim without a provisioner."""
    async with playing(options_with(leader_elect=True)) as cluster:
        await cluster.add_pod_with_a_claim("waits")
        await cluster.until(
            f"{CLAIMS}/data",
            lambda claim: SELECTED_NODE in claim["metadata"].get("annotations", {}),
        )
    assert EXIT_DONE == cluster.exit_code
    assert "Gave up waiting" not in caplog.text


@pytest.mark.slow
@in_real_time
async def test_stopping_before_the_election_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The elector is stopped though its event loop was not there when the process stopped."""
    elect = Election._elect

    async def elect_late(election: Election, *callbacks: Callable[[], None]) -> None:
        await asyncio.sleep(0.03)
        await elect(election, *callbacks)

    monkeypatch.setattr(Election, "_elect", elect_late)
    async with playing(options_with(leader_elect=True)) as cluster:
        cluster.stops_when_synced = True
        await until_true(lambda: cluster.process.is_stopping)
    assert EXIT_DONE == cluster.exit_code


@pytest.mark.slow
@in_real_time
async def test_losing_the_lock() -> None:
    """The process ends with 1 when another holder writes the lease."""
    async with playing(options_with(leader_elect=True)) as cluster:
        lease = await cluster.until(LEASE, lambda found: bool(found["spec"].get("holderIdentity")))
        while True:
            lease = await cluster.send("GET", LEASE)
            lease["spec"] |= {"holderIdentity": "thief", "leaseDurationSeconds": 60}
            stolen = await cluster.send("PUT", LEASE, lease)
            if stolen["kind"] == "Lease":
                break
        await until_true(lambda: cluster.process.is_lost)
    assert EXIT_FAILED == cluster.exit_code


@pytest.mark.slow
@in_real_time
async def test_a_dry_run_writes_nothing() -> None:
    """Decisions are reported, pods do not change, and the exit code is 0."""
    async with playing(options_with(dry_run=True)) as cluster:
        await cluster.add_node("n1", "2")
        await cluster.add_pod("small", "1")
        await until_true(lambda: bool(cluster.reports))
        pod = await cluster.send("GET", f"{PODS}/small")
        assert "nodeName" not in pod["spec"]
        assert [{"action": "bind", "pod": "default/small", "node": "n1"}] == cluster.reports
    assert EXIT_DONE == cluster.exit_code


@pytest.mark.slow
@in_real_time
async def test_a_dry_run_does_not_wait_for_volumes() -> None:
    """The claim is not written either."""
    async with playing(options_with(dry_run=True)) as cluster:
        await cluster.add_pod_with_a_claim("waits")
        await until_true(lambda: bool(cluster.reports))
        assert [{"action": "bind", "pod": "default/waits", "node": "n1"}] == cluster.reports
        claim = await cluster.send("GET", f"{CLAIMS}/data")
        assert SELECTED_NODE not in claim["metadata"].get("annotations", {})
    assert EXIT_DONE == cluster.exit_code
