"""Access to a sandbox: whose kubeconfig a file is, and who can read it."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from kubesched.inputs.errors import UserError
from kubesched.sandbox.access import CONTEXT, SandboxAccess, check_ours, write_private


def test_kubeconfigs_of_others_are_not_touched(tmp_path: Path) -> None:
    """Only one of an earlier sandbox is written over."""
    file = tmp_path / "config"
    ours = f"current-context: {CONTEXT}\nclusters: "
    others = ["current-context: prod\nclusters: [{}]\n", "nonsense", "[1]", "a: {", ""]
    for text in (*others, ours + "[null]", ours + "[{cluster: [1]}]"):
        file.write_text(text)
        with pytest.raises(UserError, match="not from a sandbox"):
            check_ours(file)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        gone = {"cluster": {"server": f"https://127.0.0.1:{unused.getsockname()[1]}"}}
        for cluster in ({}, gone):
            file.write_text(yaml.safe_dump({"current-context": CONTEXT, "clusters": [cluster]}))
            check_ours(file)
    check_ours(tmp_path / "new")
    with pytest.raises(UserError, match=r"cannot be read: Is a directory"):
        check_ours(tmp_path)


def test_a_device_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have no end, or wait for somebody to type."""

    def read_text(*_: object, **__: object) -> str:
        raise AssertionError("it was read")

    monkeypatch.setattr(Path, "read_text", read_text)
    with pytest.raises(UserError, match="not from a sandbox"):
        check_ours(Path("/dev/zero"))


def test_a_server_that_took_over_the_port_is_no_sandbox(tmp_path: Path) -> None:
    """Its certificate is different, so the file is left over from a sandbox that ended."""
    folders = tmp_path / "old", tmp_path / "new"
    for folder in folders:
        folder.mkdir()
    old, new = (SandboxAccess(folder) for folder in folders)
    assert new.tls is not None
    file = tmp_path / "kubeconfig"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        thread = threading.Thread(target=_shake_hands, args=(listening, new.tls))
        thread.start()
        write_private(file, old.kubeconfig(url, "t"))
        check_ours(file)
        write_private(file, new.kubeconfig(url, "t"))
        with pytest.raises(UserError, match="belongs to a running sandbox"):
            check_ours(file)
        thread.join()


def _shake_hands(listening: socket.socket, tls: ssl.SSLContext) -> None:
    """Serve two connections no further than their beginning."""
    for _ in range(2):
        plain, _address = listening.accept()
        with plain, suppress(OSError), tls.wrap_socket(plain, server_side=True):
            pass


def test_permissions_of_the_file(tmp_path: Path) -> None:
    """Other users cannot read it, even if it existed before."""
    file = tmp_path / "config"
    file.write_text("old")
    file.chmod(0o644)
    write_private(file, "new")
    assert ("new", 0o600) == (file.read_text(), file.stat().st_mode & 0o777)
    assert [file] == list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    """No temporary file with tokens stays."""
    folder = tmp_path / "config"
    folder.mkdir()
    with pytest.raises(UserError, match="cannot be written"):
        write_private(folder, "token")
    assert [folder] == list(tmp_path.iterdir())


def test_without_tls_there_is_no_certificate(tmp_path: Path) -> None:
    """Tokens are drawn, nothing is written, and the kubeconfig names no authority."""
    access = SandboxAccess(tmp_path, has_tls=False)
    [cluster] = access.kubeconfig_dict("http://127.0.0.1:1", access.admin)["clusters"]
    assert {"server": "http://127.0.0.1:1"} == cluster["cluster"]
    assert [] == list(tmp_path.iterdir())
    assert {access.admin, access.scheduler} == set(access.users())


def test_access_of_a_cluster_that_is_kept(tmp_path: Path) -> None:
    """A later sandbox has the same tokens and certificate, until the file is half a year old."""
    kept = tmp_path / "data-access"
    first = SandboxAccess(tmp_path, kept_in=kept)
    first.keep(kept)
    second = SandboxAccess(tmp_path, kept_in=kept)
    url = "https://127.0.0.1:1"
    assert first.kubeconfig(url, first.admin) == second.kubeconfig(url, second.admin)
    assert first.scheduler == second.scheduler
    assert 0o600 == kept.stat().st_mode & 0o777
    os.utime(kept, (0, 0))
    third = SandboxAccess(tmp_path, kept_in=kept)
    third.keep(kept)
    assert first.admin != third.admin
    assert third.admin in kept.read_text()
    kept.write_text("{}")
    with pytest.raises(UserError, match=r"data-access: has no tokens .*; remove it for new ones"):
        SandboxAccess(tmp_path, kept_in=kept)
