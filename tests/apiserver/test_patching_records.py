from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver import patching, strategic_merge
from kubesched.apiserver.patching import merge
from kubesched.apiserver.plain import deep_copy
from kubesched.apiserver.schema import decoded, type_of
from kubesched.apiserver.status import StatusError, unfit_patch
from kubesched.apiserver.values import SchemaError

from .recorded import differences, lost, read

RECORDS = read("patches")


def _apply(record: dict[str, Any]) -> Any:
    current, patch = record["current"], record["patch"]
    match record["type"]:
        case "application/json-patch+json":
            return patching.apply_json_patch(current, patch)
        case "application/merge-patch+json":
            return merge(current, patch)
        case _:
            object_type = type_of(current["apiVersion"], current["kind"])
            assert object_type is not None
            return strategic_merge.apply(object_type, current, patch)


def _params(*, is_applied: bool) -> list[Any]:
    return [
        pytest.param(record, id=record["name"])
        for record in RECORDS
        if (record["status"] == 200) == is_applied
    ]


@pytest.mark.parametrize("record", _params(is_applied=True))
def test_patched_objects_are_those_of_the_server(record: dict[str, Any]) -> None:
    """Applying a recorded patch gives the object that kube-apiserver stored."""
    before = deep_copy(record["current"])
    actual = _apply(record)
    assert [] == list(differences(record["result"], actual))
    assert before == record["current"]
    if "json-patch" not in record["type"]:
        assert [] == list(lost(record["current"], record["patch"], actual))


@pytest.mark.parametrize("record", _params(is_applied=False))
def test_refused_patches_are_refused(record: dict[str, Any]) -> None:
    """Code, reason and fields of a refusal are kube-apiserver's."""
    with pytest.raises(StatusError) as caught:
        _check(record, _apply(record))
    status, error = record["result"], caught.value
    assert (status["code"], status.get("reason", "")) == (error.code, error.reason)
    recorded, found = (
        one.get("causes", ()) for one in (status.get("details") or {}, error.details or {})
    )
    assert [one["field"] for one in recorded] == [one["field"] for one in found]


def _check(record: dict[str, Any], changed: Any) -> None:
    """Refuse what is not an object of its kind, as the server does with what a patch makes."""
    object_type = type_of(record["current"]["apiVersion"], record["current"]["kind"])
    assert object_type is not None
    try:
        decoded(object_type, changed)
    except SchemaError as error:
        raise unfit_patch(str(error)) from None
