"""/statusz, /flagz and /configz: what runs, with which flags and which configuration.

Upstream: staging/src/k8s.io/apiserver/pkg/server/{statusz,flagz},
          staging/src/k8s.io/component-base/configz/configz.go (v1.36)
Differs:  the line and field of the Go version hold Python's; the text of /statusz always has two
          spaces between name and value, where upstream draws a separator at random.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from kubesched.api.times import second_time
from kubesched.app.http_exchange import (
    JSON,
    PLAIN_TEXT,
    YAML,
    HttpRequest,
    HttpResponse,
    accepted_types,
    encode,
    is_pretty,
    not_acceptable,
    text_response,
)
from kubesched.config.load import encode_configuration
from kubesched.config.types import Configuration

COMPONENT: Final = "kube-scheduler"

_GROUP: Final = "config.k8s.io"
_VERSION: Final = "1.36"
_VERSIONS: Final = ("v1beta1", "v1alpha1")
_TYPES: Final = (JSON, YAML, "text/plain")
_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility"
    " guarantees and is for debugging purposes only."
)


class Build(msgspec.Struct, frozen=True):
    """The running build.

    Attributes:
        started: The start of the process, with a time zone.
        language: Such as `python3.11.9`.
        version: Of Kubernetes, such as `1.36`.
        emulated: The emulated version.
    """

    started: datetime
    language: str
    version: str
    emulated: str


def build_of(started: datetime) -> Build:
    """Return the build of this process."""
    return Build(started, f"python{platform.python_version()}", _VERSION, _VERSION)


class _Form(msgspec.Struct, frozen=True):
    """The media type and version of an answer; no version for text."""

    media_type: str
    version: str = ""


def statusz(
    request: HttpRequest, build: Build, paths: Iterable[str], now: datetime
) -> HttpResponse:
    """Return the answer of /statusz: build, uptime and paths."""
    listed = _folders(paths)
    uptime_seconds = max(int((now - build.started).total_seconds()), 0)
    fields: dict[str, object] = {
        "startTime": second_time(build.started),
        "uptimeSeconds": uptime_seconds,
        "goVersion": build.language,
        "binaryVersion": build.version,
        "emulationVersion": build.emulated,
        "paths": listed,
    }

    def text() -> str:
        minutes, seconds = divmod(uptime_seconds, 60)
        hours, minutes = divmod(minutes, 60)
        lines = (
            ("Started", build.started.astimezone(UTC).strftime("%a %b %d %H:%M:%S UTC %Y")),
            ("Up", f"{hours} hr {minutes:02d} min {seconds:02d} sec"),
            ("Go version", build.language),
            ("Binary version", build.version),
            ("Emulation version", build.emulated),
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
    if not form.version:
        page = f"\n{COMPONENT} {kind.lower()}\n{_WARNING}\n{text()}"
        return HttpResponse(content_type=PLAIN_TEXT, body=page.encode())
    value = {
        "kind": kind,
        "apiVersion": f"{_GROUP}/{form.version}",
        "metadata": {"name": COMPONENT},
        **fields,
    }
    return HttpResponse(
        content_type=f"{form.media_type};g={_GROUP};v={form.version};as={kind}",
        body=encode(value, form.media_type, pretty=is_pretty(request)),
        headers=_deprecation(form.version, kind),
    )


def _form_of(accept: str, kind: str) -> _Form | None:
    """Return the preferred form of an Accept header, None if none is offered."""
    if not accept.strip():
        return _Form("text/plain")
    for media_type, parameters in accepted_types(accept):
        version = parameters.get("v", "")
        wanted = (parameters.get("g"), parameters.get("as")) == (_GROUP, kind)
        if media_type in {JSON, YAML} and wanted and version in _VERSIONS:
            return _Form(media_type, version)
        if media_type in {"text/plain", "text/*", "*/*"}:
            return _Form("text/plain")
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
