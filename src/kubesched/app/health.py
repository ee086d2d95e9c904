"""Health answers /healthz, /livez and /readyz from named checks, and the path of each check.

A check is a function that returns a problem, "" if it passes.

Upstream: staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go,
          cmd/kube-scheduler/app/server.go (v1.36)
Differs:  a check that raises has failed; upstream's process exits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

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


Check = Callable[[], str]
"""Returns the problem, "" if the check passes."""

_PING: Final[Mapping[str, Check]] = {"ping": lambda: ""}


class Health:
    """The checks of the three endpoints."""

    def __init__(
        self,
        checks: Mapping[str, Mapping[str, Check]],
        observe: HealthObserver = lambda _name, _endpoint, _passed: None,
    ) -> None:
        """Set up with checks by endpoint, such as `readyz`, and name; without any, `ping` is one.

        `observe` is called with the result of each check of an endpoint.
        """
        self._checks = {endpoint: named or _PING for endpoint, named in checks.items()}
        self._observe = observe

    def paths(self) -> list[str]:
        """Return every path that `answer` accepts."""
        return [
            path
            for endpoint, checks in self._checks.items()
            for path in (f"/{endpoint}", *(f"/{endpoint}/{name}" for name in checks))
        ]

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer a request for one of the `paths`, with any method."""
        _, endpoint, *rest = request.path.split("/", 2)
        checks = self._checks[endpoint]
        if rest:
            problem = _ask(checks[rest[0]])
            if problem:
                return error_response(f"internal server error: {problem}", 500)
            return plain_response("ok")
        return self._combined_response(endpoint, checks, request)

    def _combined_response(
        self, endpoint: str, checks: Mapping[str, Check], request: HttpRequest
    ) -> HttpResponse:
        excluded = set(request.query_values("exclude"))
        lines: list[str] = []
        failed: dict[str, str] = {}
        for name, check in checks.items():
            if name in excluded:
                excluded.discard(name)
                lines.append(f"[+]{name} excluded: ok\n")
                continue
            problem = _ask(check)
            self._observe(name, endpoint, not problem)
            if problem:
                failed[name] = problem
            # The path is public, so the reason is only logged.
            lines.append(_line(name, "reason withheld" if problem else ""))
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
    election = {} if leader_election is None else {LEADER_ELECTION: leader_election}
    ready = {
        "shutdown": lambda: SHUTTING_DOWN if is_stopping() else "",
        "sched-handler-sync": lambda: "" if has_synced() else HANDLERS_NOT_SYNCED,
    }
    return Health({HEALTHZ: election, LIVEZ: {}, READYZ: election | ready}, observe)


def _ask(check: Check) -> str:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - an exception means that the check failed
        return str(error) or type(error).__name__


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
