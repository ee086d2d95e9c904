"""Endpoints routes the paths of the secure port to their handlers, which are here.

Health answers /healthz, /livez and /readyz from named checks, and the path of each check.
/debug/pprof shows stacks as text, /debug/flags/v sets the verbosity.

Upstream: staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go,
          staging/src/k8s.io/apiserver/pkg/server/{statusz,flagz},
          staging/src/k8s.io/component-base/configz/configz.go,
          staging/src/k8s.io/apiserver/pkg/server/routes/{profiling,flags}.go,
          cmd/kube-scheduler/app/server.go, newEndpointsHandler,
          staging/src/k8s.io/apiserver/pkg/server/mux/pathrecorder.go (v1.36)
Differs:  the line and field of the Go version hold Python's; the text of /statusz always has two
          spaces between name and value, where upstream draws a separator at random. Of upstream's
          profiles only `goroutine` exists, and shows tasks and threads; others are unknown
          profiles. A health check that raises has failed; upstream's process exits.
"""

from __future__ import annotations

import asyncio
import io
import logging
import platform
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from kubesched.api.go_text import go_quote
from kubesched.api.media_types import JSON, YAML, accepted_types
from kubesched.api.times import second_time
from kubesched.app.http_exchange import (
    HTML,
    HttpRequest,
    HttpResponse,
    encode,
    error_response,
    is_pretty,
    not_acceptable,
    plain_response,
    text_response,
)
from kubesched.app.metrics.pages import CONTENT_TYPE, MetricsPage
from kubesched.config.load import encode_configuration
from kubesched.config.types import Configuration
from kubesched.framework.structured_log import V2, V6

log: Final = logging.getLogger(__name__)

_COMPONENT: Final = "kube-scheduler"

_GROUP: Final = "config.k8s.io"
_VERSION: Final = "1.36"
_VERSIONS: Final = ("v1beta1", "v1alpha1")
_TYPES: Final = (JSON, YAML, "text/plain")
_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility"
    " guarantees and is for debugging purposes only."
)


def statusz(
    request: HttpRequest, started: datetime, paths: Iterable[str], now: datetime
) -> HttpResponse:
    """Return the answer of /statusz: version, uptime and paths; times have a time zone."""
    language = f"python{platform.python_version()}"
    listed = _folders(paths)
    uptime_seconds = max(int((now - started).total_seconds()), 0)
    fields: dict[str, object] = {
        "startTime": second_time(started),
        "uptimeSeconds": uptime_seconds,
        "goVersion": language,
        "binaryVersion": _VERSION,
        "emulationVersion": _VERSION,
        "paths": listed,
    }

    def text() -> str:
        minutes, seconds = divmod(uptime_seconds, 60)
        hours, minutes = divmod(minutes, 60)
        lines = (
            ("Started", started.astimezone(UTC).strftime("%a %b %d %H:%M:%S UTC %Y")),
            ("Up", f"{hours} hr {minutes:02d} min {seconds:02d} sec"),
            ("Go version", language),
            ("Binary version", _VERSION),
            ("Emulation version", _VERSION),
            ("Paths", " ".join(listed)),
        )
        return "\n" + "".join(f"{name}  {value}\n" for name, value in lines)

    return _answer(request, "Statusz", fields, text)


def flagz(request: HttpRequest, flags: Mapping[str, str]) -> HttpResponse:
    """Return the answer of /flagz: flags by name."""
    ordered = dict(sorted(flags.items()))
    return _answer(
        request,
        "Flagz",
        {"flags": ordered},
        lambda: "".join(f"{name}={value}\n" for name, value in ordered.items()),
    )


