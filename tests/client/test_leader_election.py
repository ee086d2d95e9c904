from __future__ import annotations

import asyncio
import json
import random
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from kubesched.api.errors import ApiError
from kubesched.api.volume import ObjectReference
from kubesched.client.leader_election import ElectionTiming, LeaderElector, LeaderFence
from kubesched.client.requests import Request
from kubesched.client.resource_locks import LeaseLock
from tests.loops import on_virtual_time

from .lock_server import FaultyRest, LockServer, Plain

_DATA = Path(__file__).parent / "data"
_RECORDED = json.loads((_DATA / "leader_election.json").read_text())
_RACES = json.loads((_DATA / "lease_races.json").read_text())
_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
_START = datetime(2024, 5, 1, 10, tzinfo=UTC)
_QUICK = ElectionTiming(
    lease_duration_seconds=3, renew_deadline_seconds=2, retry_period_seconds=0.5
)


@pytest.fixture(name="server")
def _server() -> LockServer:
    return LockServer()


class Candidate:
    """An elector, its connection to the server, and when it started and stopped leading."""

    def __init__(
        self, server: LockServer, identity: str, timing: ElectionTiming, chance: float = 0.5
    ) -> None:
        loop = asyncio.get_running_loop()
        self.calls: list[str] = []
        self.events: list[tuple[ObjectReference, str]] = []
        self.rest = FaultyRest(
            server, random.Random(0), timeout_seconds=timing.client_timeout_seconds
        )
        lock = LeaseLock(self.rest, "kube-system", "kube-scheduler", identity, self._record_event)
        self.elector = LeaderElector(
            lock,
            timing,
            clock=loop.time,
            wall_clock=lambda: _START + timedelta(seconds=loop.time()),
            random=lambda: chance,
        )
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self.elector.run(lambda: self.calls.append("started"))
        finally:
            self.calls.append("stopped")

    def _record_event(self, about: ObjectReference, text: str) -> None:
        self.events.append((about, text))

    def codes(self) -> list[str]:
        """Method and code of all requests, runs of the same GET as one."""
        said = [f"{request.method} {code}" for _, request, code in self.rest.sent]
        return _runs(said)


def _runs(codes: list[str]) -> list[str]:
    """Return the codes with reads in a row as one: how often a candidate polls is random."""
    return [code for code, run_ in groupby(codes) for _ in (run_ if "GET" not in code else (0,))]


def _lease(holder: str, seconds: int, transitions: int) -> Plain:
    return {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": seconds,
            "acquireTime": "2020-01-01T00:00:00.000000Z",
            "renewTime": "2020-01-01T00:00:00.000000Z",
            "leaseTransitions": transitions,
        },
    }


def _put(server: LockServer, content: Plain) -> None:
    stored = server.objects.get(_PATH)
    if stored is None:
        path = _PATH.rpartition("/")[0]
        server.handle(Request(method="POST", path=path, body=json.dumps(content).encode()))
        return
    content = {**content, "metadata": {**stored["metadata"], **content["metadata"]}}
    server.handle(Request(method="PUT", path=_PATH, body=json.dumps(content).encode()))


def _recorded(name: str) -> list[dict[str, Any]]:
    """The recorded requests to the lease."""
    return [r for r in _RECORDED[name]["requests"] if "/leases" in r["path"]]


def _check_requests(recorded: list[dict[str, Any]], one: Candidate) -> None:
    """Compare methods, codes and times; the times count from the third request."""
    assert [f"{r['method']} {r['code']}" for r in recorded] == [
        f"{request.method} {code}" for _, request, code in one.rest.sent
    ]
    gaps = [r["t"] - recorded[2]["t"] for r in recorded[2:]]
    assert gaps == pytest.approx([t for t, _, _ in one.rest.sent[2:]], abs=0.06)


def _shape(value: Any) -> Any:
    """A body without what differs between two runs."""
    if isinstance(value, dict):
        known = {k: _shape(v) for k, v in value.items() if k != "creationTimestamp"}
        for name in ("acquireTime", "renewTime", "uid", "resourceVersion"):
            if name in known:
                known[name] = "..."
        if known.get("holderIdentity"):
            known["holderIdentity"] = "me"
        return known
    return value


