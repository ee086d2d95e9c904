"""Bodies are read as Go's decoder reads them, and written as a real server writes them."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver.resources import RESOURCES, Resources
from kubesched.apiserver.schema import ListType, MapType, ObjectType, decoded, known_type, type_of
from kubesched.apiserver.values import Field, SchemaError, ValueType

from .recorded import read


def _type(kind: str, group: str = "", version: str = "v1") -> ObjectType:
    found = type_of(f"{group}/{version}" if group else version, kind)
    assert found is not None
    return found


def _pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], **spec}}


_FIELD = "json: cannot unmarshal {} into Go struct field {} of type {}"


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        pytest.param(
            "Pod",
            _pod(nodeName=1),
            _FIELD.format("number", "PodSpec.spec.nodeName", "string"),
            id="a number for a text",
        ),
        pytest.param(
            "Pod",
            _pod(priority="1"),
            _FIELD.format("string", "PodSpec.spec.priority", "int32"),
            id="a text for a number",
        ),
        pytest.param(
            "Pod",
            _pod(priority=2**31),
            _FIELD.format("number 2147483648", "PodSpec.spec.priority", "int32"),
            id="a number that is too large",
        ),
        pytest.param(
            "Pod",
            _pod(containers={}),
            _FIELD.format("object", "PodSpec.spec.containers", "array"),
            id="an object for a list",
        ),
        pytest.param(
            "Pod",
            _pod(containers=[5]),
            _FIELD.format("number", "PodSpec.spec.containers", "object"),
            id="a number for an object in a list",
        ),
        pytest.param(
            "Pod",
            _pod(volumes=[{"portworxVolume": {"volumeID": 5}}]),
            _FIELD.format(
                "number", "PortworxVolumeSource.spec.volumes.portworxVolume.volumeID", "string"
            ),
            id="a number for a text in a volume",
        ),
        pytest.param(
            "Pod",
            _pod(nodeSelector={"a": True}),
            _FIELD.format("bool", "PodSpec.spec.nodeSelector", "string"),
            id="a truth for a text in a map",
        ),
        pytest.param(
            "Pod",
            _pod(overhead={"cpu": "much"}),
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="a text that is not a quantity",
        ),
        pytest.param(
            "Pod",
            {"status": {"startTime": "2024-01-01"}},
            'parsing time "2024-01-01": it does not have the form of 2006-01-02T15:04:05Z',
            id="a text that is not a time",
        ),
        pytest.param(
            "ConfigMap",
            {"binaryData": {"a": "YQ="}},
            "illegal base64 data",
            id="a text that is no base 64",
        ),
    ],
)
def test_values_of_a_wrong_type(kind: str, body: dict[str, Any], message: str) -> None:
    """The messages are Go's."""
    with pytest.raises(SchemaError) as caught:
        decoded(_type(kind), body)
    assert message == str(caught.value)


def test_unparsable_texts_are_reported_before_wrong_types() -> None:
    """Go continues after a value of a wrong type, and stops at an unparsable one."""
    body = _pod(nodeName=1, overhead={"cpu": "much"})
    with pytest.raises(SchemaError, match="quantities must match"):
        decoded(_type("Pod"), body)


def test_unknown_fields_are_dropped_and_reported_once() -> None:
    """Messages about unknown fields are in the order of the body."""
    body = _pod(nodSelector={}, tolerations=[{"key": "a", "kee": "b"}])
    read_, unknown = decoded(_type("Pod"), body)
    paths = ("spec.nodSelector", "spec.tolerations[0].kee")
    assert [f'unknown field "{path}"' for path in paths] == unknown
    assert [{"key": "a"}] == read_["spec"]["tolerations"]


def test_a_body_with_many_unknown_fields() -> None:
    """As upstream, the first hundred are reported; each takes the same time."""
    _, unknown = decoded(_type("Pod"), {f"x{number}": 1 for number in range(50_000)})
    assert [f'unknown field "x{number}"' for number in range(100)] == unknown


