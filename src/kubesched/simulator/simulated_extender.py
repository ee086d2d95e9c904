"""SimulatedExtender is an HTTP extender without HTTP, with latencies and injected faults.

It rejects and prefers nodes by name and labels, binds through the simulated API server, and keeps
the victims of a preemption unchanged.

Upstream: staging/src/k8s.io/kube-scheduler/extender/v1 (v1.36)
Reads:    requests of the scheduler: Nodes, NodeNames, victims, bindings
Differs:  nothing.
"""

from __future__ import annotations

import asyncio
import json
import math
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from kubesched.api.errors import ApiError
from kubesched.config.types import ExtenderConfiguration
from kubesched.simulator.faults import ExtenderFaults, RandomStreams
from kubesched.simulator.object_server import ObjectServer
from kubesched.simulator.scenario import ExtenderSpec, NodeSelection
from kubesched.simulator.scenario_objects import is_selected

Json: TypeAlias = "dict[str, Any]"

_POINTS: Final = 10
_REFUSAL: Final = "the extender does not want this node"


class SimulatedExtender:
    """The transport to one extender; it counts requests, and those without a usable response."""

    def __init__(
        self,
        configuration: ExtenderConfiguration,
        spec: ExtenderSpec,
        server: ObjectServer,
        random_streams: RandomStreams,
        faults: ExtenderFaults,
    ) -> None:
        """Set up an extender with the verbs of the configuration."""
        self._spec = spec
        self._server = server
        self._faults = faults
        concern = f"extender/{configuration.url_prefix}"
        self._latency_stream = random_streams.stream(concern)
        self._fault_stream = random_streams.stream(f"faults/{concern}")
        self._outage_begin = math.inf
        if faults.every:
            self._outage_begin = self._fault_stream.expovariate(1 / faults.every)
        self._answers = {
            configuration.filter_verb: self._filter,
            configuration.prioritize_verb: self._prioritize,
            configuration.preempt_verb: self._preempt,
            configuration.bind_verb: self._bind,
        }
        self.requests = 0
        self.failures = 0

    async def post(self, url: str, body: bytes, timeout_seconds: float) -> tuple[int, bytes]:
        """Answer one request.

        Raises ConnectionRefusedError during an outage, TimeoutError if the response takes too long.
        """
        self.requests += 1
        faults, stream = self._faults, self._fault_stream
        if self._has_outage(asyncio.get_running_loop().time()):
            self.failures += 1
            raise ConnectionRefusedError("simulated: connection refused")
        is_error, is_lost, is_slow = (
            stream.random() < share for share in (faults.error, faults.unanswered, faults.slow)
        )
        seconds = self._spec.latency * self._latency_stream.uniform(0.5, 1.5)
        seconds += faults.slow_by if is_slow else 0.0
        if is_lost or seconds > timeout_seconds:
            self.failures += 1
            await asyncio.sleep(timeout_seconds)
            raise TimeoutError("simulated: the answer did not come in time")
        await asyncio.sleep(seconds)
        self.failures += is_error
        return (HTTPStatus.INTERNAL_SERVER_ERROR, b"") if is_error else self._answer(url, body)

    def _has_outage(self, now: float) -> bool:
        """Draw outages up to now; return whether there is one."""
        faults = self._faults
        while now >= self._outage_begin + faults.outage:
            self._outage_begin += faults.outage + self._fault_stream.expovariate(1 / faults.every)
        return now >= self._outage_begin

    def _answer(self, url: str, body: bytes) -> tuple[int, bytes]:
        answer = self._answers.get(url.rpartition("/")[2])
        if answer is None:
            return HTTPStatus.NOT_FOUND, b""
        return HTTPStatus.OK, json.dumps(answer(json.loads(body))).encode()

    # The verbs.

    def _filter(self, question: Json) -> Json:
        failed = {
            name: _REFUSAL for name in _names(question) if self._fits(self._spec.refuses, name)
        }
        nodes = question.get("Nodes")
        if nodes is None:
            passed = [name for name in _names(question) if name not in failed]
            return {"NodeNames": passed, "FailedNodes": failed}
        items = [item for item in nodes["items"] if item["metadata"]["name"] not in failed]
        return {"Nodes": {**nodes, "items": items}, "FailedNodes": failed}

    def _prioritize(self, question: Json) -> list[Json]:
        return [
            {"Host": name, "Score": _POINTS * self._fits(self._spec.prefers, name)}
            for name in _names(question)
        ]

    def _preempt(self, question: Json) -> Json:
        kept = question.get("NodeNameToMetaVictims")
        if kept is None:
            kept = {
                name: {
                    "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"] or ()],
                    "NumPDBViolations": victims["NumPDBViolations"],
                }
                for name, victims in question["NodeNameToVictims"].items()
            }
        return {"NodeNameToMetaVictims": kept}

    def _bind(self, question: Json) -> Json:
        where = (question["PodNamespace"], question["PodName"], question["PodUID"])
        try:
            self._server.bind(*where, question["Node"])
        except ApiError as error:
            return {"Error": error.message}
        return {"Error": ""}

    def _fits(self, selection: NodeSelection | None, name: str) -> bool:
        node = self._server.node(name)
        return bool(node and selection and is_selected(node.metadata, selection))


def _names(question: Json) -> list[str]:
    names = question.get("NodeNames")
    if names is not None:
        return list(names)
    return [item["metadata"]["name"] for item in question["Nodes"]["items"]]
