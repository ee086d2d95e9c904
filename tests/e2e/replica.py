"""One replica: a process of `kubesched run`, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Final

import msgspec

from .faulty_front import FaultyFront

_END_SECONDS_MAX: Final = 30.0


class Lease(msgspec.Struct, frozen=True):
    """The times of the election."""

    duration_seconds: float
    renew_deadline_seconds: float
    retry_period_seconds: float

    @classmethod
    def parse(cls, text: str) -> Lease:
        """Read `15/10/2`. Raises ValueError."""
        duration, deadline, period = (float(part) for part in text.split("/"))
        return cls(duration, deadline, period)

    def __str__(self) -> str:
        seconds = (
            self.duration_seconds,
            self.renew_deadline_seconds,
            self.retry_period_seconds,
        )
        return "/".join(f"{each:g}" for each in seconds)


SHORT: Final = Lease(2.0, 1.4, 0.3)


def write_kubeconfig(path: Path, server: str, token: str) -> Path:
    """Write a kubeconfig with the server and a token."""
    path.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: it\n"
        f'clusters: [{{name: it, cluster: {{server: "{server}"}}}}]\n'
        f"users: [{{name: it, user: {{token: {token}}}}}]\n"
        "contexts: [{name: it, context: {cluster: it, user: it}}]\n"
    )
    return path


def write_configuration(path: Path, kubeconfig: Path, lease: Lease | None) -> Path:
    """Write a scheduler's configuration, with or without election."""
    election = "{leaderElect: false}"
    if lease is not None:
        election = (
            f"{{leaderElect: true, leaseDuration: {lease.duration_seconds}s, "
            f"renewDeadline: {lease.renew_deadline_seconds}s, "
            f"retryPeriod: {lease.retry_period_seconds}s}}"
        )
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f'clientConnection: {{kubeconfig: "{kubeconfig}", qps: 5000, burst: 5000}}\n'
        f"leaderElection: {election}\n"
    )
    return path


class Replica:
    """A running scheduler.

    Attributes:
        name: Its name, which is its token too.
        front: The proxy between it and the server; None without one.
        log_path: The file of its log.
    """

    def __init__(self, name: str, front: FaultyFront | None, log_path: Path) -> None:
        """Set up; `start` begins."""
        self.name = name
        self.front = front
        self.log_path = log_path
        self._process: asyncio.subprocess.Process | None = None
        self._is_asked = False

    async def start(self, configuration: Path, *flags: str) -> None:
        """Start the process."""
        with self.log_path.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "kubesched", "run"),
                *("--config", str(configuration), "--secure-port", "0", *flags),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None, "started"
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs; negative after a signal."""
        return None if self._process is None else self._process.returncode

    @property
    def is_running(self) -> bool:
        """Whether it has not ended; it may be stopped."""
        return self._process is not None and self._process.returncode is None

    def send(self, signal_: signal.Signals) -> None:
        """Send a signal if the process still runs, but SIGTERM only once, as a kubelet does.

        A second SIGTERM ends a draining process at once, with exit code 1.
        """
        is_asking = signal_ is signal.SIGTERM
        if self.is_running and not (is_asking and self._is_asked):
            self._is_asked |= is_asking
            # asyncio's own method may collect the exit code before `wait` does.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal_)

    async def wait(self) -> int:
        """Wait for its end; return the exit code."""
        assert self._process is not None, "started"
        return await self._process.wait()

    async def end(self, signal_: signal.Signals = signal.SIGKILL) -> int | None:
        """Send a signal, wait for the end, kill it after a timeout; return the exit code.

        Raises:
            AssertionError: It took force.
        """
        self.send(signal_)
        if self._process is not None:
            try:
                async with asyncio.timeout(_END_SECONDS_MAX):
                    await self._process.wait()
            except TimeoutError:
                self.send(signal.SIGKILL)
                await self._process.wait()
                words = f"{self.name} did not end within {_END_SECONDS_MAX:g} s of {signal_.name}"
                raise AssertionError(words) from None
            finally:
                if self.front is not None:
                    await self.front.stop()
        return self.exit_code

    def log(self) -> str:
        """Return its log so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
