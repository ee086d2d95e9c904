"""Writes docs/contract.md: how many records of real programs kubesched reproduces.

`--check` only compares and exits 1 if the page is stale.
"""

from __future__ import annotations

import gzip
import json
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "contract.md"
TESTS = ROOT / "tests" / "contract"

_HEAD = """# The contract

`tests/contract` has recordings of real Kubernetes 1.36 programs, and the tests compare kubesched
with them. This page lists the result of each recording. `tools/contract.py` generates it from
tables that the tests keep exact in both directions.

## The API server

Conversations with kube-apiserver, in `tests/contract/data/api`: status codes, headers, bodies, the
order of resource versions, and the events of every watch. {agreeing} of {all} agree.

| conversation | steps | agrees |
|---|---|---|
"""
_SCHEDULER = """
## The scheduler

Scenarios with kube-scheduler running, in `tests/contract/scheduler/data`. The recorded script runs
against our API server on virtual time, with kubesched's whole scheduler process in place of
kube-scheduler. The tests compare reads, every write with its body and response, events, elections,
exit codes, each change of each pod, and all objects at the end. Known differences: updates of
volumes and claims begin with a GET; the secure port reads its configmap and does not watch it;
requests are JSON, not protobuf.

| scenario | requests | verdict |
|---|---|---|
"""
_KUBECTL = """
## kubectl

Commands of kubectl against kube-apiserver, in `tests/contract/kubectl/data`. The recorded requests
are sent to our API server. The tests compare status codes, media types, errors, the sizes of JSON
responses, and kubectl's output where it depends on the server: tables, objects, names, reviews.
`tests/contract/kubectl/table.py` gives the reasons where sizes differ.

| conversation | commands | requests compared | outputs compared | agrees |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the page's text."""
    return _api() + _scheduler() + _kubectl()


def _api() -> str:
    table = _table("expected_differences.py")["EXPECTED_DIFFERENCES"]
    rows = []
    for name, recorded in _records("data/api"):
        expected = table.get(name)
        verdict = "yes" if expected is None else f"no: {expected.what}"
        rows.append(f"| `{name}` | {len(recorded['steps'])} | {verdict} |\n")
    return _HEAD.format(agreeing=len(rows) - len(table), all=len(rows)) + "".join(rows)


def _scheduler() -> str:
    table = _table("scheduler/table.py")["TABLE"]
    counts = {name: len(record["requests"]) for name, record in _records("scheduler/data")}
    rows = [f"| `{name}` | {counts.get(name, '')} | {table[name]} |\n" for name in sorted(table)]
    return _SCHEDULER + "".join(rows)


def _kubectl() -> str:
    tables = _table("kubectl/table.py")
    rows = []
    for name, record in _records("kubectl/data"):
        compared, different = tables["TABLE"][name], tables["DIFFERENCES"].get(name, ())
        verdict = "; ".join(f"{one.command}: {one.what}" for one in different) or "yes"
        commands = sum("command" in one for one in record["commands"])
        rows.append(
            f"| `{name}` | {commands} | {compared.requests} | {compared.outputs} | {verdict} |\n"
        )
    return _KUBECTL + "".join(rows)


def _table(path: str) -> dict[str, Any]:
    return runpy.run_path(str(TESTS / path))


def _records(folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield names and records, sorted by name."""
    for path in sorted((TESTS / folder).glob("*.json.gz")):
        yield path.name.removesuffix(".json.gz"), json.loads(gzip.decompress(path.read_bytes()))


def main() -> int:
    """Write the page, or compare it with `--check`."""
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        sys.stderr.write(f"{PAGE.relative_to(ROOT)} is stale: run tools/contract.py\n")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
