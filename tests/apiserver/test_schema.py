from __future__ import annotations

import pytest

from kubesched.apiserver.resources import RESOURCES
from kubesched.apiserver.schema import Form, Shape, schema


def test_every_served_kind_has_a_struct() -> None:
    """Whatever can be stored has known fields."""
    served = [
        (resource.api_version, resource.kind)
        for group_version in RESOURCES.group_versions
        for resource in group_version.resources
    ]
    assert [] == [one for one in served if schema().struct_of(*one) is None]


def test_every_type_that_is_named_is_there() -> None:
    """No field leads to a type that the table lacks."""
    seen: set[str] = set()
    waiting = [struct.name for one in schema().kinds() if (struct := schema().struct_of(*one))]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for field in schema().struct(name).fields.values():
            shape: Shape | None = field.shape
            while shape is not None and shape.element is not None:
                shape = shape.element
            if shape is not None and shape.form is Form.STRUCT:
                waiting.append(shape.name)
    assert len(seen) > 400


@pytest.mark.parametrize(
    ("struct", "field", "merge_key", "list_keys"),
    [
        pytest.param("core.v1.PodSpec", "containers", "name", ("name",), id="containers"),
        pytest.param("core.v1.PodSpec", "tolerations", None, (), id="tolerations"),
        pytest.param("core.v1.PodSpec", "volumes", "name", ("name",), id="volumes"),
        pytest.param("core.v1.PodSpec", "schedulingGates", "name", ("name",), id="gates"),
        pytest.param("core.v1.PodStatus", "conditions", "type", ("type",), id="conditions"),
        pytest.param("core.v1.NodeSpec", "taints", None, (), id="taints"),
        pytest.param("core.v1.NodeSpec", "podCIDRs", "", (), id="a merged set"),
        pytest.param("meta.v1.ObjectMeta", "finalizers", "", (), id="finalizers"),
        pytest.param("meta.v1.ObjectMeta", "ownerReferences", "uid", ("uid",), id="owners"),
        pytest.param(
            "core.v1.Container",
            "ports",
            "containerPort",
            ("containerPort", "protocol"),
            id="two kinds of keys",
        ),
    ],
)
def test_merge_keys(
    struct: str, field: str, merge_key: str | None, list_keys: tuple[str, ...]
) -> None:
    """Lists merge by the keys that the API says."""
    found = schema().struct(struct).fields[field]
    assert merge_key == (found.merge_key if found.is_merged else None)
    assert list_keys == found.list_keys


def test_a_kind_of_any_version() -> None:
    """Without a version the first of that kind is found; unknown kinds are not."""
    found = schema().struct_of("", "Pod")
    assert found is not None
    assert "PodSpec" == schema().struct(found.fields["spec"].shape.name).go_name
    assert schema().struct_of("v2", "Pod") is None
    assert schema().struct_of("", "Cat") is None
