"""Documents of YAML and JSON as upstream reads them, hostile ones too; fields by their paths."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.config.documents import read_document, with_fields


def _read(text: str | bytes) -> Any:
    errors: list[FieldError] = []
    value = read_document(text, errors)
    assert not errors
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing\n---\n", None),
        ("a: yes", {"a": True}),
        ("v: &v {a: 1, b: 2}\nw: {<<: *v, a: 3}", {"v": {"a": 1, "b": 2}, "w": {"a": 3, "b": 2}}),
        ('{"a":\t[1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ("{a: b}", {"a": "b"}),
        (b"\xef\xbb\xbfa: 1", {"a": 1}),
        ("a: 1\n---\n# empty\n", {"a": 1}),
    ],
)
def test_values(text: str | bytes, value: object) -> None:
    """A text of YAML or JSON is read as its only document."""
    assert value == _read(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [{b: 1, b: 2, b: 3}]\na: [{b: 1, b: 2}]", id="yaml"),
        pytest.param('{"a": [{"b": 1, "b": 2}], "a": [{"b": 1, "b": 2}]}', id="json"),
    ],
)
def test_duplicate_keys(text: str) -> None:
    """A key that comes twice is a field error where it is; the last value counts."""
    errors: list[FieldError] = []
    assert read_document(text, errors) == {"a": [{"b": 2}]}
    assert [field_error.path for field_error in errors] == ["a", "a[0].b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "cannot read YAML: line 2, column 1", id="syntax"),
        pytest.param("a: 1\n---\nb: 2", "expected one document, found 2", id="two-documents"),
        pytest.param(b"a: \xff", "not UTF-8 text: byte 3 is 0xff", id="not-utf-8"),
        pytest.param("a: \x00", "cannot read YAML: unacceptable character", id="nul"),
        pytest.param("a: &a [*a]", "nested", id="endless"),
        pytest.param(
            "[" * 5000, "nested deeper than 200 levels", id="deep-yaml", marks=pytest.mark.slow
        ),
        pytest.param('{"a":' * 200 + "1" + "}" * 200, "nested too deeply", id="deep-json"),
        pytest.param("{[a]: b}", "found unhashable key", id="key"),
    ],
)
def test_unreadable(text: str | bytes, message: str) -> None:
    """Text that cannot be parsed has one error of one line."""
    with pytest.raises(ConfigError) as error:
        _read(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


# Fields by their paths.


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


def test_an_unknown_path_besides_a_name_that_is_no_text() -> None:
    """Templates may hold any values; the name is shown as it is."""
    with pytest.raises(ConfigError, match=r"^list\[x\]: there is no element x; there is 5, y$"):
        with_fields({"list": [{"name": 5}, {"name": "y"}]}, {"list[x]": 1})


def test_unknown_paths() -> None:
    """All are reported, with what exists instead."""
    large = "9" * 5000
    paths = ("workloads[db].pods", f"workloads[{large}]", "name.first", "name[0]", "a..b", "")
    values: dict[str, Any] = dict.fromkeys(paths, 7)
    with pytest.raises(ConfigError) as refused:
        with_fields(DOCUMENT, values)
    assert [
        "workloads[db].pods: there is no element db; there is web, job",
        f"workloads[{large}]: there is no element {large}; there is web, job",
        "name.first: first would be a field of 'a', which has none",
        "name[0]: [0] would be an element of something that is not a list",
        "a..b: write a path such as workloads[0].pods.perHour",
        "write a path such as workloads[0].pods.perHour",
    ] == str(refused.value).splitlines()
