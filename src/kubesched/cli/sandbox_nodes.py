"""The template of a sandbox's nodes, from flags and a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from kubesched.api.quantity import QuantityError, canonical
from kubesched.api.yaml_syntax import YamlError, load_documents
from kubesched.apiserver.plain import Plain
from kubesched.cluster.nodes import NodeTemplate
from kubesched.inputs.errors import UserError

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_STORAGE: Final = "100Gi"
# The fields of a template that are used; empty for all. Others belong to one machine.
_TAKEN: Final = {
    "metadata": ("labels", "annotations"),
    "spec": (),
    "status": (
        "allocatable",
        "capacity",
        "declaredFeatures",
        "features",
        "images",
        "nodeInfo",
        "runtimeHandlers",
    ),
}


def node_template(flags: Mapping[str, Any]) -> NodeTemplate:
    """Return the template of the nodes.

    Raises:
        UserError: A flag or the file is invalid.
    """
    capacity = {
        "cpu": _quantity("--node-cpu", flags["node_cpu"]),
        "memory": _quantity("--node-memory", flags["node_memory"]),
        "pods": _quantity("--node-pods", flags["node_pods"]),
        "ephemeral-storage": _STORAGE,
    }
    for name, amount in _pairs("--node-resource", flags["node_resources"]):
        capacity[name] = _quantity("--node-resource", amount)
    file = flags["node_template"]
    return NodeTemplate(
        capacity,
        dict(_pairs("--node-label", flags["node_labels"])),
        tuple(_taint(text) for text in flags["node_taints"]),
        flags["zones"],
        node={} if file is None else read_node(file),
    )


def _quantity(option: str, text: str) -> str:
    try:
        return canonical(text)
    except QuantityError:
        raise UserError(f"{option}: {text!r} is no quantity; write 8, 500m or 32Gi") from None


def _pairs(option: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UserError(f"{option}: {text!r} has no name and value; write NAME=VALUE")
        pairs.append((name, value))
    return pairs


def _taint(text: str) -> Plain:
    named, _, effect = text.rpartition(":")
    key, equals, value = named.partition("=")
    if not key or effect not in _EFFECTS:
        effects = ", ".join(_EFFECTS)
        raise UserError(
            f"--node-taint: {text!r}: write KEY=VALUE:EFFECT; EFFECT is one of {effects}"
        )
    return (
        {"key": key, "value": value, "effect": effect}
        if equals
        else {
            "key": key,
            "effect": effect,
        }
    )


def read_node(file: Path) -> Plain:
    """Return the Node in a file, without the fields of one machine.

    Raises:
        UserError: It is not one Node.
    """
    try:
        documents = [one for _, one in load_documents(file.read_text(encoding="utf-8"))]
    except OSError as error:
        raise UserError(f"--node-template {file}: it cannot be read: {error.strerror}") from None
    except (YamlError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: {error}") from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UserError(f"{file}: holds {len(documents)} documents; a template is one Node")
    node: Plain = documents[0]
    if (node.get("apiVersion", "v1"), node.get("kind", "Node")) != ("v1", "Node"):
        raise UserError(f"{file}: is a {node.get('kind')}; a template is a Node of v1")
    for part in ("metadata", "spec", "status"):
        if not isinstance(node.get(part) or {}, dict):
            raise UserError(f"{file}: {part} is no object")
    found = {}
    for part, fields in _TAKEN.items():
        whole = node.get(part) or {}
        found[part] = {name: whole[name] for name in fields or whole if whole.get(name)}
    return found
