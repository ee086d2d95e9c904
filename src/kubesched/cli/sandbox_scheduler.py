"""SchedulerChild runs the scheduler of a sandbox in a process of its own.

Invariants: the child ends with the sandbox, even if that is killed: its stdin is a pipe from it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kubesched.api.yaml_syntax import YamlError, dump, load_documents
from kubesched.inputs.errors import UserError

_CHILD: Final = "from kubesched.cli.sandbox_scheduler import serve; serve()"
_STOP_SECONDS: Final = 5.0
_LINES_SHOWN: Final = 5
_QPS: Final = 100_000


def configuration_text(wanted: Mapping[str, Any], kubeconfig: Path) -> str:
    """Return the user's configuration of a sandbox's scheduler with the sandbox's kubeconfig."""
    own = wanted.get("clientConnection") or {}
    connection = {"kubeconfig": str(kubeconfig), "qps": _QPS, "burst": _QPS}
    return dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **wanted,
            # The scheduler refuses a value of another type.
            "clientConnection": {**own, **connection} if isinstance(own, dict) else own,
            "leaderElection": {"leaderElect": False},
        }
    )


def read_document(option: str, file: Path, kind: str) -> dict[str, Any]:
    """Return the only document of a YAML file that an option names."""
    try:
        documents = [one for _, one in load_documents(file.read_text(encoding="utf-8"))]
    except OSError as error:
        raise UserError(f"{option} {file}: it cannot be read: {error.strerror}") from None
    except (YamlError, UnicodeDecodeError) as error:
        raise UserError(f"{option} {file}: {error}") from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UserError(f"{option} {file}: holds {len(documents)} documents; give one {kind}")
    return documents[0]


class SchedulerChild:
    """The process of the scheduler."""

    def __init__(self, config: Path, flags: Sequence[str], log: Path, written: Path) -> None:
        """Set up; errors name the user's configuration file `written` instead of `config`.

        `flags` are further flags of `kubesched run`; stdout and stderr are appended to `log`.
        """
        self._names = str(config), str(written)
        self._arguments = ["run", "--config", str(config), "--secure-port", "0", *flags]
        self._log = log
        self._process: asyncio.subprocess.Process

    async def start(self) -> None:
        """Start it; raises UserError if the log cannot be written."""
        try:
            log = self._log.open("ab")
        except OSError as error:
            raise UserError(f"{self._log}: cannot be written: {error.strerror}") from None
        with log:
            # In a session of its own, so that Ctrl-C reaches only the sandbox, which then stops it.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                _CHILD,
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def failed(self) -> str:
        """Wait until it ends by itself; return an error message."""
        code = await self._process.wait()
        if code < 0:
            return f"the scheduler was ended by {_signal_name(-code)}"
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        last = "; ".join(lines[-_LINES_SHOWN:]) or "its log is empty"
        return f"the scheduler ended with code {code}: {last.replace(*self._names)}"

    async def stop(self) -> None:
        """Stop it."""
        process = self._process
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(_STOP_SECONDS):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        if process.stdin is not None:
            process.stdin.close()
            with contextlib.suppress(ConnectionError):
                await process.stdin.wait_closed()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def serve() -> None:
    """Run the command line in the child process, and end with the parent."""
    from kubesched.cli.main import main

    threading.Thread(target=_end_with_parent, daemon=True).start()
    main()


def _end_with_parent() -> None:
    # stdin is closed when the sandbox ends, for any reason.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
