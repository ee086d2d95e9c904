"""Node shapes as text."""

from __future__ import annotations

import pytest

from kubesched.answers.node_shapes import parse_shape, shape_of
from kubesched.testing.builders import make_node


def test_every_key_of_a_shape() -> None:
    """Each one sets its field of the node."""
    shape = parse_shape(
        "cpu=8,memory=32Gi,nvidia.com/gpu=2,zone=a,label.pool=gpu,"
        "taint.dedicated=gpu:NoSchedule,price=0.4,name=gpu"
    )
    assert (shape.name, shape.price) == ("gpu", 0.4)
    amounts = {"pods": "110", "cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2"}
    assert amounts == shape.model.status.allocatable
    labels = shape.model.metadata.labels
    assert ("a", "gpu") == (labels["topology.kubernetes.io/zone"], labels["pool"])
    (taint,) = shape.model.spec.taints
    assert ("dedicated", "gpu", "NoSchedule") == (taint.key, taint.value, taint.effect)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cpu=8", "memory missing"),
        ("cpu,memory=1Gi", "cpu: write it as NAME=VALUE"),
        ("cpu=8,memory=1Gi,gpu=2", "gpu=2: gpu is not known"),
        ("cpu=-8,memory=1Gi", "cpu=-8: it must not be negative"),
        ("cpu=8,memory=1Gi,price=free", "price=free: a price is a positive number"),
        ("cpu=8,memory=1Gi,taint.a=b", "a=b: write a taint as KEY=VALUE:EFFECT"),
        ("cpu=8,memory=1Gi,label.a b=c", "a b=c: "),
    ],
)
def test_errors_name_the_wrong_key(text: str, problem: str) -> None:
    """The message has the text that could not be parsed."""
    with pytest.raises(ValueError, match=problem):
        parse_shape(text)


def test_huge_pages_in_words() -> None:
    """They are a resource without a domain."""
    shape = parse_shape("cpu=8,memory=32Gi,hugepages-2Mi=1Gi")
    assert "1Gi" == shape.model.status.allocatable["hugepages-2Mi"]


def test_the_shape_of_a_node_excludes_its_state() -> None:
    """Cordons and taints that controllers set are left out."""
    taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    taints.append({"key": "dedicated", "effect": "NoSchedule"})
    shape = shape_of(make_node("a", unschedulable=True, taints=taints, labels={"pool": "x"}))
    assert ["dedicated"] == [taint.key for taint in shape.model.spec.taints]
    assert not shape.model.spec.unschedulable
    assert shape.model.metadata.labels["pool"] == "x"
