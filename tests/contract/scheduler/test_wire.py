"""Our scheduler's first HTTP requests, compared with those of kube-scheduler 1.36.

Differs:  JSON stands for protobuf; no `accept-encoding`; the secure port reads its configmap once
          and each minute, where upstream reads it twice and watches it.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import pytest
from msgspec.structs import replace

from kubesched.apiserver.request import ApiRequest, Response, refused
from kubesched.apiserver.server import ADMIN, ApiServer
from kubesched.apiserver.status import StatusError
from kubesched.app.environment import REAL_ENVIRONMENT
from kubesched.app.options import ElectionOptions, Options, ServingOptions, with_flags
from kubesched.app.process import SchedulerProcess
from kubesched.client.connection_settings import ConnectionSettings, UserSettings
from kubesched.config.load import default_configuration
from kubesched.plugins.registry import in_tree_registry

from .comparing import calm_parameter
from .in_process_connection import SCHEDULER, Plain
from .names import calm_name
from .records import read_record

_TOKEN: Final = "t"  # noqa: S105 - of a server that lives as long as a test
_PATIENCE_SECONDS: Final = 20.0
_AGENT: Final = re.compile(
    r"(?:kube-scheduler/<version> \(<os>/<arch>\) kubernetes/<commit>"
    r"|kubesched/v[\w.]+ \(\w+/\w+\) kubernetes/[\w.]+)(?:/(?P<client>[\w-]+))?"
)
_CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"

Exchange = tuple[str, ...]
"""Client, method, path, parameters, two headers, status and type of the answer."""


class _NotingServer(ApiServer):
    """Records its requests and their clients.

    Attributes:
        exchanges: What the scheduler asked.
        refuses_initial_events: Whether it is a server that cannot stream them.
    """

    exchanges: set[Exchange]
    refuses_initial_events = False

    async def handle(self, request: ApiRequest) -> Response:
        """Answer."""
        answer = await self._answer_as_asked(request)
        if request.user == SCHEDULER:
            query = {name: values[0] for name, values in request.query.items()}
            exchange = _exchange(
                request.method, request.path, query, request.headers, answer.status,
                answer.content_type,
            )  # fmt: skip
            self.exchanges.add(exchange)
        return answer

    async def _answer_as_asked(self, request: ApiRequest) -> Response:
        if self.refuses_initial_events and "sendInitialEvents" in request.query:
            return refused(StatusError(422, "Invalid", "sendInitialEvents is forbidden"))
        return await super().handle(request)


def _exchange(
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    status: int,
    content_type: str,
) -> Exchange:
    agent = _AGENT.fullmatch(headers["user-agent"])
    assert agent is not None, headers["user-agent"]
    parts = sorted((name, calm_parameter(name, value)) for name, value in query.items())
    types = (headers["accept"], headers.get("content-type", ""), content_type)
    accept, sent, answered = map(_as_json, types)
    return (
        agent["client"] or "", method, calm_name(path), repr(parts), accept, sent, str(status),
        answered,
    )  # fmt: skip


def _as_json(media_type: str) -> str:
    """Return JSON's media types for protobuf's, those of watch streams included."""
    return "application/json" if "kubernetes.protobuf" in media_type else media_type


async def _play(record: Plain, expected: set[Exchange]) -> set[Exchange]:
    """Run the script until the expected requests have arrived; return them."""
    server = _NotingServer({_TOKEN: SCHEDULER})
    server.exchanges = set()
    server.refuses_initial_events = record["name"] == "startup-no-watchlist"
    await server.start()
    options = Options(
        serving=ServingOptions(bind_address="127.0.0.1", secure_port=_free_port()),
        election=ElectionOptions(leader_elect=False),
    )
    process = SchedulerProcess(
        options,
        with_flags(default_configuration(options.feature_gates), options),
        in_tree_registry(),
        ConnectionSettings(server=server.url, user=UserSettings(token=_TOKEN)),
        environment=replace(REAL_ENVIRONMENT, settle_memory=lambda: None),
    )
    running = asyncio.ensure_future(process.run())
    for step in record["steps"]:
        if step.get("scheduler") == "start":
            await _until(lambda: process.is_synced or running.done())
        elif "request" in step:
            await server.handle(_as_served(step["request"]))
    with suppress(TimeoutError):
        await _until(lambda: expected <= server.exchanges)
    process.stop()
    await running
    await server.stop()
    return server.exchanges


def _as_served(request: Plain) -> ApiRequest:
    body = json.dumps(request["body"]).encode()
    return ApiRequest(request["method"], request["path"], {}, request["headers"], body, ADMIN)


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not is_so():  # noqa: ASYNC110 - what is looked at knows no events
            await asyncio.sleep(0.01)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _recorded(record: Plain) -> set[Exchange]:
    """Return upstream's requests, except those of its secure port."""
    exchanges = {
        _exchange(
            one["method"], one["path"], one.get("query", {}), one["headers"], one["status"],
            one["response_content_type"],
        )
        for one in record["http"]
    }  # fmt: skip
    return {one for one in exchanges if one[0] or one[2] == _CONFIG_MAP}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["startup-headers-json", "startup-headers-protobuf", "startup-no-watchlist"]
)
def test_first_requests_equal_the_recorded_ones(name: str) -> None:
    """Methods, paths, parameters, headers, status codes and types."""
    record = read_record(name)
    expected = _recorded(record)
    assert expected == asyncio.run(_play(record, expected))
