from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched.api.errors import ApiError
from kubesched.apiserver import managed_fields
from kubesched.apiserver.plain import Plain, deep_copy
from kubesched.apiserver.status import StatusError
from tests.contract.boundary import wording

from .recorded import differences, read
from .verdicts import operation_on, served

RECORDS = read("applies")
NOW = "2024-05-02T00:00:00Z"
LATER = "2024-05-02T00:00:09Z"
NOTE = "kubectl.kubernetes.io/last-applied-configuration"


CONFIG_MAPS = served("configmaps")


def _config_map(data: dict[str, str], **metadata: Any) -> Plain:
    meta = {"name": "c", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def _apply(
    current: Plain | None, applied: Plain, manager: str = "m", *, force: bool = False
) -> Plain:
    return managed_fields.apply(
        operation_on(CONFIG_MAPS, manager, force=force), current, applied, NOW
    )


def _recorded_apply(record: dict[str, Any]) -> Plain:
    resource = served(record["plural"])
    operation = operation_on(
        resource, record["manager"], record.get("sub", ""), force=record["force"]
    )
    return managed_fields.apply(operation, record["current"], record["applied"], NOW)


def _owned(value: Plain) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in value["metadata"]["managedFields"]}


@pytest.mark.parametrize(
    "record", [pytest.param(one, id=one["name"]) for one in RECORDS if one["status"] < 300]
)
def test_recorded_applies(record: dict[str, Any]) -> None:
    """Object and managed fields are those that kube-apiserver stored."""
    before = deep_copy(record["current"])
    actual = _recorded_apply(record)
    assert before == record["current"]
    recorded = record["result"]
    assert recorded["metadata"]["managedFields"] == actual["metadata"]["managedFields"]
    if record["name"] != "server-side-apply-pod-8":
        assert [] == list(differences(recorded, actual))


@pytest.mark.parametrize(
    "record", [pytest.param(one, id=one["name"]) for one in RECORDS if one["status"] >= 300]
)
def test_recorded_refusals(record: dict[str, Any]) -> None:
    """Code, reason, words and causes are kube-apiserver's."""
    with pytest.raises(ApiError) as caught:
        _recorded_apply(record)
    status, error = record["result"], caught.value
    assert isinstance(error, StatusError)
    assert status["code"] == error.code
    assert status.get("reason", "") == error.reason
    assert wording(status["message"]) == error.message
    assert status.get("details") == error.details


def test_several_conflicts_are_grouped_by_manager() -> None:
    """Each manager is named with its fields, and managers of updates with their version."""
    created = managed_fields.track(
        operation_on(CONFIG_MAPS, "maker"), None, _config_map({"a": "1", "b": "2"}), NOW
    )
    taken = _apply(created, _config_map({"c": "3"}), "applier")
    with pytest.raises(StatusError) as caught:
        _apply(taken, _config_map({"a": "9", "b": "9", "c": "9"}), "other")
    expected = (
        'Apply failed with 3 conflicts: conflicts with "applier":\n- .data.c\n'
        'conflicts with "maker" using v1:\n- .data.a\n- .data.b'
    )
    assert expected == caught.value.message
    assert caught.value.details is not None
    assert [".data.c", ".data.a", ".data.b"] == [
        cause["field"] for cause in caught.value.details["causes"]
    ]


def test_equal_values_are_owned_together() -> None:
    """A second manager with the same value shares the field; the first may leave it."""
    first = _apply(None, _config_map({"a": "1"}), "one")
    both = _apply(first, _config_map({"a": "1"}), "two")
    assert {"f:data": {"f:a": {}}} == _owned(both)["one"] == _owned(both)["two"]
    left = _apply(both, _config_map({}), "one")
    assert {"a": "1"} == left["data"]
    gone = _apply(left, _config_map({}), "two")
    assert {} == gone["data"]


def test_fields_of_updaters_stay() -> None:
    """A field that is no longer applied stays if an updater has changed it."""
    first = _apply(None, _config_map({"a": "1"}), "one")
    changed = managed_fields.track(
        operation_on(CONFIG_MAPS, "editor"), first, first | {"data": {"a": "2"}}, LATER
    )
    assert {"editor"} == set(_owned(changed))
    left = _apply(changed, _config_map({}), "one")
    assert {"a": "2"} == left["data"]


def test_objects_without_managers() -> None:
    """Before the first apply, their fields get a manager of their own."""
    applied = _apply(_config_map({"a": "1"}, uid="u"), _config_map({"b": "2"}))
    owned = _owned(applied)
    assert {"f:data": {".": {}, "f:a": {}}} == owned["before-first-apply"]
    assert {"f:data": {"f:b": {}}} == owned["m"]


def test_the_status_of_objects_without_managers() -> None:
    """The first apply to a status records who had the status before, not the specification."""
    node = served("nodes")
    kind = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    stored = {**kind, "spec": {"providerID": "p"}, "status": {"capacity": {"cpu": "1"}}}
    asked = {**kind, "status": {"phase": "x"}}
    applied = managed_fields.apply(operation_on(node, "m", "status"), stored, asked, NOW)
    before = {one["manager"]: one for one in applied["metadata"]["managedFields"]}
    assert {"f:status": {"f:capacity": {".": {}, "f:cpu": {}}}} == (
        before["before-first-apply"]["fieldsV1"]
    )
    assert "status" == before["before-first-apply"]["subresource"]


def test_migration_from_client_side_apply() -> None:
    """Fields in kubectl's annotation are no conflict for kubectl; the annotation is renewed."""
    note = json.dumps(_config_map({"a": "1"}))
    created = managed_fields.track(
        operation_on(CONFIG_MAPS, "kubectl-client-side-apply"),
        None,
        _config_map({"a": "1", "b": "1"}, annotations={NOTE: note}),
        NOW,
    )
    applied = _apply(created, _config_map({"a": "2"}), "kubectl")
    assert "2" == applied["data"]["a"]
    noted = applied["metadata"]["annotations"][NOTE]
    assert _config_map({"a": "2"}) == json.loads(noted)
    assert noted.endswith("}\n")
    with pytest.raises(StatusError, match=r"1 conflict: .*: \.data\.b"):
        _apply(created, _config_map({"a": "2", "b": "2"}), "kubectl")
    with pytest.raises(StatusError, match=r"1 conflict: .*: \.data\.a"):
        _apply(created, _config_map({"a": "2"}), "other")


def test_nothing_changes_when_only_times_would() -> None:
    """Applying the same again gives the object as it is."""
    first = _apply(None, _config_map({"a": "1"}))
    again = managed_fields.apply(
        operation_on(CONFIG_MAPS, "m"), first, _config_map({"a": "1"}), LATER
    )
    assert first == again


def test_unknown_fields() -> None:
    """All of them are reported, with 500."""
    with pytest.raises(StatusError) as caught:
        _apply(None, _config_map({}) | {"immutable": "x", "x": 1})
    assert 500 == caught.value.code
    assert caught.value.message.endswith(
        "errors:\n  .immutable: expected boolean\n  .x: field not declared in schema"
    )
