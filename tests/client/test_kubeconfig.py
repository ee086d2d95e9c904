from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from kubesched.api.errors import SetupError
from kubesched.client.connection_settings import EnvVariable, Impersonation, server_url
from kubesched.client.kubeconfig import Kubeconfig, load_kubeconfig, merged_kubeconfig


def _content(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://h:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }


def _write(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return str(path)


def _load(
    tmp_path: Path, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None
) -> Kubeconfig:
    return load_kubeconfig(_write(tmp_path / "config", _content(cluster, user)))


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_everything_is_read(tmp_path: Path) -> None:
    """Every field of a cluster, a user and a context ends in its place."""
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(name)
    content = _content(
        {
            "server": "https://h:6443/prefix/",
            "tls-server-name": "name",
            "certificate-authority": "ca",
            "proxy-url": "http://proxy:3128",
        },
        {
            "client-certificate": "cert",
            "client-key": str(tmp_path / "key"),
            "tokenFile": "ca",
            "as": "jane",
            "as-uid": "7",
            "as-groups": ["a", "b"],
            "as-user-extra": {"k": ["v", "w"]},
        },
    )
    content["contexts"][0]["context"]["namespace"] = "space"
    settings = load_kubeconfig(_write(tmp_path / "config", content)).settings()
    assert "https://h:6443/prefix" == settings.server
    assert ("name", str(tmp_path / "ca")) == (settings.tls.server_name, settings.tls.ca_file)
    assert "http://proxy:3128" == settings.proxy_url
    assert str(tmp_path / "cert") == settings.tls.certificate_file
    assert str(tmp_path / "key") == settings.tls.key_file
    assert str(tmp_path / "ca") == settings.user.token_file
    assert "space" == settings.namespace
    expected = Impersonation(user_name="jane", uid="7", groups=("a", "b"), extra={"k": ("v", "w")})
    assert expected == settings.user.impersonation


def test_embedded_text_wins_over_files(tmp_path: Path) -> None:
    """*-data fields are decoded, and files beside them are not even looked at."""
    cluster = {"certificate-authority": "no", "certificate-authority-data": _b64(b"CA")}
    user = {
        "client-certificate": "no",
        "client-certificate-data": _b64(b"CERT"),
        "client-key": "no",
        "client-key-data": _b64(b"KEY"),
    }
    tls = _load(tmp_path, cluster, user).settings().tls
    assert (b"CA", b"CERT", b"KEY") == (tls.ca_pem, tls.certificate_pem, tls.key_pem)


def test_first_file_to_name_a_thing_wins(tmp_path: Path) -> None:
    """Entries are taken whole; relative paths start at their own file."""
    one = _content(user={"token": "t1"})
    one["current-context"] = ""
    two = _content({"server": "https://other"}, {"username": "n", "tokenFile": "token"})
    two["current-context"] = "there"
    two["users"].append({"name": "v", "user": {"tokenFile": "token"}})
    two["contexts"].append({"name": "there", "context": {"cluster": "c", "user": "v"}})
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "token").write_text("t2")
    files = [_write(tmp_path / "a" / "one", one), _write(tmp_path / "b" / "two", two)]
    listed = os.pathsep.join([files[0], "", str(tmp_path / "missing"), files[1], files[0]])
    merged = merged_kubeconfig({"KUBECONFIG": listed})
    assert files == merged.files
    here = merged.settings("here")
    assert ("https://h:6443", "t1", "") == (here.server, here.user.token, here.user.username)
    there = merged.settings()
    assert "https://h:6443" == there.server
    assert str(tmp_path / "b" / "token") == there.user.token_file


def test_home_directory_is_read_without_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """~/.kube/config, and nothing if it is not there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert [] == merged_kubeconfig({}).files
    path = _write(tmp_path / ".kube" / "config", _content())
    assert [path] == merged_kubeconfig({}).files
    assert [] == merged_kubeconfig({"KUBECONFIG": "/nowhere"}).files


def test_master_wins_over_the_server(tmp_path: Path) -> None:
    """The address is replaced, and with it the name to look for; credentials stay."""
    kubeconfig = _load(tmp_path, {"tls-server-name": "name"}, {"token": "t"})
    settings = kubeconfig.settings(server="https://m")
    assert ("https://m", "", "t") == (
        settings.server,
        settings.tls.server_name,
        settings.user.token,
    )


@pytest.mark.parametrize(
    ("server", "is_sent"),
    [
        ("https://h", True),
        ("http://h:8080", False),
        ("http://10.0.0.1", False),
        ("http://localhost:8080", True),
        ("http://127.0.0.1:8080", True),
        ("http://[::1]:8080", True),
    ],
)
def test_credentials_are_not_shown_to_everybody(tmp_path: Path, server: str, is_sent: bool) -> None:
    """Over plain HTTP they go to this machine alone; who is impersonated always does."""
    kubeconfig = _load(tmp_path, {"server": server}, {"token": "t", "as": "jane"})
    user = kubeconfig.settings().user
    assert ("t" if is_sent else "") == user.token
    assert "jane" == user.impersonation.user_name


def test_exec_plugin_is_read(tmp_path: Path) -> None:
    """A path is relative to the file, a bare name is not; the cluster is passed on request."""
    cluster = {
        "certificate-authority-data": _b64(b"CA"),
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}],
    }
    plugin: dict[str, Any] = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "bin/plug",
        "args": ["a"],
        "env": [{"name": "N", "value": "V"}],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
        "installHint": "hint",
    }
    found = _load(tmp_path, cluster, {"exec": plugin}).settings().user.exec
    assert found is not None
    assert str(tmp_path / "bin" / "plug") == found.command
    assert (("a",), (EnvVariable("N", "V"),), "hint") == (found.args, found.env, found.install_hint)
    assert {
        "server": "https://h:6443",
        "certificate-authority-data": _b64(b"CA"),
        "config": {"a": 1},
    } == found.cluster
    bare = _load(
        tmp_path, user={"exec": {**plugin, "command": "plug", "provideClusterInfo": False}}
    )
    found = bare.settings().user.exec
    assert found is not None
    assert ("plug", None) == (found.command, found.cluster)


_EXEC = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "c",
    "interactiveMode": "Never",
}


@pytest.mark.parametrize(
    ("cluster", "user", "problem"),
    [
        ({"server": "https://h:x"}, {}, "clusters[c].cluster.server: host must be"),
        ({"server": "ftp://h"}, {}, "must be http or https"),
        ({"server": ""}, {}, "clusters[c].cluster.server: no server found"),
        (
            {"certificate-authority-data": "%"},
            {},
            "clusters[c].cluster.certificate-authority-data: is not base64",
        ),
        (
            {"certificate-authority": "nothing"},
            {},
            "clusters[c].cluster.certificate-authority: unable to read ",
        ),
        (
            {"insecure-skip-tls-verify": True, "certificate-authority-data": _b64(b"x")},
            {},
            "clusters[c].cluster.insecure-skip-tls-verify: is not allowed together with",
        ),
        ({"proxy-url": "socks5://h"}, {}, "cluster.proxy-url: unsupported scheme"),
        ({"server": "https://a b:6443"}, {}, "cluster.server: host must be a URL or a host:port"),
        pytest.param(
            {},
            {"auth-provider": {"name": "gcp"}},
            "users[u].user.auth-provider: the auth provider 'gcp' was removed from Kubernetes;"
            " use an exec plugin instead",
            id="auth provider",
        ),
        (
            {},
            {"token": "t", "username": "n"},
            "users[u].user.token: more than one authentication method found",
        ),
        ({}, {"client-certificate-data": _b64(b"x")}, "user.client-key: client-key-data or"),
        ({}, {"tokenFile": "nothing"}, "user.tokenFile: unable to read"),
        ({}, {"as-groups": ["g"]}, "user.as: requesting uid, groups"),
        ({}, {"exec": {**_EXEC, "command": ""}}, "exec.command: must be"),
        (
            {},
            {"exec": {**_EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            "exec.apiVersion: invalid apiVersion",
        ),
        ({}, {"exec": {**_EXEC, "interactiveMode": ""}}, "exec.interactiveMode: must be specified"),
        ({}, {"exec": {**_EXEC, "interactiveMode": "Maybe"}}, "invalid 'Maybe'"),
        ({}, {"exec": {**_EXEC, "env": [{"value": "v"}]}}, "exec.env[0].name: must"),
    ],
)
def test_errors_name_file_field_and_remedy(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], problem: str
) -> None:
    """One line that begins with the file."""
    with pytest.raises(SetupError) as caught:
        _load(tmp_path, cluster, user).settings()
    message = str(caught.value)
    assert problem in message
    assert message.startswith(str(tmp_path / "config"))
    assert "\n" not in message


def test_yaml_is_read_as_kubernetes_does(tmp_path: Path) -> None:
    """Null means absent, and numbers are no text."""
    path = tmp_path / "config"
    path.write_text("clusters:\nusers: null\ncurrent-context:\n")
    assert "" == load_kubeconfig(str(path)).current_context
    path.write_text("users: [{name: u, user: {token: 1234}}]")
    with pytest.raises(SetupError, match="Expected `str`, got `int`"):
        load_kubeconfig(str(path))


def test_older_plugins_need_no_mode(tmp_path: Path) -> None:
    """v1beta1 is interactive if it can be."""
    plugin = {**_EXEC, "apiVersion": "client.authentication.k8s.io/v1beta1", "interactiveMode": ""}
    found = _load(tmp_path, user={"exec": plugin}).settings().user.exec
    assert found is not None
    assert "" == found.interactive_mode


def test_missing_things_are_named_with_what_there_is(tmp_path: Path) -> None:
    """The message lists the contexts, clusters or users there are."""
    kubeconfig = _load(tmp_path)
    with pytest.raises(SetupError, match="specified context: there; there are: here"):
        kubeconfig.settings("there")
    content = _content()
    content["contexts"][0]["context"]["user"] = "w"
    broken = load_kubeconfig(_write(tmp_path / "broken", content))
    with pytest.raises(SetupError, match="there is no user named 'w'; there are: u"):
        broken.settings()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "error loading config file"),
        ("- a", "it is not a kubeconfig"),
        ("clusters: 3", "Expected `array"),
        ("kind: Pod\napiVersion: v1", "it is a 'Pod' of 'v1', not a Config of v1"),
    ],
)
def test_files_that_are_no_kubeconfig(tmp_path: Path, text: str, problem: str) -> None:
    """The file is named."""
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(SetupError) as caught:
        load_kubeconfig(str(path))
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    """The message is kube-scheduler's."""
    path = tmp_path / "nosuch.kubeconfig"
    with pytest.raises(SetupError) as caught:
        load_kubeconfig(str(path))
    assert f"stat {path}: no such file or directory" == str(caught.value)


def test_empty_file(tmp_path: Path) -> None:
    """The message is kube-scheduler's."""
    path = tmp_path / "config"
    path.write_text("")
    with pytest.raises(SetupError, match="no configuration has been provided"):
        load_kubeconfig(str(path)).settings()


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("https://h:1/a/", "https://h:1/a"),
        ("https://h/?q=1#f", "https://h"),
        ("h:8080", "http://h:8080"),
        ("10.0.0.1", "http://10.0.0.1"),
        ("", "http://localhost"),
    ],
)
def test_addresses(given: str, url: str) -> None:
    """Incomplete addresses are completed as by client-go."""
    assert url == server_url(given)