@on_virtual_time
async def test_server_gone_as_recorded(server: LockServer) -> None:
    """Create, renew at once and every period; give up after the deadline, and try to release."""
    recorded = _recorded("server-gone")
    one = Candidate(server, "a", _QUICK)
    await asyncio.sleep(1.2)
    one.rest.is_cut = True
    sent = len(one.rest.sent)
    _check_requests(recorded, one)
    assert [_shape(r.get("body")) for r in recorded] == [
        _shape(json.loads(request.body)) if request.body else None
        for _, request, _ in one.rest.sent
    ]
    assert [r["path"] for r in recorded] == [r.path for _, r, _ in one.rest.sent]
    await one.task
    assert ["started", "stopped"] == one.calls
    # It notices with the renewal at 1.5 s and gives up two seconds later.
    assert 3.5 <= asyncio.get_running_loop().time() <= 5.5
    assert "GET" == one.rest.sent[-1][1].method
    assert sent < len(one.rest.sent)


@on_virtual_time
async def test_stolen_lease(server: LockServer) -> None:
    """As recorded: one conflict, then reads until the deadline, and no release."""
    recorded = _recorded("stolen")
    one = Candidate(server, "a", _QUICK)
    await asyncio.sleep(1.7)
    _put(server, _lease("intruder", 60, 0))
    await one.task
    _check_requests(recorded, one)
    assert ["started", "stopped"] == one.calls
    assert "intruder" == one.elector.leader
    events = [r for r in _RECORDED["stolen"]["requests"] if r["path"].endswith("events")]
    assert [r["body"]["message"].partition(" ")[2] for r in events] == [
        text.partition(" ")[2] for _, text in one.events
    ]
    for request, (about, _) in zip(events, one.events, strict=True):
        involved = request["body"]["involvedObject"]
        assert involved["kind"] == about.kind
        assert involved["apiVersion"] == about.api_version
        assert (involved["namespace"], involved["name"]) == (about.namespace, about.name)
        assert about.uid
        assert about.resource_version


@on_virtual_time
async def test_expired_foreign_as_recorded(server: LockServer) -> None:
    """A holder that never renews is waited for from when it was first seen, then replaced."""
    recorded = _recorded("expired-foreign")
    _put(server, _lease("gone", 4, 7))
    one = Candidate(server, "a", _QUICK, chance=0.4)
    await asyncio.sleep(6.2)
    assert 8 == server.objects[_PATH]["spec"]["leaseTransitions"]
    taken = next(t for t, request, _ in one.rest.sent if request.method == "PUT")
    assert 4 <= taken <= 4 + 0.5 * 2.2
    one.elector.stop()
    await one.task
    released = _shape(recorded[-1]["body"])
    assert released == _shape(json.loads(one.rest.sent[-1][1].body))
    # The renewal that was under way when the signal came is left out.
    codes = _runs([f"{r['method']} {r['code']}" for r in recorded if r["code"] != 504])
    assert codes == one.codes()[: len(codes) - 2] + one.codes()[-2:]


@on_virtual_time
async def test_sigterm_hands_over_as_recorded(server: LockServer) -> None:
    """A released lease is taken at the next poll, with one more transition."""
    recorded = _recorded("sigterm")
    first = Candidate(server, "a", _QUICK)
    await asyncio.sleep(0.2)
    second = Candidate(server, "b", _QUICK)
    await asyncio.sleep(2.02)
    first.elector.stop()
    await first.task
    released_at = asyncio.get_running_loop().time()
    await asyncio.sleep(2)
    taken = next(t for t, request, _ in second.rest.sent if request.method == "PUT")
    assert taken - released_at <= 0.5 * 2.2
    second.elector.stop()
    await second.task
    writes = [_shape(r["body"]["spec"]) for r in recorded if r["method"] != "GET"]
    ours = [_shape(content["spec"]) for _, _, content in server.history]
    assert [w for w, _ in groupby(writes)] == [w for w, _ in groupby(ours)]
    assert ["started", "stopped"] == first.calls
    assert ["started", "stopped"] == second.calls


@on_virtual_time
async def test_sigkill_takes_over_as_recorded(server: LockServer) -> None:
    """A silent leader is replaced one lease duration after its last renewal was seen."""
    seconds = _RECORDED["sigkill"]["takeover_seconds"]
    first = Candidate(server, "a", _QUICK)
    second = Candidate(server, "b", _QUICK)
    await asyncio.sleep(2.3)
    first.rest.is_stopped = True
    last = server.history[-1][0]
    await asyncio.sleep(5)
    taken = next(t for t, _, o in server.history if o["spec"]["holderIdentity"] == "b")
    assert 3 <= taken - last <= 3 + 2 * 0.5 * 2.2
    assert 3 - 0.5 <= seconds <= 3 + 2 * 0.5 * 2.2
    for one in (first, second):
        one.elector.stop()
        await one.task


