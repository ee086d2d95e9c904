"""The output of kubectl for discovery documents and reviews.

Upstream: staging/src/k8s.io/kubectl/pkg/cmd/apiresources, cmd/auth (v1.36)
Differs:  rows are lists of cells, not lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Plain = dict[str, Any]
Rows = list[list[str]]


def api_versions(documents: Iterable[Plain]) -> Rows:
    """Return the output of `kubectl api-versions` for aggregated documents."""
    return [[version] for version in sorted({version for version, _ in _resources(documents)})]


def api_resources(command: str, documents: Iterable[Plain]) -> Rows:
    """Return the output of `kubectl api-resources`."""
    wanted = _flags(command)
    found = [
        (version, resource)
        for version, resource in _resources(documents)
        if version.partition("/")[0] == wanted["--api-group"]
        and ("--namespaced" not in wanted or resource["scope"] == "Cluster")
    ]
    if "-o name" in command:
        group = wanted["--api-group"]
        return [[f"{resource['resource']}.{group}"] for _, resource in found]
    header = ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    return [header, *(_row(version, resource) for version, resource in found)]


def _row(version: str, resource: Plain) -> list[str]:
    names = ",".join(resource.get("shortNames", ()))
    namespaced = str(resource["scope"] == "Namespaced").lower()
    cells = (resource["resource"], names, version, namespaced, resource["responseKind"]["kind"])
    return [cell for cell in cells if cell]


def _flags(command: str) -> Mapping[str, str]:
    split = (word.partition("=") for word in command.split() if word.startswith("--"))
    return {name: value for name, _, value in split}


def _resources(documents: Iterable[Plain]) -> Iterator[tuple[str, Plain]]:
    for document in documents:
        for group in document["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                full = f"{name}/{version['version']}" if name else version["version"]
                for resource in version["resources"]:
                    yield full, resource


def review(answer: Plain) -> Rows:
    """Return the output for a review: whether something is allowed, or the user."""
    status = answer["status"]
    if "userInfo" not in status:
        return [["yes" if status["allowed"] else "no"]]
    user = status["userInfo"]
    return [
        ["ATTRIBUTE", "VALUE"],
        ["Username", user["username"]],
        ["UID", user["uid"]],
        ["Groups", f"[{' '.join(user['groups'])}]"],
    ]
