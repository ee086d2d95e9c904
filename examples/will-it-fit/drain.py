"""Splits a saved cluster for the question "can NODE be drained?".

`python drain.py NODE FILE` writes staying.json, the cluster without the node and its pods, and
moving.json, the pods of the node that have to go elsewhere.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]


def read(file: Path) -> list[Object]:
    """Return the objects of a dump in JSON or YAML."""
    text = file.read_text(encoding="utf-8")
    documents = [json.loads(text)] if text.startswith("{") else yaml.safe_load_all(text)
    return [item for document in documents for item in document.get("items", [document])]


def node_of(item: Object) -> str:
    """Return the name of a node, the node of a pod, and nothing for other objects."""
    names = {"Node": item["metadata"]["name"], "Pod": item.get("spec", {}).get("nodeName")}
    return names.get(item["kind"]) or ""


def moves(item: Object) -> bool:
    """Return whether the object is a pod that a drain moves."""
    owners = {owner["kind"] for owner in item["metadata"].get("ownerReferences", ())}
    return (
        item["kind"] == "Pod"
        and item.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
        and not owners & {"DaemonSet", "Node"}  # these pods end with their node
    )


def main(node: str, file: str) -> None:
    """Write both files."""
    items = read(Path(file))
    if not any(item["kind"] == "Node" and node_of(item) == node for item in items):
        sys.exit(f"{file}: there is no node {node}")
    parts = {
        "staying": [item for item in items if node_of(item) != node],
        "moving": [item for item in items if node_of(item) == node and moves(item)],
    }
    for name, part in parts.items():
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": part})
        Path(f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
