"""`kubesched ui` as a process: its address, its output and its exit code."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from kubesched.cli.ui import _Ui
from kubesched.inputs.loading import load_scheduler
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from tests.cli.cluster import node, pod, refused, write
from tests.cli.live import write_kubeconfig
from tests.loops import in_real_time

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@contextmanager
def running(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Start `kubesched ui`; yield the process, its URL and its token."""
    # A killed process leaves its files.
    with (
        TemporaryDirectory() as folder,
        subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "kubesched", "ui", "--no-open", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": folder},
        ) as process,
    ):
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            line = next(line for line in lines if "#token=" in line)
            found = re.search(r"(http://127\.0\.0\.1:\d+)/#token=(\S+)", line)
            assert found is not None
            yield process, found[1], found[2]
        finally:
            process.kill()


def ask(url: str, token: str) -> Any:
    """Read JSON with the token."""
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own server
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - the same
        return json.load(answer)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal(tmp_path: Path, number: int) -> None:
    """SIGINT and SIGTERM end it with exit code 0 and nothing on stderr."""
    file = write(tmp_path, [node("alpha", "4"), pod("waits", "9")])
    with running(file, "--complete") as (process, url, token):
        view = ask(f"{url}/documents", token)["documents"][0]
        assert (["alpha"], 1) == (view["nodes"]["names"], view["pendingPods"])
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
        assert (0, "") == (process.returncode, errors)


@pytest.mark.slow
def test_sandbox() -> None:
    """`--sandbox N` shows a new cluster with N nodes."""
    with running("--sandbox", "2") as (process, url, token):
        view = ask(f"{url}/documents", token)["documents"][0]
        assert ["node-0", "node-1"] == view["nodes"]["names"]
        process.send_signal(signal.SIGINT)
        assert 0 == process.wait(timeout=20)


@pytest.mark.slow
def test_scenario() -> None:
    """The page shows the playback, then the report; SIGINT ends the process."""
    scenario = EXAMPLES / "scenarios" / "batch-and-web.yaml"
    with running(scenario, "--seed", "7") as (process, url, token):
        found = ask(f"{url}/documents", token)
        assert ("batch and web", "Playback") == (found["title"], found["documents"][0]["kind"])
        while len(found["documents"]) == 1:
            found = ask(f"{url}/documents", token)
        report = found["documents"][1]
        assert ("TimelineReport", 7) == (report["kind"], report["seed"])
        process.send_signal(signal.SIGINT)
        assert 0 == process.wait(timeout=20)


@pytest.mark.slow
def test_port_in_use(tmp_path: Path) -> None:
    """The error names the port and the remedy."""
    file = write(tmp_path, [node("alpha", "4")])
    with running(file) as (_, url, _token):
        port = url.rpartition(":")[2]
        error = refused("ui", "--no-open", "--port", port, file)
    assert f"port {port} of 127.0.0.1 is taken; name another with --port" in error


@pytest.mark.slow
def test_ctrl_c_while_connecting(tmp_path: Path) -> None:
    """SIGINT ends the process while an API server does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        kubeconfig = tmp_path / "kubeconfig"
        write_kubeconfig(kubeconfig, f"http://127.0.0.1:{silent.getsockname()[1]}")
        command = [sys.executable, "-m", "kubesched", "ui", "--kubeconfig", str(kubeconfig)]
        with (
            subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process,  # noqa: S603
            silent.accept()[0],
        ):
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
    assert (0, "") == (process.returncode, errors)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--sandbox", "3", "--context", "dev"], "--sandbox starts a cluster of its own"),
        (["missing.json"], "missing.json: it cannot be read"),
        (["--kubeconfig", "missing"], "missing"),
        (["--port", "70000"], "70000 is not in the range"),
    ],
)
def test_wrong_arguments(arguments: list[str], expected: str) -> None:
    """The error names what is wrong."""
    assert expected in refused("ui", "--no-open", *arguments)


@in_real_time
async def test_a_second_signal_does_not_cut_the_clean_up_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was opened is closed, however often the page is stopped."""
    ui = _Ui(
        SchedulerOptions(), ClusterSource(), load_scheduler(SchedulerOptions()), None, 0, tmp_path
    )
    ended: list[str] = []

    async def serve(*_arguments: object, opens: bool) -> None:
        assert not opens
        try:
            asyncio.get_running_loop().call_soon(ui.stop)
            await asyncio.Future()
        finally:
            ui.stop()
            await asyncio.sleep(0)
            ended.append("cleaned up")

    monkeypatch.setattr(_Ui, "_serve", lambda _, *given, **more: serve(*given, **more))
    assert 0 == await ui.run(None, 0, opens=False)
    assert ["cleaned up"] == ended
