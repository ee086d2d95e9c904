from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubesched.client.connection_settings import UserSettings
from kubesched.client.credentials import (
    NO_CREDENTIAL,
    Credentials,
    CredentialsError,
    TokenFile,
    bearer,
    fixed_credential,
)


def test_fixed_credentials() -> None:
    """A token becomes a Bearer header, a name with its password a Basic one; neither changes."""
    word = "pä"
    assert "Bearer pä" == fixed_credential(UserSettings(token=f"{word}\n")).header
    named = UserSettings(username="u", password=word)
    assert "Basic dTpww6Q=" == fixed_credential(named).header
    assert NO_CREDENTIAL == fixed_credential(UserSettings())
    fixed = Credentials(bearer("t"))
    assert bearer("t") == asyncio.run(fixed.get()) == asyncio.run(fixed.renew(bearer("t")))


def test_token_file_is_read_again_after_fifty_seconds(tmp_path: Path) -> None:
    """A kubelet replaces the link to the file."""
    now = [0.0]
    (tmp_path / "one").write_text("t1\n")
    (tmp_path / "two").write_text("t2\n")
    link = tmp_path / "token"
    link.symlink_to(tmp_path / "one")
    file = TokenFile(str(link), lambda: now[0])
    assert bearer("t1") == asyncio.run(file.get())
    link.unlink()
    link.symlink_to(tmp_path / "two")
    now[0] = 49.0
    assert bearer("t1") == asyncio.run(file.get())
    now[0] = 50.0
    assert bearer("t2") == asyncio.run(file.get())


def test_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    """After a 401 the file is read, unless another request has read it since."""
    path = tmp_path / "token"
    path.write_text("t1")
    file = TokenFile(str(path), lambda: 0.0)
    assert bearer("t1") == asyncio.run(file.get())
    path.write_text("t2")
    assert bearer("t2") == asyncio.run(file.renew(bearer("t1")))
    path.write_text("t3")
    assert bearer("t2") == asyncio.run(file.renew(bearer("t1")))


def test_unreadable_token_file_keeps_the_last_token(tmp_path: Path) -> None:
    """The token given beside it, or the last one read; without either it is an error."""
    now = [0.0]
    path = tmp_path / "token"
    assert bearer("t0") == asyncio.run(TokenFile(str(path), lambda: 0.0, "t0").get())
    file = TokenFile(str(path), lambda: now[0])
    with pytest.raises(CredentialsError, match="failed to read token file"):
        asyncio.run(file.get())
    path.write_text(" \n")
    with pytest.raises(CredentialsError, match="read empty token from file"):
        asyncio.run(file.get())
    path.write_text("t1")
    assert bearer("t1") == asyncio.run(file.get())
    path.unlink()
    now[0] = 100.0
    assert bearer("t1") == asyncio.run(file.get())
