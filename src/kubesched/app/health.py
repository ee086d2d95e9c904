"""Health answers /healthz, /livez and /readyz from named checks, and the path of each check.

A check is a function that returns a problem, "" if it passes.

Upstream: staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go,
          cmd/kube-scheduler/app/server.go (v1.36)
Differs:  a check that raises has failed; upstream's process exits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kubesched.api.go_text import go_quote
from kubesched.app.http_exchange import (
    HttpRequest,
    HttpResponse,
    error_response,
    plain_response,
    text_response,
)
from kubesched.framework.structured_log import V2, V6

log: Final = logging.getLogger(__name__)

HEALTHZ: Final = "healthz"
LIVEZ: Final = "livez"
READYZ: Final = "readyz"

LEADER_ELECTION: Final = "leaderElection"
HANDLERS_NOT_SYNCED: Final = "handlers are not fully synchronized"
SHUTTING_DOWN: Final = "process is shutting down"

HealthObserver = Callable[[str, str, bool], None]
"""(check, such as `ping`; endpoint, such as `healthz`; whether it passed)."""


class HealthCheck(msgspec.Struct, frozen=True):
    """A named check.

    Attributes:
        name: In paths and answers.
        check: Returns the problem, "" if it passes.
    """

    name: str
    check: Callable[[], str]


PING: Final = HealthCheck("ping", lambda: "")


class Health:
    """The checks of the three endpoints."""

    def __init__(
        self,
        checks: Mapping[str, Sequence[HealthCheck]],
        observe: HealthObserver = lambda _name, _endpoint, _passed: None,
    ) -> None:
        """Set up with checks by endpoint, such as `readyz`; one without checks gets `ping`.

        `observe` is called with the result of each check of an endpoint.
        """
        self._checks = {name: tuple(those) or (PING,) for name, those in checks.items()}
        self._observe = observe

    def paths(self) -> list[str]:
        """Return every path that `answer` accepts."""
        return [
            path
            for name, checks in self._checks.items()
            for path in (f"/{name}", *(f"/{name}/{check.name}" for check in checks))
        ]

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer a request for one of the `paths`, with any method."""
        _, endpoint, *rest = request.path.split("/", 2)
        checks = self._checks[endpoint]
        if rest:
            return _single_response(next(check for check in checks if check.name == rest[0]))
        return self._combined_response(endpoint, checks, request)

    def _combined_response(
        self, endpoint: str, checks: Iterable[HealthCheck], request: HttpRequest
    ) -> HttpResponse:
        excluded = set(request.query_values("exclude"))
        lines: list[str] = []
        failed: dict[str, str] = {}
        for check in checks:
            if check.name in excluded:
                excluded.discard(check.name)
                lines.append(f"[+]{check.name} excluded: ok\n")
                continue
            problem = _ask(check)
            self._observe(check.name, endpoint, not problem)
            if problem:
                failed[check.name] = problem
            # The path is public, so the reason is only logged.
            lines.append(_line(check.name, "reason withheld" if problem else ""))
        lines.extend(_warning(excluded))
        if failed:
            _log_failures(endpoint, failed)
            return error_response("".join(lines) + f"{endpoint} check failed", 500)
        if not request.query_values("verbose"):
            return text_response("ok")
        return text_response("".join(lines) + f"{endpoint} check passed\n")


def scheduler_health(
    *,
    leader_election: Callable[[], str] | None,
    is_stopping: Callable[[], bool],
    has_synced: Callable[[], bool],
    observe: HealthObserver = lambda _name, _endpoint, _passed: None,
) -> Health:
    """Return the checks of a scheduler.

    `leader_election` returns the problem of the lease; it is None without an election. `has_synced`
    returns whether every handler has received its first list.
    """
    election = () if leader_election is None else (HealthCheck(LEADER_ELECTION, leader_election),)
    shutdown = HealthCheck("shutdown", lambda: SHUTTING_DOWN if is_stopping() else "")
    synced = HealthCheck("sched-handler-sync", lambda: "" if has_synced() else HANDLERS_NOT_SYNCED)
    return Health(
        {HEALTHZ: election, LIVEZ: (), READYZ: (*election, shutdown, synced)},
        observe,
    )


def _ask(check: HealthCheck) -> str:
    try:
        return check.check()
    except Exception as error:  # noqa: BLE001 - an exception means that the check failed
        return str(error) or type(error).__name__


def _single_response(check: HealthCheck) -> HttpResponse:
    problem = _ask(check)
    if problem:
        return error_response(f"internal server error: {problem}", 500)
    return plain_response("ok")


def _line(name: str, problem: str) -> str:
    return f"[-]{name} failed: {problem}\n" if problem else f"[+]{name} ok\n"


def _warning(unknown: Iterable[str]) -> Iterable[str]:
    names = ",".join(go_quote(name) for name in sorted(unknown))
    if names:
        log.log(V6, "cannot exclude some health checks, there are none matching %s", names)
        yield f"warn: some health checks cannot be excluded: no matches for {names}\n"


def _log_failures(endpoint: str, failed: Mapping[str, str]) -> None:
    if log.isEnabledFor(V2):
        reasons = "".join(_line(name, problem) for name, problem in failed.items())
        log.log(V2, "%s check failed: %s\n%s", ",".join(failed), endpoint, reasons)