def _answer(
    request: HttpRequest, kind: str, fields: Mapping[str, object], text: Callable[[], str]
) -> HttpResponse:
    form = _form_of(request.header("Accept"), kind)
    if form is None:
        return not_acceptable(request, _TYPES)
    media_type, version = form
    if not version:
        return plain_response(f"\n{_COMPONENT} {kind.lower()}\n{_WARNING}\n{text()}")
    value = {
        "kind": kind,
        "apiVersion": f"{_GROUP}/{version}",
        "metadata": {"name": _COMPONENT},
        **fields,
    }
    return HttpResponse(
        content_type=f"{media_type};g={_GROUP};v={version};as={kind}",
        body=encode(value, media_type, pretty=is_pretty(request)),
        headers=_deprecation(version, kind),
    )


def _form_of(accept: str, kind: str) -> tuple[str, str] | None:
    """Return the media type and version that an Accept header prefers, None if none is offered.

    Text has no version.
    """
    if not accept.strip():
        return "text/plain", ""
    for media_type, parameters in accepted_types(accept):
        version = parameters.get("v", "")
        wanted = (parameters.get("g"), parameters.get("as")) == (_GROUP, kind)
        if media_type in {JSON, YAML} and wanted and version in _VERSIONS:
            return media_type, version
        if media_type in {"text/plain", "text/*", "*/*"}:
            return "text/plain", ""
    return None


def _deprecation(version: str, kind: str) -> tuple[tuple[str, str], ...]:
    if version == _VERSIONS[0]:
        return ()
    words = f"This version of the {kind.lower()} endpoint is deprecated."
    return (("Warning", f'299 - "{words} Please use a newer version."'),)


def _folders(paths: Iterable[str]) -> list[str]:
    first = (path.split("/")[1] for path in paths if path.startswith("/"))
    return sorted({f"/{name}" for name in first if name})


def configz(configuration: Configuration) -> HttpResponse:
    """Return the answer of /configz: the configuration in effect, with every default."""
    body = msgspec.json.encode({"componentconfig": encode_configuration(configuration)})
    return text_response(body.decode(), content_type=JSON)


# Profiles and flags.

_PROFILES: Final = "/debug/pprof"
_FLAGS: Final = "/debug/flags"
_STARTED: Final = "Process-Start-Time-Unix"

_INDEX: Final = """\
<html>
<head>
<title>/debug/pprof/</title>
</head>
<body>
/debug/pprof/
<br>
<p>Types of profiles available:</p>
<table>
<tr><td><a href='goroutine?debug=1'>goroutine</a></td></tr>
</table>
<p>goroutine: Stack traces of all current tasks and threads</p>
</body>
</html>
"""

_FLAGS_PAGE: Final = """\
<html>
<head>
<title>/debug/flags/</title>
</head>
<body>
/debug/flags/<br>
<br>
flags:<br>
<table>
<tr>v<br>
</table>
<br>
full flags configurable<br>
</body>
</html>
"""


def profiling(request: HttpRequest) -> HttpResponse:
    """Answer for a path below `_PROFILES`."""
    name = request.path.removeprefix(_PROFILES)
    if not name:
        return HttpResponse(
            status=302,
            content_type=HTML,
            body=f'<a href="{_PROFILES}/">Found</a>.\n\n'.encode(),
            headers=(("Location", f"{_PROFILES}/"),),
        )
    if name == "/":
        return text_response(_INDEX, content_type=HTML)
    if name == "/goroutine":
        return text_response(_stacks())
    return error_response("Unknown profile", 404)


def _stacks() -> str:
    text = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        text.write(f"task {task.get_name()}:\n")
        task.print_stack(file=text)
        text.write("\n")
    for ident, frame in sorted(sys._current_frames().items()):  # noqa: SLF001 - the documented way to get the stacks of other threads
        text.write(f"thread {ident}:\n")
        text.writelines(traceback.format_stack(frame))
        text.write("\n")
    return text.getvalue()


def set_flag(request: HttpRequest, set_verbosity: Callable[[str], str]) -> HttpResponse:
    """Answer a PUT of a new verbosity, which `set_verbosity` parses and applies."""
    if request.method != "PUT":
        return _flag_response("unsupported http method", 406)
    try:
        return _flag_response(set_verbosity(request.body.decode(errors="replace")), 200)
    except ValueError as error:
        return _flag_response(str(error), 400)


