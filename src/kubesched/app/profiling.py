"""/debug/pprof shows where the process is: the stacks of its tasks and threads, as text.

Upstream: staging/src/k8s.io/apiserver/pkg/server/routes/profiling.go (v1.36)
Differs:  of upstream's profiles there is `goroutine` alone, which here shows tasks and threads;
          others are unknown profiles.
"""

from __future__ import annotations

import asyncio
import io
import sys
import traceback
from typing import Final

from kubesched.app.http_exchange import HTML, HttpAnswer, HttpRequest, error_answer, text_answer

PREFIX: Final = "/debug/pprof"

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


def profiling(request: HttpRequest) -> HttpAnswer:
    """Answer for a path that begins with the prefix."""
    name = request.path.removeprefix(PREFIX)
    if not name:
        return HttpAnswer(
            status=302,
            content_type=HTML,
            body=f'<a href="{PREFIX}/">Found</a>.\n\n'.encode(),
            headers=(("Location", f"{PREFIX}/"),),
        )
    if name == "/":
        return text_answer(_INDEX, content_type=HTML)
    if name == "/goroutine":
        return text_answer(_stacks())
    return error_answer("Unknown profile", 404)


def _stacks() -> str:
    text = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        text.write(f"task {task.get_name()}:\n")
        task.print_stack(file=text)
        text.write("\n")
    for ident, frame in sorted(sys._current_frames().items()):  # noqa: SLF001 - the documented way to see other threads
        text.write(f"thread {ident}:\n")
        text.writelines(traceback.format_stack(frame))
        text.write("\n")
    return text.getvalue()
