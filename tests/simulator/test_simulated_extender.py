"""A simulated extender: the answers of its scenario, late, wrong or missing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kubesched.config.types import ExtenderConfiguration
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.faults import ExtenderFaults, RandomStreams
from kubesched.simulator.object_server import ObjectServer
from kubesched.simulator.run import simulate
from kubesched.simulator.scenario import ExtenderSpec, NodeSelection
from kubesched.simulator.scenario_loading import load_scenario
from kubesched.simulator.simulated_extender import SimulatedExtender
from kubesched.simulator.timeline_report import TimelineReport
from kubesched.simulator.virtual_loop import run
from kubesched.testing.builders import make_node, make_pod
from tests.loops import on_virtual_time

URL = "http://here"
CONFIGURATION = ExtenderConfiguration(
    url_prefix=URL,
    filter_verb="filter",
    prioritize_verb="rate",
    preempt_verb="preempt",
    bind_verb="bind",
)
SPEC = ExtenderSpec(
    URL,
    refuses=NodeSelection(names=("b*",)),
    prefers=NodeSelection(labels={"disk": "ssd"}),
    latency=0.01,
)


def _server() -> ObjectServer:
    server = ObjectServer(lambda: 0.0)
    for name, disk in (("a", "ssd"), ("b", "ssd"), ("c", "hdd")):
        server.create(make_node(name, labels={"disk": disk}))
    return server


def _ask(verb: str, question: object, server: ObjectServer | None = None) -> tuple[int, Any]:
    there = server or _server()
    extender = SimulatedExtender(CONFIGURATION, SPEC, there, RandomStreams(1), ExtenderFaults())
    body = json.dumps(question).encode()
    status, answer = run(extender.post(f"{URL}/{verb}", body, 5.0))
    return status, json.loads(answer) if answer else None


def test_filter_with_names() -> None:
    """Refused names are missing, with their reasons."""
    status, answer = _ask("filter", {"Pod": {}, "Nodes": None, "NodeNames": ["a", "b", "c"]})
    assert 200 == status
    assert ["a", "c"] == answer["NodeNames"]
    assert ["b"] == list(answer["FailedNodes"])


def test_filter_with_nodes() -> None:
    """The remaining nodes are returned unchanged."""
    items = [{"metadata": {"name": name}, "spec": {"x": name}} for name in "abc"]
    _, answer = _ask("filter", {"Nodes": {"items": items}, "NodeNames": None})
    assert [items[0], items[2]] == answer["Nodes"]["items"]


def test_nodes_with_the_labels_get_ten_points() -> None:
    """Others get none."""
    _, answer = _ask("rate", {"NodeNames": ["a", "c"], "Nodes": None})
    assert [{"Host": "a", "Score": 10}, {"Host": "c", "Score": 0}] == answer


def test_preempt_returns_the_victims_as_uids() -> None:
    """Whether they were sent as pods or uids."""
    whole = {"Pods": [{"metadata": {"uid": "u"}}], "NumPDBViolations": 1}
    meta = {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}
    for question in ({"NodeNameToVictims": {"a": whole}}, {"NodeNameToMetaVictims": {"a": meta}}):
        _, answer = _ask("preempt", question)
        assert {"NodeNameToMetaVictims": {"a": meta}} == answer


def test_bind_is_sent_to_the_server() -> None:
    """Binding again is refused with the server's message."""
    server = _server()
    pod = server.create(make_pod("p", uid=""))
    question = {"PodName": "p", "PodNamespace": "default", "PodUID": pod.metadata.uid, "Node": "a"}
    assert (200, {"Error": ""}) == _ask("bind", question, server)
    bound = server.pod("default", "p")
    assert bound is not None
    assert "a" == bound.spec.node_name
    _, again = _ask("bind", question, server)
    assert 'is already assigned to node "a"' in again["Error"]


def test_other_verbs_are_not_found() -> None:
    """Only the verbs of the configuration exist."""
    assert (404, None) == _ask("filters", {})


def _under(faults: ExtenderFaults) -> SimulatedExtender:
    return SimulatedExtender(CONFIGURATION, SPEC, _server(), RandomStreams(1), faults)


def _now() -> float:
    return asyncio.get_running_loop().time()


QUESTION = b'{"NodeNames": ["a"], "Nodes": null}'


