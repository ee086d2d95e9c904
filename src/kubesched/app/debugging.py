"""Debugging pages: /debug/pprof shows stacks as text, /debug/flags/v sets the verbosity.

Upstream: staging/src/k8s.io/apiserver/pkg/server/routes/{profiling,flags}.go (v1.36)
Differs:  of upstream's profiles only `goroutine` exists, and shows tasks and threads; others are
          unknown profiles.
"""

from __future__ import annotations

import asyncio
import io
import sys
import traceback
from collections.abc import Callable
from typing import Final

from kubesched.app.http_exchange import (
    HTML,
    PLAIN_TEXT,
    HttpRequest,
    HttpResponse,
    error_response,
    plain_response,
    text_response,
)

PROFILES: Final = "/debug/pprof"
FLAGS: Final = "/debug/flags"

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
    """Answer for a path below `PROFILES`."""
    name = request.path.removeprefix(PROFILES)
    if not name:
        return HttpResponse(
            status=302,
            content_type=HTML,
            body=f'<a href="{PROFILES}/">Found</a>.\n\n'.encode(),
            headers=(("Location", f"{PROFILES}/"),),
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


def flags_page(_request: HttpRequest) -> HttpResponse:
    """Answer for a path below `FLAGS` without a flag's name."""
    return plain_response(_FLAGS_PAGE, HTML)


def set_flag(request: HttpRequest, set_verbosity: Callable[[str], str]) -> HttpResponse:
    """Answer a PUT of a new verbosity, which `set_verbosity` parses and applies."""
    if request.method != "PUT":
        return _flag_response("unsupported http method", 406)
    try:
        return _flag_response(set_verbosity(request.body.decode(errors="replace")), 200)
    except ValueError as error:
        return _flag_response(str(error), 400)


def _flag_response(text: str, status: int) -> HttpResponse:
    return HttpResponse(
        status=status,
        content_type=PLAIN_TEXT.partition(";")[0],
        body=f"{text}\n".encode(),
        headers=(("X-Content-Type-Options", "nosniff"),),
    )
