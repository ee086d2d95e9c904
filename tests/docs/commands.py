"""The command `kubesched` without its start: forks of a process that has loaded the package.

Pages of the documents run it more than a hundred times, and most of a short command's time goes to
its imports.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final

_LOADED: Final = ("answers", "cli", "explain", "inputs", "plugins", "simulator")
_SOCKET: Final = "server"
_MESSAGE_BYTES: Final = 1 << 20

_COMMAND: Final = """\
#!{python} -IS
import json, os, socket, sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    words = [sys.argv, os.getcwd(), dict(os.environ)]
    socket.send_fds(server, [json.dumps(words).encode() + b"\\n"], [0, 1, 2])
    code = server.recv(4)
sys.exit(int(code or b"70"))
"""


@contextmanager
def forked_commands(directory: Path) -> Iterator[Path]:
    """Write the command into a directory, to be put on the path, and serve it."""
    command = directory / "kubesched"
    address = str(directory / _SOCKET)
    command.write_text(_COMMAND.format(python=sys.executable, address=address), encoding="utf-8")
    command.chmod(0o755)
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "1"}
    with subprocess.Popen(  # noqa: S603 - our own words
        [sys.executable, "-m", __name__, address],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdout is not None
        assert b"serving\n" == server.stdout.readline()
        try:
            yield directory
        finally:
            server.terminate()


def _load() -> None:
    """Import what commands use."""
    for room in _LOADED:
        package = import_module(f"kubesched.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


def _served_here(address: str) -> bool:
    """Serve commands; return in each process that is to be one, as if just started."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("serving", flush=True)  # noqa: T201 - read by who starts it
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for answering processes
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection:
        sent, files, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, 3)
        while not sent.endswith(b"\n"):
            sent += connection.recv(_MESSAGE_BYTES)
        if command := os.fork():
            for file in files:
                os.close(file)
            _, status = os.waitpid(command, 0)
            connection.sendall(str(os.waitstatus_to_exitcode(status) & 255).encode())
            os._exit(0)  # to take everything apart would take longer than most commands
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    words, folder, environment = json.loads(sent)
    sys.argv[:] = words
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return True


if __name__ == "__main__":
    _load()
    gc.freeze()  # forks need not copy what they do not touch
    from kubesched.cli.main import main

    if _served_here(sys.argv[1]):
        main()
