from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.client.connect import NotInClusterError, in_cluster_namespace, in_cluster_settings

_ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def _account(directory: Path) -> Path:
    (directory / "token").write_text("t\n")
    (directory / "ca.crt").write_text("CA")
    (directory / "namespace").write_text("space\n")
    return directory


def test_everything_is_found(tmp_path: Path) -> None:
    """Server, authority, token and namespace."""
    settings = in_cluster_settings(_ENVIRON, _account(tmp_path))
    assert "https://10.0.0.1:443" == settings.server
    assert str(tmp_path / "ca.crt") == settings.tls.ca_file
    assert ("t", str(tmp_path / "token")) == (settings.user.token, settings.user.token_file)
    assert "space" == settings.namespace


def test_ipv6_addresses(tmp_path: Path) -> None:
    """They are in brackets in URLs."""
    environ = {**_ENVIRON, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert "https://[fd00::1]:443" == in_cluster_settings(environ, _account(tmp_path)).server


def test_without_a_ca_file(tmp_path: Path) -> None:
    """The system's authorities are used, and it is logged, as upstream."""
    _account(tmp_path)
    (tmp_path / "ca.crt").unlink()
    assert "" == in_cluster_settings(_ENVIRON, tmp_path).tls.ca_file


@pytest.mark.parametrize("missing", sorted(_ENVIRON))
def test_outside_of_a_cluster(tmp_path: Path, missing: str) -> None:
    """Each variable is needed, and so is the token."""
    environ = {name: value for name, value in _ENVIRON.items() if name != missing}
    with pytest.raises(NotInClusterError, match="must be defined"):
        in_cluster_settings(environ, _account(tmp_path))
    with pytest.raises(NotInClusterError, match="token"):
        in_cluster_settings(_ENVIRON, tmp_path / "nowhere")


def test_namespace(tmp_path: Path) -> None:
    """The variable wins over the file, and `default` is the last resort."""
    assert "default" == in_cluster_namespace({}, tmp_path)
    _account(tmp_path)
    assert "space" == in_cluster_namespace({}, tmp_path)
    assert "mine" == in_cluster_namespace({"POD_NAMESPACE": "mine"}, tmp_path)
