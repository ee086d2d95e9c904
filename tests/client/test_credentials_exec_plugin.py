from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kubesched.client.connection_settings import EnvVariable, ExecSettings
from kubesched.client.credentials import Credential, CredentialsError, ExecPlugin, bearer
from tests.loops import in_real_time

_V1 = "client.authentication.k8s.io/v1"
_BETA = "client.authentication.k8s.io/v1beta1"
_START = datetime(2024, 5, 1, 10, tzinfo=UTC)


class Program:
    """A program with a given output, which records its calls."""

    def __init__(self, *statuses: object, version: str = _V1, code: int = 0) -> None:
        self.runs: list[tuple[Sequence[str], Mapping[str, str]]] = []
        self._statuses = statuses
        self._version = version
        self._code = code

    async def __call__(
        self, arguments: Sequence[str], environ: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Print the next status."""
        self.runs.append((arguments, environ))
        await asyncio.sleep(0)
        status = self._statuses[min(len(self.runs), len(self._statuses)) - 1]
        printed = {"kind": "ExecCredential", "apiVersion": self._version, "status": status}
        return self._code, json.dumps(printed).encode()


def _plugin(program: Program, now: list[datetime] | None = None, **settings: Any) -> ExecPlugin:
    moment = now or [_START]
    chosen = ExecSettings(**{"command": "/bin/plug", "api_version": _V1} | settings)
    return ExecPlugin(chosen, lambda: moment[0], {"HOME": "/h", "A": "old"}, program)


@pytest.mark.parametrize("version", [_V1, _BETA])
def test_input_of_the_program(version: str) -> None:
    """It gets arguments, environment and KUBERNETES_EXEC_INFO of its version."""
    program = Program({"token": "t"}, version=version)
    plugin = _plugin(
        program,
        args=("get", "token"),
        env=(EnvVariable("A", "new"),),
        api_version=version,
        cluster={"server": "https://h"},
    )
    assert bearer("t") == asyncio.run(plugin.get())
    ((arguments, environ),) = program.runs
    assert ("/bin/plug", "get", "token") == arguments
    told = json.loads(environ["KUBERNETES_EXEC_INFO"])
    assert {
        "kind": "ExecCredential",
        "apiVersion": version,
        "spec": {"cluster": {"server": "https://h"}, "interactive": False},
    } == told
    assert {"HOME": "/h", "A": "new"} == {k: environ[k] for k in ("HOME", "A")}


def test_without_cluster_info() -> None:
    """Without provideClusterInfo the program gets no cluster."""
    program = Program({"token": "t"})
    asyncio.run(_plugin(program).get())
    told = json.loads(program.runs[0][1]["KUBERNETES_EXEC_INFO"])
    assert {"interactive": False} == told["spec"]


def test_credentials_are_kept_until_shortly_before_they_expire() -> None:
    """Ten seconds before the end, or a tenth of a short life."""
    now = [_START]
    ends = [
        (_START + timedelta(hours=1)).isoformat(),
        (_START + timedelta(hours=1, seconds=40)).isoformat(),
    ]
    program = Program(*({"token": f"t{i}", "expirationTimestamp": e} for i, e in enumerate(ends)))
    plugin = _plugin(program, now)
    assert bearer("t0") == asyncio.run(plugin.get())
    now[0] = _START + timedelta(minutes=59, seconds=49)
    assert bearer("t0") == asyncio.run(plugin.get())
    now[0] = _START + timedelta(minutes=59, seconds=50)
    assert bearer("t1") == asyncio.run(plugin.get())
    now[0] = _START + timedelta(hours=1, seconds=34)
    assert bearer("t1") == asyncio.run(plugin.get())
    assert 2 == len(program.runs)


def test_credentials_without_an_end_last() -> None:
    """The program runs once."""
    now = [_START]
    program = Program({"token": "t"})
    plugin = _plugin(program, now)
    asyncio.run(plugin.get())
    now[0] = _START + timedelta(days=1000)
    asyncio.run(plugin.get())
    assert 1 == len(program.runs)


@in_real_time
async def test_program_runs_once_for_all_who_wait() -> None:
    """Many requests, one of which gives up, are one run."""
    program = Program({"token": "t1"}, {"token": "t2"})
    plugin = _plugin(program)
    waiting = [asyncio.create_task(plugin.get()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    assert [bearer("t1")] * 2 == await asyncio.gather(*waiting[1:])
    assert 1 == len(program.runs)


@in_real_time
async def test_refused_credentials_are_renewed_once() -> None:
    """Requests that were refused with equal credentials share one run."""
    program = Program({"token": "t1"}, {"token": "t2"})
    plugin = _plugin(program)
    old = await plugin.get()
    both = await asyncio.gather(plugin.renew(old), plugin.renew(old))
    assert [bearer("t2")] * 3 == [*both, await plugin.renew(old)]
    assert 2 == len(program.runs)


def test_certificates_come_with_their_keys() -> None:
    """A plugin may print a certificate and a key instead of a token."""
    status = {"clientCertificateData": "c", "clientKeyData": "k"}
    assert Credential("", b"c", b"k") == asyncio.run(_plugin(Program(status)).get())


@pytest.mark.parametrize(
    ("program", "settings", "problem"),
    [
        pytest.param(Program(None), {}, "didn't return a status field", id="no status"),
        pytest.param(Program({}), {}, "didn't return a token or cert/key pair", id="nothing"),
        pytest.param(
            Program({"clientKeyData": "k"}), {}, "only certificate or key, not both", id="half"
        ),
        pytest.param(
            Program({"token": "t"}, version=_BETA),
            {},
            f"configured to use API version {_V1}, plugin returned version {_BETA}",
            id="another version",
        ),
        pytest.param(
            Program({"token": "t"}, code=3),
            {},
            "executable /bin/plug failed with exit code 3",
            id="failed",
        ),
        pytest.param(Program({"token": 3}), {}, "exec plugin: decoding stdout: ", id="wrong type"),
        pytest.param(
            Program({"token": "t", "expirationTimestamp": "soon"}),
            {},
            "no valid expirationTimestamp: 'soon'",
            id="wrong time",
        ),
        pytest.param(
            Program({"token": "t"}),
            {"interactive_mode": "Always"},
            "standard input is unavailable",
            id="interactive",
        ),
    ],
)
def test_invalid_output(program: Program, settings: dict[str, Any], problem: str) -> None:
    """The error names the problem."""
    with pytest.raises(CredentialsError) as caught:
        asyncio.run(_plugin(program, **settings).get())
    assert problem in str(caught.value)


def test_real_program(tmp_path: Path) -> None:
    """A script is found and run, and its output is read."""
    script = tmp_path / "plug"
    script.write_text(
        "#!/bin/sh\n"
        'echo "{\\"kind\\":\\"ExecCredential\\",\\"apiVersion\\":\\"$1\\",'
        '\\"status\\":{\\"token\\":\\"$T\\"}}"\n'
    )
    script.chmod(0o700)
    settings = ExecSettings(
        command=str(script), args=(_V1,), env=(EnvVariable("T", "secret"),), api_version=_V1
    )
    plugin = ExecPlugin(settings, lambda: _START)
    assert bearer("secret") == asyncio.run(plugin.get())


def test_missing_program(tmp_path: Path) -> None:
    """The error has the install hint."""
    settings = ExecSettings(command=str(tmp_path / "nothing"), install_hint="Install it.")
    with pytest.raises(CredentialsError, match=r"nothing not found; Install it\."):
        asyncio.run(ExecPlugin(settings, lambda: _START).get())
