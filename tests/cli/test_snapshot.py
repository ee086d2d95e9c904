"""`kubesched snapshot`: a cluster in one file, without secrets, and with other names."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched.cli.snapshot import AnonymousNames
from kubesched.inputs.cluster_input import read_cluster
from kubesched.inputs.sources import ClusterSource

from .cluster import document, refused, run, shop, write
from .live import live
from .test_snapshot_fields import renamed_back

_SECRETS = Path(__file__).parent / "data" / "secrets.yaml"


def _report(*arguments: object) -> Any:
    return document("simulate", *arguments, code=0)


def test_nothing_secret_is_in_a_snapshot_of_a_live_cluster(tmp_path: Path) -> None:
    """Byte by byte; and every decision is the same, with every kind known."""
    file = tmp_path / "cluster.json.gz"
    objects = list(yaml.safe_load_all(_SECRETS.read_text()))
    with live(tmp_path, objects) as kubeconfig:
        found = run("snapshot", "--kubeconfig", kubeconfig, "-o", file)
        assert (0, "") == (found.exit_code, found.stdout)
        assert found.stderr.startswith(f"{file}: context dev: 3 nodes, 3 pods, ")
        expected = _report("--kubeconfig", kubeconfig)
    content = gzip.decompress(file.read_bytes())
    assert b'"app":"web"' in content
    for hidden in ("s3cr3t", "czNjcjN0", "PASSWORD", "managedFields", "last-applied", "vault"):
        assert hidden.encode() not in content
    assert b'"Secret"' not in content
    assert expected == _report(file)
    assert not expected["unknown"]
    # Its volume is there, and the image too.
    assert ["beta"] == [
        placed["node"] for placed in expected["placements"] if placed["pod"] == "shop/web-0"
    ]


def test_other_names_and_the_same_decisions(tmp_path: Path) -> None:
    """After renaming back, the report is that of the real cluster; no real name is in the file."""
    file = tmp_path / "cluster.json.gz"
    assert run("snapshot", _SECRETS, "--complete", "--anonymize", "-o", file).exit_code == 0
    content = gzip.decompress(file.read_bytes()).decode()
    for name in ("alpha", "shop", "web", "office", "owner", "disk-1", "handle-1", "fast", "login"):
        assert f'"{name}' not in content
    # What decisions compare with is kept.
    assert '"topology.kubernetes.io/zone"' in content
    assert '"disk.example.com"' in content
    source = read_cluster(ClusterSource((_SECRETS,), complete=True))
    back = renamed_back(json.dumps(_report(file)), AnonymousNames(source.objects))
    assert _report(_SECRETS, "--complete") == json.loads(back)


def test_complete_kinds_are_recorded(tmp_path: Path) -> None:
    """A snapshot is complete for the kinds that its input is complete for."""
    some, whole = tmp_path / "some.json", tmp_path / "whole.json"
    run("snapshot", _SECRETS, "-o", some)
    run("snapshot", _SECRETS, "--complete", "-o", whole)
    assert _report(_SECRETS)["unknown"] == _report(some)["unknown"] != []
    assert [] == _report(whole)["unknown"]


def test_stdout(tmp_path: Path) -> None:
    """A snapshot can be piped, one object per line."""
    found = run("snapshot", write(tmp_path, shop()), "-o", "-")
    lines = found.stdout.splitlines()
    assert len(lines) == 2 + len(shop())
    again = run("simulate", "-", stdin=found.stdout)
    assert again.stdout == run("simulate", write(tmp_path, shop())).stdout


def test_empty_cluster(tmp_path: Path) -> None:
    """Without objects the file is still a JSON List."""
    source = write(tmp_path, [])
    assert {"items": []}.items() <= json.loads(run("snapshot", source, "-o", "-").stdout).items()


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old file stays, and nothing lies beside it."""
    source = write(tmp_path, shop())
    file = tmp_path / "out.json"
    file.write_text("old")

    def fail(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kubesched.cli.snapshot.encode_json", fail)
    assert "No space left on device" == refused("snapshot", source, "-o", file)
    assert "old" == file.read_text()
    assert {source, file} == set(tmp_path.iterdir())


def test_a_file_that_is_read_is_not_overwritten(tmp_path: Path) -> None:
    """The remedy is another name."""
    source = write(tmp_path, shop())
    error = refused("snapshot", source, "-o", source)
    assert error.startswith(f"-o {source}: this would overwrite {source}, which is read")


def test_a_file_that_is_to_be_written(tmp_path: Path) -> None:
    """Files are read; the message has the option that writes one."""
    file = tmp_path / "monday.json"
    assert refused("snapshot", file).endswith(f"no such file to read; -o {file} writes it")
