"""Commands that read a live cluster."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.resource import ResourceClaim
from kubesched.api.scheduling import PodGroup, PriorityClass
from kubesched.apiserver.authorization import SCHEDULER
from kubesched.apiserver.request import User
from kubesched.cli.errors import EXIT_INTERRUPTED
from kubesched.client.connection_settings import ConnectionSettings, UserSettings
from kubesched.client.pager import KindList
from kubesched.inputs.cluster_input import read_cluster
from kubesched.inputs.live_cluster import READ_KINDS
from kubesched.inputs.sources import ClusterSource
from tests.cli.cluster import Json, pod, run, shop, write
from tests.cli.live import TOKEN, live, write_kubeconfig
from tests.client.certificates import authority, signed
from tests.deploy.shipped import DEPLOY, objects_of

_SCHEDULER = User(SCHEDULER, ("system:authenticated",))
_STRANGER = User("stranger", ("system:authenticated",))


def _shop() -> list[Json]:
    """Return the shop without priorities, which an API server sets from classes only."""
    objects = shop()
    for item in objects:
        item["spec"].pop("priority", None)
    return objects


def test_a_live_cluster_is_explained_like_its_dump(tmp_path: Path) -> None:
    """In the same words; kinds without objects are known to be empty."""
    file = write(tmp_path, _shop())
    with live(tmp_path, _shop()) as kubeconfig:
        found = run("explain", "web-1", "--kubeconfig", kubeconfig)
        assert "" == found.stderr
        assert run("explain", "web-1", file, "--complete").stdout == found.stdout
        assert found.stdout == run("explain", "web-1", KUBECONFIG=str(kubeconfig)).stdout
        # The context's namespace is preferred, and -n wins.
        assert (
            found.stdout
            == run(
                "explain", "-n", "shop", "web-1", "--context", "dev", KUBECONFIG=str(kubeconfig)
            ).stdout
        )


def test_objects_are_not_formatted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a main task's result asyncio would format them, which takes seconds for many."""
    formatted: list[object] = []

    def record(found: object) -> str:
        formatted.append(found)
        return "KindList"

    monkeypatch.setattr(KindList, "__repr__", record)
    with live(tmp_path, _shop()) as kubeconfig:
        assert read_cluster(ClusterSource(kubeconfig=kubeconfig)).objects
    assert [] == formatted


def test_further_pods_are_placed_on_a_live_cluster(tmp_path: Path) -> None:
    """`--pods` works as it does with a dump."""
    more = write(tmp_path, [pod("more", "500m")], "more.json")
    file = write(tmp_path, _shop())
    with live(tmp_path, _shop()) as kubeconfig:
        shown = ("--pods", more, "-o", "json")
        found = run("simulate", *shown, "--kubeconfig", kubeconfig)
        assert run("simulate", file, "--complete", *shown).stdout == found.stdout


def test_forbidden_kinds_are_unknown(tmp_path: Path) -> None:
    """One warning names them and the role; the others are complete."""
    with live(tmp_path, _shop(), user=_SCHEDULER) as kubeconfig:
        found = read_cluster(ClusterSource(kubeconfig=kubeconfig))
    (warning,) = found.warnings
    assert warning == (
        "not known: you may not list deployments.apps, daemonsets.apps, jobs.batch, cronjobs.batch,"
        " volumeattributesclasses.storage.k8s.io, priorityclasses.scheduling.k8s.io,"
        " resourceclaimtemplates.resource.k8s.io in all namespaces;"
        " ask for the ClusterRole kubesched-reader"
    )
    assert PriorityClass not in found.complete
    # Not served by this version of the server, so there are none.
    assert {PodDisruptionBudget, ResourceClaim, PodGroup} < set(found.complete)


def test_the_shipped_role_is_sufficient(tmp_path: Path) -> None:
    """A user bound to it reads everything, without a warning."""
    (role,) = objects_of((DEPLOY / "rbac" / "reader.yaml").read_text(encoding="utf-8"))
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "readers"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": _STRANGER.name}],
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role["metadata"]["name"]},
    }
    with live(tmp_path, [*_shop(), role, binding], user=_STRANGER) as kubeconfig:
        found = read_cluster(ClusterSource(kubeconfig=kubeconfig))
    assert [] == found.warnings
    assert {kind.type for kind in READ_KINDS} == set(found.complete)
    assert len(shop()) <= len(found.objects)


def _refusal(*arguments: object, **environment: str) -> str:
    """Return the line that a command prints before it exits with 2."""
    found = run("simulate", *arguments, **environment)
    assert (2, "") == (found.exit_code, found.stdout)
    (line,) = found.stderr.splitlines()
    return line.removeprefix("kubesched: error: ")


def test_pods_and_nodes_are_required(tmp_path: Path) -> None:
    """Without permission to list them the command fails."""
    with live(tmp_path, [], user=_STRANGER) as kubeconfig:
        line = _refusal("--kubeconfig", kubeconfig)
    assert line.startswith("context dev (http://127.0.0.1:")
    assert line.endswith(
        "you may not list pods, nodes in all namespaces; ask for the ClusterRole kubesched-reader"
    )