def _flag_response(text: str, status: int) -> HttpResponse:
    return text_response(f"{text}\n", status=status, content_type="text/plain")


# Health.

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
    not_synced = "handlers are not fully synchronized"
    election = {} if leader_election is None else {"leaderElection": leader_election}
    ready = {
        "shutdown": lambda: "process is shutting down" if is_stopping() else "",
        "sched-handler-sync": lambda: "" if has_synced() else not_synced,
    }
    return Health({"healthz": election, "livez": {}, "readyz": election | ready}, observe)


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


# All endpoints.

Answer = HttpResponse | Awaitable[HttpResponse]
Answerer = Callable[[HttpRequest], Answer]


class Endpoints:
    """The handlers by path; authentication and authorization come before."""

    def __init__(self) -> None:
        self._exact: dict[str, Answerer] = {}
        self._below: dict[str, Answerer] = {}
        self._listed: list[str] = []

    def add(self, path: str, answer: Answerer, *, is_listed: bool = True) -> None:
        """Add a handler for a path; /statusz lists it unless it is for debugging."""
        assert path not in self._exact, f"{path} is answered twice"
        self._exact[path] = answer
        if is_listed:
            self._listed.append(path)

    def add_health(self, health: Health) -> None:
        """Add the health checks."""
        for path in health.paths():
            self.add(path, health.answer)

    def add_metrics(
        self,
        path: str,
        metrics: MetricsPage,
        started_at: float | None = None,
        is_shown: Callable[[], bool] = lambda: True,
    ) -> None:
        """Add a page of metrics at a path such as `/metrics`; DELETE resets it.

        `started_at` is when the process started, in seconds since 1970; None does not send it. The
        page is empty while `is_shown` returns False. A large one is written in a thread, because
        nothing else would happen meanwhile.
        """
        # With this header, scrapers tell a reset of counters from a restart.
        started = () if started_at is None else ((_STARTED, str(int(started_at))),)

        def answer(request: HttpRequest) -> Answer:
            if not is_shown():
                return HttpResponse(content_type="")
            if request.method == "DELETE":
                metrics.reset()
                return plain_response("metrics reset\n")
            return in_thread(metrics.writer()) if metrics.is_large else page(metrics.page())

        async def in_thread(write: Callable[[], bytes]) -> HttpResponse:
            return page(await asyncio.to_thread(write))

        def page(body: bytes) -> HttpResponse:
            return HttpResponse(content_type=CONTENT_TYPE, body=body, headers=started)

        self.add(path, answer)

    def add_debugging(self, set_verbosity: Callable[[str], str]) -> None:
        """Add /debug/pprof and /debug/flags.

        `set_verbosity` sets the verbosity from a text and returns a message; it raises ValueError.
        """
        self._exact[_PROFILES] = self._below[f"{_PROFILES}/"] = profiling
        flags_page = plain_response(_FLAGS_PAGE, HTML)
        self._exact[_FLAGS] = self._below[f"{_FLAGS}/"] = lambda _request: flags_page
        self._exact[f"{_FLAGS}/v"] = lambda request: set_flag(request, set_verbosity)

    def add_statusz(self, moment: Callable[[], datetime]) -> None:
        """Add /statusz, which lists the paths that were added before, and the uptime from now."""
        paths, started = tuple(self._listed), moment()
        self.add("/statusz", lambda request: statusz(request, started, paths, moment()))

    def answer(self, request: HttpRequest) -> Answer:
        """Return the answer of the handler for the path, 404 without one."""
        exact = self._exact.get(request.path)
        if exact is not None:
            return exact(request)
        for prefix, below in self._below.items():
            if request.path.startswith(prefix):
                return below(request)
        return error_response("404 page not found", 404)