@on_virtual_time
async def test_lock_server_answers_as_recorded(server: LockServer) -> None:
    """The server of these tests refuses what the real one refuses."""
    versions: dict[str, str] = {}
    for step in _RACES["steps"]:
        asked = step["request"]
        body = asked.get("body") or {}
        version = body.get("metadata", {}).get("resourceVersion")
        if version:
            body["metadata"]["resourceVersion"] = versions[version]
        request = Request(
            method=asked["method"], path=asked["path"], body=json.dumps(body).encode()
        )
        status = step["response"]["status"]
        if status >= 400:
            with pytest.raises(ApiError) as caught:
                server.handle(request)
            expected = (status, step["response"]["body"]["reason"])
            assert expected == (caught.value.code, caught.value.reason)
            continue
        stored = json.loads(server.handle(request))
        mark = step["response"]["body"]["metadata"]["resourceVersion"]
        seen = stored["metadata"]["resourceVersion"]
        assert seen == versions.setdefault(mark, seen)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ((5, 5, 1), "leaseDuration must be greater than renewDeadline"),
        ((15, 10, 9), "renewDeadline must be greater than retryPeriod*JitterFactor"),
        ((1, 0, -1), "renewDeadline must be greater than zero"),
        ((1, 0.5, 0), "retryPeriod must be greater than zero"),
        ((0, -1, -2), "leaseDuration must be greater than zero"),
    ],
)
def test_timing_that_cannot_work_is_refused(
    times: tuple[float, float, float], message: str
) -> None:
    """Upstream's checks, in its words and order."""
    lease, renew, retry = times
    timing = ElectionTiming(
        lease_duration_seconds=lease, renew_deadline_seconds=renew, retry_period_seconds=retry
    )
    with pytest.raises(ValueError, match="must be") as caught:
        timing.check()
    assert message == str(caught.value)


@on_virtual_time
async def test_nameless_candidate_is_refused(server: LockServer) -> None:
    """A lock without an identity cannot be held."""
    with pytest.raises(ValueError, match="Lock identity is empty"):
        Candidate(server, "", _QUICK)


@on_virtual_time
async def test_fence_counts_from_sending(server: LockServer) -> None:
    """The permission ends one lease duration after the renewal left, not after its answer."""
    one = Candidate(server, "a", ElectionTiming())
    await asyncio.sleep(1)
    one.rest.delay_seconds_max = 4.0
    renewed = len(one.rest.sent) + 1
    while len(one.rest.sent) < renewed:  # noqa: ASYNC110 - virtual time costs nothing
        await asyncio.sleep(0.01)
    sent = one.rest.sent[-1][0]
    assert asyncio.get_running_loop().time() > sent + 0.1
    assert sent + 15 >= one.elector.fence.holds_until > 15
    one.task.cancel()
    await asyncio.gather(one.task, return_exceptions=True)


@on_virtual_time
async def test_fence_of_a_stopped_process(server: LockServer) -> None:
    """The fence ends by the clock, though the elector still believes that it leads."""
    one = Candidate(server, "a", ElectionTiming())
    await asyncio.sleep(1)
    now = asyncio.get_running_loop().time()
    assert one.elector.fence.holds(now)
    assert not one.elector.fence.holds(now + 15)
    assert one.elector.is_leader
    one.elector.stop()
    await one.task
    assert not one.elector.fence.holds(now)


@on_virtual_time
async def test_foreign_lease_is_not_released(server: LockServer) -> None:
    """A candidate that stops late does not change the lease of the next leader."""
    one = Candidate(server, "a", _QUICK)
    await asyncio.sleep(0.2)
    _put(server, _lease("b", 15, 1))
    one.elector.stop()
    await one.task
    assert "b" == server.objects[_PATH]["spec"]["holderIdentity"]