def test_a_refused_token(tmp_path: Path) -> None:
    """The remedy is a new login."""
    with live(tmp_path, []) as kubeconfig:
        url = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        write_kubeconfig(kubeconfig, url, token="old")  # noqa: S106 - no secret
        line = _refusal("--kubeconfig", kubeconfig)
    assert line == (
        f"context dev ({url}): the server refuses the credentials; log in again, or name another"
        " context"
    )


def test_a_refused_connection(tmp_path: Path) -> None:
    """The line names context, address and reason."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        line = _refusal("--kubeconfig", write_kubeconfig(tmp_path / "config", url))
    address = url.removeprefix("http://")
    assert line == (
        f"context dev ({url}): dial tcp {address}: connect: connection refused;"
        " check the context's cluster and user"
    )


def test_an_address_without_a_cluster(tmp_path: Path) -> None:
    """A server that knows no pods is not told as a cluster without pods."""
    with live(tmp_path, _shop()) as kubeconfig:
        url = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        line = _refusal("--kubeconfig", write_kubeconfig(kubeconfig, f"{url}/nowhere"))
    assert line == (
        f"context dev ({url}/nowhere): the server is no API server of Kubernetes;"
        " check the context's cluster"
    )


def test_https(tmp_path: Path) -> None:
    """A certificate of the context's authority is trusted, others are not."""
    trusted = authority()
    pair = signed(trusted, "server", usage=None, hosts=("127.0.0.1",))
    files = tmp_path / "certificate.pem", tmp_path / "key.pem"
    files[0].write_bytes(pair.pem)
    files[1].write_bytes(pair.key_pem)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*files)
    with live(tmp_path, _shop(), tls=tls, authority=trusted.pem) as kubeconfig:
        found = run("explain", "web-1", "--kubeconfig", kubeconfig)
        assert (0, "") == (found.exit_code, found.stderr)
        content = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]
        wrong = write_kubeconfig(
            tmp_path / "b", content["server"], authority=authority("other").pem
        )
        line = _refusal("--kubeconfig", wrong)
    assert line.startswith(f"context dev ({content['server']}): tls: ")


def test_an_exec_plugin_that_fails(tmp_path: Path) -> None:
    """The line names its command and the reason."""
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "no-such-plugin",
        "interactiveMode": "Never",
    }
    url = "https://127.0.0.1:1"
    file = write_kubeconfig(tmp_path / "config", url, user={"exec": plugin})
    line = _refusal("--kubeconfig", file)
    assert line.startswith(f"context dev ({url}): getting credentials: exec: ")
    assert "no-such-plugin" in line


def test_errors_about_the_choice_of_a_cluster(tmp_path: Path) -> None:
    """Unknown names, and two sources at once, are errors before any request."""
    file = write_kubeconfig(tmp_path / "config", "https://127.0.0.1:1")
    dump = write(tmp_path, shop())
    assert _refusal("--kubeconfig", file, "--context", "prod") == (
        f"{file}: context was not found for specified context: prod; there are: dev"
    )
    missing = tmp_path / "missing"
    assert _refusal("--kubeconfig", missing) == f"stat {missing}: no such file or directory"
    assert _refusal(KUBECONFIG=str(missing)) == (
        f"no cluster is named, and none of KUBECONFIG, {missing}, exists; name files, or"
        " --kubeconfig FILE"
    )
    assert _refusal(dump, "--context", "dev") == (
        "--context names a live cluster, and there are files; leave out one"
    )
    file.write_text(file.read_text().replace('"current-context": "dev", ', ""))
    assert _refusal("--kubeconfig", file) == (
        f"{file}: there is no current-context; name one with --context: dev"
    )


@pytest.mark.slow
def test_ctrl_c_while_a_slow_server_is_read(tmp_path: Path) -> None:
    """After a second the terminal shows progress; Ctrl-C removes the line and exits with 130."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        file = write_kubeconfig(tmp_path / "config", url)
        terminal, inner = pty.openpty()
        command = [sys.executable, "-m", "kubesched", "simulate", "--kubeconfig", str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=inner) as process:  # noqa: S603
            os.close(inner)
            seen = os.read(terminal, 1024)
            assert seen == b"\r\x1b[KReading context dev: 0 MB"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == EXIT_INTERRUPTED
            rest = os.read(terminal, 1024)
        os.close(terminal)
    # click ends the line on which a terminal shows ^C.
    assert b"\r\x1b[K\r\nkubesched: interrupted\r\n" == rest.split(b"MB")[-1]


def test_in_a_pod_the_default_is_its_own_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kubeconfig's current context takes precedence."""
    with live(tmp_path, _shop()) as kubeconfig:
        own = ConnectionSettings(
            server=json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"],
            user=UserSettings(token=TOKEN),
        )
        monkeypatch.setattr("kubesched.inputs.live_cluster.in_cluster_settings", lambda _: own)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
        assert "this cluster" == read_cluster(ClusterSource()).source
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        assert "context dev" == read_cluster(ClusterSource()).source
