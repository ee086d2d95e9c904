from __future__ import annotations

from typing import Any

import pytest

from kubesched.apiserver import json_patch, merge_patch, strategic_merge
from kubesched.apiserver.patch_error import PatchError
from kubesched.apiserver.plain import deep_copy

from .recorded import differences, lost, read

RECORDS = read("patches")


def _apply(record: dict[str, Any]) -> Any:
    current, patch = record["current"], record["patch"]
    match record["type"]:
        case "application/json-patch+json":
            return json_patch.apply(current, patch)
        case "application/merge-patch+json":
            return merge_patch.apply(current, patch)
        case _:
            return strategic_merge.apply(current["kind"], current, patch)


def _params(*, is_applied: bool) -> list[Any]:
    return [
        pytest.param(record, id=record["name"])
        for record in RECORDS
        if (record["status"] == 200) == is_applied
    ]


@pytest.mark.parametrize("record", _params(is_applied=True))
def test_patched_objects_are_those_of_the_server(record: dict[str, Any]) -> None:
    """What a recorded patch makes of an object is what kube-apiserver stored."""
    before = deep_copy(record["current"])
    actual = _apply(record)
    assert [] == list(differences(record["result"], actual))
    assert before == record["current"]
    if "json-patch" not in record["type"]:
        assert [] == list(lost(record["current"], record["patch"], actual))


@pytest.mark.parametrize("record", _params(is_applied=False))
def test_refused_patches_are_refused_in_the_same_words(record: dict[str, Any]) -> None:
    """Code, reason, message and details of a refusal are kube-apiserver's."""
    with pytest.raises(PatchError) as caught:
        _apply(record)
    status = record["result"]
    error = caught.value
    assert status["code"] == error.status_code
    assert status.get("reason", "") == error.reason
    assert status["message"] == error.message
    assert status.get("details") == error.details