@pytest.mark.parametrize(
    ("given", "written"),
    [
        pytest.param({"overhead": {"cpu": "0.1"}}, {"overhead": {"cpu": "100m"}}, id="quantity"),
        pytest.param({"overhead": {"cpu": 2}}, {"overhead": {"cpu": "2"}}, id="number"),
        pytest.param({"overhead": {"cpu": "1n"}}, {"overhead": {"cpu": "1m"}}, id="rounded"),
        pytest.param({"nodeName": ""}, {}, id="empty text"),
        pytest.param({"nodeName": None}, {}, id="null"),
        pytest.param({"volumes": []}, {}, id="empty list"),
        pytest.param({"nodeSelector": {}}, {}, id="empty map"),
        pytest.param({"priority": 0}, {"priority": 0}, id="a 0 that may be absent"),
        pytest.param({"hostNetwork": False}, {}, id="a false that may not be absent"),
        pytest.param(
            {"nodeSelector": {"b": "1", "a": "2"}},
            {"nodeSelector": {"a": "2", "b": "1"}},
            id="maps in order",
        ),
    ],
)
def test_written_form(given: dict[str, Any], written: dict[str, Any]) -> None:
    """Values are written in their canonical form, and what is empty is left out."""
    spec = {"containers": [{"name": "c"}], **given}
    read_, _ = decoded(_type("PodSpec"), spec)
    others = {"containers": [{"name": "c", "resources": {}}]}
    assert {**others, **written} == read_


def test_maps_are_written_in_the_order_of_their_keys() -> None:
    """Two bodies that mean the same are the same text."""
    read_, _ = decoded(_type("ConfigMap"), {"data": {"b": "1", "a": "2"}})
    assert ["a", "b"] == list(read_["data"])


def test_stored_objects_do_not_change() -> None:
    """Reading an object that a real server stored returns an equal one."""
    for case in read("changes"):
        old = case["old"]
        read_, unknown = decoded(_type(case["kind"], case["group"], case["version"]), old)
        assert (old, []) == (read_, unknown)


def test_unknown_kinds_have_no_type() -> None:
    """An unknown kind or version returns None."""
    assert type_of("v1", "Nothing") is None
    assert type_of("nowhere.example.com/v1", "Pod") is None


def test_every_kind_that_is_read_has_a_type() -> None:
    """Objects of the others, which configure the server itself, are kept as they are sent."""
    served = [
        resource
        for group_version in RESOURCES.group_versions
        for resource in group_version.resources
    ]
    untyped = [one for one in served if type_of(one.api_version, one.kind) is None]
    assert {
        *("APIService", "FlowSchema", "PriorityLevelConfiguration"),
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    } == {one.kind for one in untyped}
    assert all(one.type.others for one in untyped)


def test_types_that_fields_refer_to_exist() -> None:
    """Every field's type is in the tables, with every merge key."""
    seen: set[str] = set()
    waiting: list[ValueType] = [
        found
        for group_version in Resources(has_alpha=True).group_versions
        for one in group_version.resources
        if (found := type_of(one.api_version, one.kind)) is not None
    ]
    while waiting:
        value_type = waiting.pop()
        if isinstance(value_type, ListType | MapType):
            waiting.append(value_type.element)
        elif isinstance(value_type, ObjectType) and value_type.name not in seen:
            seen.add(value_type.name)
            waiting += [field.type for field in value_type.fields.values()]
            assert not [field for field in value_type.fields.values() if _lacks_keys(field)]
    assert len(seen) > 400


def _lacks_keys(field: Field) -> bool:
    keys = {*getattr(field.type, "keys", ()), field.merge_key} - {"", None}
    element = getattr(field.type, "element", None)
    return bool(keys) and not (isinstance(element, ObjectType) and keys <= element.fields.keys())


@pytest.mark.parametrize(
    ("owner", "field", "merge_key", "list_keys"),
    [
        pytest.param("PodSpec", "containers", "name", ("name",), id="containers"),
        pytest.param("PodSpec", "tolerations", None, (), id="tolerations"),
        pytest.param("PodSpec", "volumes", "name", ("name",), id="volumes"),
        pytest.param("PodSpec", "schedulingGates", "name", ("name",), id="gates"),
        pytest.param("PodStatus", "conditions", "type", ("type",), id="conditions"),
        pytest.param("PodStatus", "hostIPs", "ip", (), id="merged only"),
        pytest.param("NodeSpec", "taints", None, (), id="taints"),
        pytest.param("NodeSpec", "podCIDRs", "", (), id="a merged set"),
        pytest.param(
            "Container",
            "ports",
            "containerPort",
            ("containerPort", "protocol"),
            id="two kinds of keys",
        ),
    ],
)
def test_merge_keys(
    owner: str, field: str, merge_key: str | None, list_keys: tuple[str, ...]
) -> None:
    """Lists have the merge keys of the API."""
    found = _type(owner).fields[field]
    assert isinstance(found.type, ListType)
    assert (merge_key, list_keys) == (found.merge_key, found.type.keys)


