from __future__ import annotations

import gc
import json
import os
import re
import ssl
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from kubesched.api.errors import SetupError
from kubesched.client.connect import (
    connect,
    credentials_of,
    environment_proxy,
    find_settings,
    impersonation_headers,
    in_cluster_namespace,
    in_cluster_settings,
    new_event_loop,
    user_agent,
)
from kubesched.client.connection_settings import (
    ConnectionSettings,
    ExecSettings,
    Impersonation,
    TlsSettings,
    UserSettings,
)
from kubesched.client.credentials import Credentials, ExecPlugin, TokenFile
from kubesched.client.requests import Request
from tests.loops import in_real_time

from .scripted_server import ReceivedRequest, serving


async def _fine(request: web.BaseRequest, received: list[ReceivedRequest]) -> web.StreamResponse:
    return web.Response(text="{}")


@in_real_time
async def test_from_a_file_to_an_answer(tmp_path: Path) -> None:
    """Token, impersonation, user agent and time limit of a kubeconfig and flags are sent."""
    async with serving(_fine) as server:
        content = {
            "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": server.url + "/prefix"}}],
            "users": [{"name": "u", "user": {"token": "t", "as": "j", "as-groups": ["g", "h"]}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }
        path = tmp_path / "config"
        path.write_text(json.dumps(content))
        settings = find_settings(kubeconfig=str(path))
        rest = connect(settings, user_agent_suffix="leader-election", timeout_seconds=5)
        assert b"{}" == await rest.send(Request(path="/api"))
        await rest.aclose()
        (received,) = server.received
        assert ("/prefix/api", (("timeout", "5s"),)) == (received.path, received.query)
        assert "Bearer t" == received.headers["authorization"]
        assert "j" == received.headers["impersonate-user"]
        assert received.headers["user-agent"].endswith("/leader-election")


def _kubeconfig(path: Path, server: str = "", token: str = "") -> str:
    """Write a kubeconfig with a context, and what is given of its cluster and its user."""
    content = {
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": server}}] if server else [],
        "users": [{"name": "u", "user": {"token": token}}] if token else [],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(json.dumps(content))
    return str(path)


def test_settings_are_looked_for_in_order(tmp_path: Path) -> None:
    """A file, an address, the files of KUBECONFIG, a pod."""
    (tmp_path / "token").write_text("t")
    one = _kubeconfig(tmp_path / "one", "https://one", "t")
    two = _kubeconfig(tmp_path / "two", "https://two", "t")
    in_pod = {"KUBERNETES_SERVICE_HOST": "pod", "KUBERNETES_SERVICE_PORT": "1"}
    find = partial(find_settings, environ={**in_pod, "KUBECONFIG": two}, service_account=tmp_path)
    assert "https://one" == find(kubeconfig=one).server
    assert "http://h:8080" == find(kubeconfig=one, master="h:8080").server
    assert "http://h:8080" == find(master="h:8080").server
    assert "https://two" == find().server
    for kubeconfig in ("", str(tmp_path / "missing")):
        environ = {**in_pod, "KUBECONFIG": kubeconfig}
        found = find_settings(environ=environ, service_account=tmp_path)
        assert "https://pod:1" == found.server
    with pytest.raises(SetupError, match="--master"):
        find_settings(master="a b:/c")


def test_the_files_of_kubeconfig_are_merged(tmp_path: Path) -> None:
    """The cluster is in one file, the user in the other, as kubectl allows."""
    files = [
        str(tmp_path / "missing"),
        _kubeconfig(tmp_path / "one", "", "t"),
        _kubeconfig(tmp_path / "two", "https://two"),
    ]
    found = find_settings(environ={"KUBECONFIG": os.pathsep.join(files)})
    assert ("https://two", "t") == (found.server, found.user.token)


def test_without_any_cluster_the_flags_are_named() -> None:
    """And the files that are not there."""
    with pytest.raises(SetupError) as caught:
        find_settings(environ={})
    expected = (
        "invalid configuration: no configuration has been provided; name a kubeconfig"
        " (clientConnection.kubeconfig of --config, or else --kubeconfig; KUBECONFIG)"
        " or a server (--master)"
    )
    assert expected == str(caught.value)
    with pytest.raises(SetupError, match="KUBECONFIG lists no file that exists: /nowhere"):
        find_settings(environ={"KUBECONFIG": "/nowhere"})


def test_user_agent_names_program_and_part() -> None:
    """It has the form of kube-scheduler's clients; the part follows the last slash."""
    assert re.fullmatch(r"kubesched/v\S+ \(\w+/\w+\) kubernetes/[\d.]+", user_agent())
    assert "scheduler" == user_agent("scheduler").rpartition("/")[2]


def test_impersonation_headers() -> None:
    """One header per group and value; keys are escaped."""
    other = Impersonation(user_name="j", uid="7", groups=("g", "h"), extra={"a/b": ("v", "w")})
    assert (
        ("Impersonate-User", "j"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Group", "h"),
        ("Impersonate-Extra-a%2Fb", "v"),
        ("Impersonate-Extra-a%2Fb", "w"),
    ) == impersonation_headers(other)
    assert () == impersonation_headers(Impersonation())


_PLUGIN = ExecSettings(command="c")
_FILE = "f"


@pytest.mark.parametrize(
    ("user", "tls", "class_"),
    [
        (UserSettings(), TlsSettings(), Credentials),
        (UserSettings(token_file=_FILE, exec=_PLUGIN), TlsSettings(), TokenFile),
        (UserSettings(exec=_PLUGIN), TlsSettings(), ExecPlugin),
        (UserSettings(exec=_PLUGIN, username="n"), TlsSettings(), Credentials),
        (UserSettings(exec=_PLUGIN), TlsSettings(certificate_pem=b"x"), Credentials),
    ],
)
def test_static_credentials_come_before_a_plugin(
    user: UserSettings, tls: TlsSettings, class_: type[object]
) -> None:
    """A plugin runs only without other credentials."""
    settings = ConnectionSettings(server="https://h", user=user, tls=tls)
    assert class_ is type(credentials_of(settings))


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://h", {}, ""),
        ("https://h", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://h", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://h", {"HTTP_PROXY": "http://p:1"}, ""),
        ("http://h", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("https://localhost:1", {"HTTPS_PROXY": "p"}, ""),
        ("https://127.0.0.1:1", {"HTTPS_PROXY": "p"}, ""),
        ("https://a.h", {"HTTPS_PROXY": "p", "NO_PROXY": "x, h"}, ""),
        ("https://h", {"HTTPS_PROXY": "p", "NO_PROXY": ".h"}, "http://p"),
        ("https://a.h", {"HTTPS_PROXY": "p", "NO_PROXY": ".h"}, ""),
        ("https://ah", {"HTTPS_PROXY": "p", "NO_PROXY": "h"}, "http://p"),
        ("https://10.1.2.3", {"HTTPS_PROXY": "p", "no_proxy": "10.0.0.0/8"}, ""),
        ("https://10.1.2.3", {"HTTPS_PROXY": "p", "no_proxy": "10.1.2.3"}, ""),
        ("https://h", {"HTTPS_PROXY": "p", "NO_PROXY": "*"}, ""),
    ],
)
def test_proxy_of_the_environment(server: str, environ: dict[str, str], proxy: str) -> None:
    """It depends on the scheme; loopback and NO_PROXY have none."""
    assert proxy == environment_proxy(server, environ)


def test_failed_connections_of_cancelled_requests_are_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Other unread exceptions are logged."""
    loop = new_event_loop()
    for error in (ssl.SSLError("verify failed"), ValueError("a bug")):
        loop.create_future().set_exception(error)
        gc.collect()
    loop.close()
    [record] = caplog.records
    assert record.exc_info is not None
    assert ValueError is record.exc_info[0]


# In a cluster.

_ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def _account(directory: Path) -> Path:
    (directory / "token").write_text("t\n")
    (directory / "ca.crt").write_text("CA")
    (directory / "namespace").write_text("space\n")
    return directory


def test_everything_is_found(tmp_path: Path) -> None:
    """Settings have server, authority, token and namespace."""
    settings = in_cluster_settings(_ENVIRON, _account(tmp_path))
    assert settings is not None
    assert "https://10.0.0.1:443" == settings.server
    assert str(tmp_path / "ca.crt") == settings.tls.ca_file
    assert ("t", str(tmp_path / "token")) == (settings.user.token, settings.user.token_file)
    assert "space" == settings.namespace


def test_ipv6_addresses(tmp_path: Path) -> None:
    """They are in brackets in URLs."""
    environ = {**_ENVIRON, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    settings = in_cluster_settings(environ, _account(tmp_path))
    assert settings is not None
    assert "https://[fd00::1]:443" == settings.server


def test_without_a_ca_file(tmp_path: Path) -> None:
    """The system's authorities are used, and it is logged, as upstream."""
    _account(tmp_path)
    (tmp_path / "ca.crt").unlink()
    settings = in_cluster_settings(_ENVIRON, tmp_path)
    assert settings is not None
    assert "" == settings.tls.ca_file


@pytest.mark.parametrize("missing", sorted(_ENVIRON))
def test_outside_of_a_cluster(tmp_path: Path, missing: str) -> None:
    """Each variable is needed, and so is the token."""
    environ = {name: value for name, value in _ENVIRON.items() if name != missing}
    assert in_cluster_settings(environ, _account(tmp_path)) is None
    assert in_cluster_settings(_ENVIRON, tmp_path / "nowhere") is None


def test_namespace(tmp_path: Path) -> None:
    """The variable wins over the file, and `default` is the last resort."""
    assert "default" == in_cluster_namespace({}, tmp_path)
    _account(tmp_path)
    assert "space" == in_cluster_namespace({}, tmp_path)
    assert "mine" == in_cluster_namespace({"POD_NAMESPACE": "mine"}, tmp_path)
