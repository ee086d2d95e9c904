"""What a running scheduler recorded of a pod: the answer of its port, or a note why there is none.

Rejects:  addresses that are no URL; certificates that cannot be read.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

import msgspec

from kubesched.api.errors import ApiError
from kubesched.client.connect import connect, new_event_loop
from kubesched.client.connection_settings import ConnectionSettings, server_url
from kubesched.client.requests import Request
from kubesched.explain.decision_records import DecisionRecords
from kubesched.inputs.errors import UserError
from kubesched.inputs.live_cluster import live_target
from kubesched.inputs.sources import ClusterSource

_PATH: Final = "/debug/decisions"
_SECONDS_MAX: Final = 5.0
_RECORDS_MAX: Final = 20
_REASONS: Final = {
    401: "it does not accept your credentials",
    403: f"you may not get {_PATH}; ask for a ClusterRole with that nonResourceURL",
    404: "it keeps no decisions: it runs with --decision-records 0, or is not kubesched",
}


class RunningScheduler(NamedTuple):
    """The secure port of a scheduler.

    Attributes:
        url: Such as `https://127.0.0.1:10259`.
        is_insecure: Whether any certificate is accepted.
    """

    url: str
    is_insecure: bool = False


def ask_running(
    running: RunningScheduler, source: ClusterSource, namespace: str, name: str
) -> tuple[DecisionRecords | None, str]:
    """Return what a scheduler recorded of a pod, or None and a note why it did not answer.

    Args:
        running: The scheduler.
        source: The live cluster, whose credentials are used.
        namespace: The pod's namespace.
        name: The pod's name.

    Raises:
        UserError: The address is no URL.
        SetupError: A certificate cannot be used.
    """
    settings = _settings(running, live_target(source)[0])
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(_ask(settings, f"{namespace}/{name}")), ""
    except ApiError as error:
        reason = _REASONS.get(error.code) or _problem(error)
    except msgspec.DecodeError:
        reason = "its answer is no DecisionRecords"
    return None, f"The scheduler at {settings.server} was not asked: {reason}."


def _settings(running: RunningScheduler, settings: ConnectionSettings) -> ConnectionSettings:
    tls = msgspec.structs.replace(settings.tls, server_name="")
    if running.is_insecure:
        tls = tls.without_authority()
    try:
        url = server_url(running.url, tls=tls)
    except ValueError as error:
        raise UserError(f"--scheduler {running.url}: {error}") from None
    found = msgspec.structs.replace(settings, server=url, tls=tls, proxy_url="")
    if not found.may_carry_credentials:
        raise UserError(f"--scheduler {running.url}: credentials need https")
    return found


async def _ask(settings: ConnectionSettings, pod: str) -> DecisionRecords:
    rest = connect(settings, qps=-1, timeout_seconds=_SECONDS_MAX)
    query = (("pod", pod), ("limit", str(_RECORDS_MAX)))
    try:
        body = await rest.send(Request(path=_PATH, query=query))
    finally:
        await rest.aclose()
    return msgspec.json.decode(body, type=DecisionRecords)


def _problem(error: ApiError) -> str:
    text = str(error).rpartition('": ')[2]
    if "certificate" in text:
        return f"{text}; --insecure-skip-tls-verify accepts any certificate"
    return text