@on_virtual_time
async def test_answers_take_the_scenarios_latency() -> None:
    """The latency varies by half."""
    extender = _under(ExtenderFaults())
    await extender.post(f"{URL}/filter", QUESTION, 5.0)
    assert 0.005 <= _now() <= 0.016


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(ExtenderFaults(unanswered=1.0), id="unanswered"),
        pytest.param(ExtenderFaults(slow=1.0, slow_by=60.0), id="too-slow"),
    ],
)
@on_virtual_time
async def test_requests_end_at_the_timeout(faults: ExtenderFaults) -> None:
    """Lost answers and late ones have the same error."""
    extender = _under(faults)
    with pytest.raises(TimeoutError):
        await extender.post(f"{URL}/filter", QUESTION, 5.0)
    assert 5.0 == pytest.approx(_now(), abs=0.001)
    assert (1, 1) == (extender.requests, extender.failures)


@on_virtual_time
async def test_slow_answers_within_the_timeout_are_used() -> None:
    """They are no failures."""
    extender = _under(ExtenderFaults(slow=1.0, slow_by=2.0))
    status, _ = await extender.post(f"{URL}/filter", QUESTION, 5.0)
    assert 200 == status
    assert 2.0 <= _now() <= 2.1
    assert 0 == extender.failures


@on_virtual_time
async def test_errors_are_status_500() -> None:
    """The body is empty."""
    extender = _under(ExtenderFaults(error=1.0))
    assert (500, b"") == await extender.post(f"{URL}/filter", QUESTION, 5.0)


@on_virtual_time
async def test_outages_begin_and_end() -> None:
    """During an outage connections are refused at once."""
    extender = _under(ExtenderFaults(every=60.0, outage=20.0))
    refused = []
    for _ in range(2000):
        await asyncio.sleep(1)
        try:
            await extender.post(f"{URL}/filter", QUESTION, 5.0)
        except ConnectionRefusedError:
            refused.append(_now())
    lengths = _lengths(refused)
    # Two outages may follow each other at once.
    assert 18 <= min(lengths) <= 20
    assert 15 < len(lengths) < 40


def _lengths(times: list[float]) -> list[float]:
    """Return the durations of runs of times that are less than two seconds apart."""
    begins = [at for at, time in enumerate(times) if not at or time - times[at - 1] > 2]
    ends = [*begins[1:], len(times)]
    return [times[end - 1] - times[begin] for begin, end in zip(begins, ends, strict=True)]


@on_virtual_time
async def test_extenders_without_a_description_accept_all_nodes() -> None:
    """They answer every request."""
    extender = SimulatedExtender(
        CONFIGURATION, ExtenderSpec(URL), _server(), RandomStreams(1), ExtenderFaults()
    )
    _, answer = await extender.post(f"{URL}/filter", b'{"NodeNames": ["a", "b"]}', 5.0)
    assert ["a", "b"] == json.loads(answer)["NodeNames"]


def _simulated(ignorable: bool, faults: dict[str, Any]) -> TimelineReport:
    extender = {
        "urlPrefix": URL,
        "filterVerb": "filter",
        "prioritizeVerb": "rate",
        "weight": 1,
        "nodeCacheCapable": True,
        "ignorable": ignorable,
    }
    scenario = {
        "version": 1,
        "duration": "10m",
        "nodes": [{"name": "n", "count": 2, "allocatable": {"cpu": 4}}],
        "workloads": [
            {
                "name": "batch",
                "pods": {"every": "10s", "runTime": {"fixed": "5s"}},
                "requests": {"cpu": 1},
            }
        ],
        "faults": {"extender": faults},
        "scheduler": {
            "configuration": {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "extenders": [extender],
            },
            "extenders": [{"urlPrefix": URL, "refuses": {"names": ["n-0"]}}],
        },
        "report": {"checkEvery": "1s"},
    }
    return simulate(load_scenario(scenario), in_tree_registry())


def test_an_outage_of_an_extender_delays_pods() -> None:
    """Nothing is bound until it ends."""
    report = _simulated(ignorable=False, faults={"every": "2m", "outage": "30s"})
    assert report.totals.failed > 0
    assert report.totals.bound >= report.totals.arrived - 3
    sent = {request.kind: request for request in report.requests}
    assert sent[URL].failed > 0


def test_an_outage_of_an_ignorable_extender_delays_no_pod() -> None:
    """No attempt fails."""
    report = _simulated(ignorable=True, faults={"error": 0.5, "unanswered": 0.2})
    assert 0 == report.totals.failed
    assert report.totals.bound >= report.totals.arrived - 3