@on_virtual_time
async def test_the_log_names_the_lock(server: LockServer, caplog: pytest.LogCaptureFixture) -> None:
    """Messages are kube-scheduler's, and have the lock as a field."""
    caplog.set_level("INFO")
    one = Candidate(server, "a", _QUICK)
    await asyncio.sleep(0.2)
    one.rest.is_cut = True
    await one.task
    fields = {each.getMessage(): getattr(each, "fields", {}) for each in caplog.records}
    for words in ("Attempting to acquire leader lease...", "Successfully acquired lease"):
        assert {"lock": "kube-system/kube-scheduler"} == fields[words]
    assert "lock" in fields["Failed to renew lease"]
    assert "err" in fields["Failed to release lease"]


@on_virtual_time
async def test_cancelling_releases_and_is_raised(server: LockServer) -> None:
    """Cancelling `run` releases the lock, and raises CancelledError."""
    one = Candidate(server, "a", _QUICK)
    await asyncio.sleep(0.2)
    one.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one.task
    assert "" == server.objects[_PATH]["spec"]["holderIdentity"]
    assert "stopped" == one.calls[-1]


@on_virtual_time
async def test_stop_before_leading_leaves_the_lease_alone(server: LockServer) -> None:
    """A candidate that never led writes nothing."""
    _put(server, _lease("b", 60, 1))
    one = Candidate(server, "a", _QUICK)
    await asyncio.sleep(0.2)
    one.elector.stop()
    await one.task
    assert ["stopped"] == one.calls
    assert ["GET 200"] == one.codes()
    assert [] == one.events


@on_virtual_time
async def test_statistics_and_health(server: LockServer) -> None:
    """The gauge is 1 while leading; slow renewals are counted; a stuck leader is unhealthy."""
    loop = asyncio.get_running_loop()
    stuck = [0.0]
    rest = FaultyRest(server, random.Random(0))
    elector = LeaderElector(
        LeaseLock(rest, "kube-system", "kube-scheduler", "a"),
        _QUICK,
        clock=lambda: loop.time() + stuck[0],
        wall_clock=lambda: _START,
        random=lambda: 0.0,
    )
    assert 0 == elector.statistics.master_status
    task = asyncio.create_task(elector.run(lambda: None))
    await asyncio.sleep(0.2)
    assert ("kube-scheduler", 1, 0) == (
        elector.statistics.name,
        elector.statistics.master_status,
        elector.statistics.slowpath_total,
    )
    _put(server, json.loads(json.dumps(server.objects[_PATH])))
    await asyncio.sleep(0.5)
    assert 1 == elector.statistics.slowpath_total
    assert "" == elector.health_error()
    stuck[0] = 24.0
    assert "failed election to renew leadership on lease kube-scheduler" == (elector.health_error())
    stuck[0] = 0.0
    elector.stop()
    await task
    assert 0 == elector.statistics.master_status


def test_client_timeout_is_half_the_deadline() -> None:
    """It is at least a second, as upstream."""
    assert 5.0 == ElectionTiming().client_timeout_seconds
    assert 1.0 == ElectionTiming(renew_deadline_seconds=1.5).client_timeout_seconds


# The fence.

_TEN = datetime(2024, 5, 1, 10, tzinfo=UTC)


def test_holds_one_lease_duration_from_sending() -> None:
    """The permission ends by itself, at the very moment a candidate may take over."""
    fence = LeaderFence()
    assert not fence.holds(0.0)
    fence.extend(5.0, _TEN, 15)
    assert fence.holds(19.999)
    assert not fence.holds(20.0)


def test_second_renewal_in_the_same_second_does_not_extend() -> None:
    """Candidates that see whole seconds do not see it."""
    fence = LeaderFence()
    fence.extend(5.0, _TEN, 15)
    fence.extend(5.5, _TEN + timedelta(milliseconds=500), 15)
    assert 20.0 == fence.holds_until
    fence.extend(6.0, _TEN + timedelta(seconds=1), 15)
    assert 21.0 == fence.holds_until


def test_dropping_and_extending() -> None:
    """The seconds of a dropped permission do not count for the next one."""
    fence = LeaderFence()
    fence.extend(5.0, _TEN, 15)
    fence.drop()
    assert not fence.holds(6.0)
    fence.extend(7.0, _TEN, 15)
    assert 22.0 == fence.holds_until


def test_record_without_a_time() -> None:
    """Each write then counts from its sending."""
    fence = LeaderFence()
    fence.extend(5.0, None, 15)
    fence.extend(6.0, None, 15)
    assert 21.0 == fence.holds_until
