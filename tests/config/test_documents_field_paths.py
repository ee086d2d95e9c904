"""Fields by their paths."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.field_errors import ConfigError
from kubesched.config.documents import with_fields

DOCUMENT = {"name": "a", "workloads": [{"name": "web", "pods": {"every": "1s"}}, {"name": "job"}]}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("name", {**DOCUMENT, "name": 7}),
        ("seed", {**DOCUMENT, "seed": 7}),
        ("faults.bind.slow", {**DOCUMENT, "faults": {"bind": {"slow": 7}}}),
        (
            "workloads[web].pods.every",
            {"name": "a", "workloads": [{"name": "web", "pods": {"every": 7}}, {"name": "job"}]},
        ),
        ("workloads[1]", {"name": "a", "workloads": [{"name": "web", "pods": {"every": "1s"}}, 7]}),
    ],
)
def test_a_field_gets_a_value_in_a_copy(path: str, expected: object) -> None:
    """By names and indices; a field that is missing is added."""
    before = repr(DOCUMENT)
    assert expected == with_fields(DOCUMENT, {path: 7})
    assert before == repr(DOCUMENT)


def test_unknown_paths() -> None:
    """All are reported, with what exists instead."""
    paths = ("workloads[db].pods", "name.first", "name[0]", "a..b", "")
    values: dict[str, Any] = dict.fromkeys(paths, 7)
    with pytest.raises(ConfigError) as refused:
        with_fields(DOCUMENT, values)
    assert [
        "workloads[db].pods: there is no element db; there is web, job",
        "name.first: first would be a field of 'a', which has none",
        "name[0]: [0] would be an element of something that is no list",
        "a..b: write a path such as workloads[0].pods.perHour",
        "write a path such as workloads[0].pods.perHour",
    ] == str(refused.value).splitlines()