def test_atomic_types() -> None:
    """Objects and maps can be marked as atomic."""
    fields = _type("PodSpec").fields
    assert _type("ObjectReference").is_whole({})
    assert not _type("PodSpec").is_whole({})
    assert fields["nodeSelector"].type.is_whole({})
    assert not _type("ObjectMeta", "meta").fields["labels"].type.is_whole({})
    assert not _type("PersistentVolumeSpec").fields["claimRef"].type.is_whole({})
    assert not fields["affinity"].type.is_whole({})


def test_fields_of_another_type() -> None:
    """A type that takes the fields of another one may replace some, and embed them in protobuf."""
    names = ("Container", "EphemeralContainer")
    container, ephemeral = (known_type("core_v1", name).fields for name in names)
    assert {*container, "targetContainerName"} == set(ephemeral)
    assert (4,) == container["args"].tag
    assert ("EphemeralContainer", (1, 4)) == (ephemeral["args"].owner, ephemeral["args"].tag)
    assert container["ports"].rules
    assert not ephemeral["ports"].rules


def test_kinds_are_found_by_api_version() -> None:
    """Group and version come as one text."""
    assert type_of("v1", "Pod") is _type("Pod")
    assert type_of("apps/v1", "Deployment") is _type("Deployment", "apps")
    assert type_of("", "Pod") is None


def test_empty_object() -> None:
    """It has the fields that Go writes for a zero value."""
    assert {"metadata": {}, "spec": {"containers": None}, "status": {}} == _type("Pod").zero()
    assert {"metadata": {}} == _type("ConfigMap").zero()
    group = "scheduling.k8s.io"
    assert {"metadata": {}, "value": 0} == _type("PriorityClass", group).zero()
    times = dict.fromkeys(("eventTime", "firstTimestamp", "lastTimestamp"))
    reporters = dict.fromkeys(("reportingComponent", "reportingInstance"), "")
    expected: Any = {"metadata": {}, "involvedObject": {}, "source": {}, **times, **reporters}
    assert expected == _type("Event").zero()


def test_schemas_of_custom_resources_are_kept_as_they_are() -> None:
    """The schema in a definition is stored unchanged."""
    schema = {"type": "object", "properties": {"a": {"not": {"allOf": [{"typ": 1, "title": ""}]}}}}
    versions = [{"schema": {"openAPIV3Schema": schema}}]
    definition = {"spec": {"versions": versions}}
    read_, unknown = decoded(_type("CustomResourceDefinition", "apiextensions.k8s.io"), definition)
    assert [] == unknown
    (version,) = read_["spec"]["versions"]
    assert schema == version["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param({"nodeName": "a"}, {"nodeName": "a"}, True, id="the same"),
        pytest.param({"nodeName": "a"}, {}, False, id="something and nothing"),
        pytest.param({"overhead": {"cpu": "1"}}, {"overhead": {"cpu": "1000m"}}, True, id="amount"),
        pytest.param({"overhead": {}}, {}, True, id="an empty map and none"),
        pytest.param({"volumes": []}, {}, True, id="an empty list and none"),
        pytest.param({"hostUsers": False}, {}, False, id="false and nothing"),
        pytest.param({"priority": 0}, {}, False, id="0 and nothing"),
        pytest.param({"runtimeClassName": ""}, {}, False, id="an empty text and nothing"),
        pytest.param({"securityContext": {}}, {}, False, id="an empty object and nothing"),
        pytest.param(
            {"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, False, id="in a list"
        ),
        pytest.param(
            {"tolerations": [{"key": "a"}]},
            {"tolerations": [{"key": "a"}, {"key": "a"}]},
            False,
            id="longer",
        ),
    ],
)
def test_equality(one: dict[str, Any], other: dict[str, Any], expected: bool) -> None:
    """Amounts are compared by value, and empty lists and maps are nothing."""
    pod_spec = type_of("v1", "PodSpec")
    assert pod_spec is not None
    assert expected is pod_spec.is_equal(one, other)
    assert expected is pod_spec.is_equal(other, one)
