"""Shapes of nodes that could be added: written in one line, or taken from a node.

Rejects:  shapes without cpu and memory, unknown words, quantities and taints that cannot be parsed;
          several of one name, or of which only some have a price.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import msgspec
from msgspec.structs import replace

from kubesched.api.core import Node, NodeSpec, NodeStatus, Taint
from kubesched.api.decode import load
from kubesched.api.meta import ObjectMeta
from kubesched.api.names import label_key_errors, label_value_errors
from kubesched.api.quantity import parse_quantity
from kubesched.api.tolerations import HARD_EFFECTS
from kubesched.api.well_known import ZONE
from kubesched.cluster.nodes import STATE_TAINTS
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import distinct_objects

_PODS: Final = "110"
_EFFECTS: Final = (*HARD_EFFECTS, "PreferNoSchedule")
_OWN_LABELS: Final = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
_EXAMPLE: Final = "cpu=8,memory=32Gi"


class NodeShape(msgspec.Struct, frozen=True):
    """A kind of node that could be added, and what one costs.

    Attributes:
        name: Short; nodes of the shape have names that begin with it.
        title: What answers call it: the name that it was given, or its amounts.
        model: A node of the shape.
        price: Of one node; None if it is not given.
    """

    name: str
    title: str
    model: Node
    price: float | None = None


def read_shapes(templates: Sequence[str]) -> tuple[NodeShape, ...]:
    """Return shapes that are written in one line, or are the node of a file: `FILE,price=P`.

    Raises:
        UserError: A shape is wrong, or does not go with the others.
    """
    shapes = []
    for number, text in enumerate(templates, 1):
        try:
            shapes.append(_read_shape(text, number))
        except ValueError as error:
            raise UserError(f"--node-template {text}: {error}") from error
    prices = [shape.price is None for shape in shapes]
    if any(prices) and not all(prices):
        raise UserError(
            f"--node-template {templates[prices.index(True)]}: it has no price, but another has; "
            "add ,price=P to all or to none"
        )
    used: set[str] = set()
    for shape in shapes:
        if shape.name in used:
            raise UserError(f"--node-template: two are named {shape.name}; add ,name=NAME to one")
        used.add(shape.name)
    return tuple(shapes)


def parse_shape(text: str, number: int = 1) -> NodeShape:
    """Return a shape from `cpu=8,memory=32Gi,zone=a,label.KEY=VALUE,taint.KEY=VALUE:EFFECT`.

    Further words are `name`, `price`, `pods` and resources such as `nvidia.com/gpu`. A shape
    without a name is named by its number.

    Raises:
        ValueError: A word is wrong; the message names it and the remedy.
    """
    amounts: dict[str, str] = {"pods": _PODS}
    labels = dict(_OWN_LABELS)
    taints: list[Taint] = []
    name, price = "", None
    described: list[str] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = word.partition("=")
        if key.startswith("taint."):
            taints.append(parse_taint(word.removeprefix("taint.")))
        elif not equals or not value:
            raise ValueError(f"{word}: write it as NAME=VALUE, such as {_EXAMPLE}")
        elif key == "name":
            name = value
        elif key == "price":
            price = parse_price(value)
            continue
        elif key == "zone" or key.startswith("label."):
            label = ZONE if key == "zone" else key.removeprefix("label.")
            labels[label] = _checked_label(label, value)
        else:
            amounts[key] = _checked_amount(key, value)
        described.append(word)
    missing = [one for one in ("cpu", "memory") if one not in amounts]
    if missing:
        raise ValueError(f"{' and '.join(missing)} missing; write it as {_EXAMPLE}")
    title = name or ",".join(described)
    name = name or f"new-{number}"
    model = Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(taints=tuple(taints)),
        status=NodeStatus(capacity=dict(amounts), allocatable=dict(amounts)),
    )
    return NodeShape(name, title, model, price)


def _read_shape(text: str, number: int) -> NodeShape:
    file, _, words = text.partition(",")
    if "=" in file:
        return parse_shape(text, number)
    price = None
    for word in filter(None, words.split(",")):
        if not word.startswith("price="):
            raise ValueError(f"{word}: after a file, only price=P can be given")
        price = parse_price(word.removeprefix("price="))
    try:
        loaded = [*load([Path(file)])]
    except OSError as error:
        raise ValueError(str(error)) from error
    if len(loaded) != 1 or not isinstance(loaded[0].object, Node):
        raise ValueError(f"{file} does not hold one Node; write a shape such as cpu=8,memory=32Gi")
    [node] = distinct_objects(loaded)
    return shape_of(cast("Node", node), price)


def shape_of(node: Node, price: float | None = None) -> NodeShape:
    """Return the shape of an existing node, without its pods, cordon and state taints."""
    taints = tuple(taint for taint in node.spec.taints if taint.key not in STATE_TAINTS)
    name = node.metadata.name
    return NodeShape(
        name,
        name,
        replace(
            node,
            metadata=ObjectMeta(
                name=f"{name}-new",
                labels=node.metadata.labels,
                annotations=node.metadata.annotations,
            ),
            spec=replace(node.spec, taints=taints, unschedulable=False),
            status=replace(node.status, conditions=()),
        ),
        price,
    )


def parse_taint(text: str) -> Taint:
    """Return a taint from `KEY=VALUE:EFFECT` or `KEY:EFFECT`.

    Raises:
        ValueError: It is something else.
    """
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    if effect not in _EFFECTS or not key:
        raise ValueError(
            f"{text}: write a taint as KEY=VALUE:EFFECT, with an effect of {', '.join(_EFFECTS)}"
        )
    _checked_label(key, value)
    return Taint(key=key, value=value, effect=effect)


def parse_price(text: str) -> float:
    """Return a price; raises ValueError if it is not a positive number."""
    try:
        price = float(text)
    except ValueError:
        price = 0.0
    if not 0.0 < price < float("inf"):
        raise ValueError(f"price={text}: a price is a positive number, such as 0.4")
    return price


def _checked_amount(key: str, value: str) -> str:
    if key not in ("cpu", "memory", "pods", "ephemeral-storage") and "/" not in key:
        raise ValueError(
            f"{key}={value}: {key} is not known; use cpu, memory, pods, ephemeral-storage, a "
            "resource with a domain, zone, label.KEY, taint.KEY, name or price"
        )
    try:
        amount = parse_quantity(value)
    except ValueError as error:
        raise ValueError(f"{key}={value}: {error}") from None
    if amount.sign < 0:
        raise ValueError(f"{key}={value}: it must not be negative")
    return value


def _checked_label(key: str, value: str) -> str:
    errors = [*label_key_errors(key), *label_value_errors(value)]
    if errors:
        raise ValueError(f"{key}={value}: {errors[0]}")
    return value
