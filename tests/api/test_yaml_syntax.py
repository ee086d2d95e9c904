"""YAML as Kubernetes parses it, and hostile YAML."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.yaml_syntax import YamlError, dump, load_documents


def _value(text: str) -> Any:
    ((_, document),) = load_documents(f"a: {text}\n")
    return document["a"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("y", True),
        ("On", True),
        ("off", False),
        ("N", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("nULL", "nULL"),
        ("5", 5),
        ("+5", 5),
        ("-0x1F", -31),
        ("0o14", 12),
        ("014", 12),
        ("0b101", 5),
        ("08", 8),
        ("1_000", 1000),
        ("1e3", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1),
        ("16.0", 16),
        ("18446744073709551615", 2**64 - 1),
        ("1e400", "1e400"),
        ("9" * 9999, "9" * 9999),
        ("22:30", "22:30"),
        ("22:30:15", "22:30:15"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("1.2.3.4", "1.2.3.4"),
        ("100m", "100m"),
        ("1Gi", "1Gi"),
        ("1e", "1e"),
        ("0x", "0x"),
        ("=", "="),
        ("'5'", "5"),
        ('"yes"', "yes"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("!!timestamp 2024-01-01", "2024-01-01"),
    ],
)
def test_scalars_are_kubernetes_own(text: str, value: object) -> None:
    """Scalars have the values that kubectl gives them."""
    found = _value(text)
    assert (value, type(value)) == (found, type(found))


def test_keys_are_text() -> None:
    """Numbers and booleans as keys become text."""
    ((_, document),) = load_documents("5: a\ntrue: b\n1.5: c\nx: d\n")
    assert {"5": "a", "true": "b", "1.5": "c", "x": "d"} == document


def test_empty_documents_are_left_out_but_counted() -> None:
    """Documents are numbered from 1."""
    assert [(2, {"a": 1}), (4, [])] == list(load_documents("---\n---\na: 1\n---\n# x\n---\n[]\n"))


def test_aliases_and_merges_are_resolved() -> None:
    """Earlier mappings of a list take precedence, and own keys over merges before them."""
    text = "x: &x {a: 1}\nw: {<<: [*x, {a: 2, b: 3}], b: 4}\nz: [*x, *x]\n"
    ((_, document),) = load_documents(text)
    assert {"x": {"a": 1}, "w": {"a": 1, "b": 4}, "z": [{"a": 1}, {"a": 1}]} == document


def test_a_merge_replaces_keys_before_it() -> None:
    """As for kubectl and kube-scheduler, which read YAML with go-yaml v2."""
    ((_, document),) = load_documents("{a: 1, b: 1, <<: {a: 2, c: 2}, c: 3}", rejects_repeats=True)
    assert {"a": 2, "b": 1, "c": 3} == document


@pytest.mark.parametrize("key", ["<<", "!!merge <<"])
def test_a_merge_may_have_its_tag(key: str) -> None:
    """Tools such as yq write it."""
    ((_, document),) = load_documents(f"x: &x {{a: 1}}\nw:\n  {key}: *x\n")
    assert {"x": {"a": 1}, "w": {"a": 1}} == document


def test_an_anchor_may_be_defined_again() -> None:
    """As for kubectl, an alias is what its name stands for at its place."""
    ((_, document),) = load_documents("a: &x 1\nb: *x\nc: &x {d: 2}\ne: *x\n")
    assert {"a": 1, "b": 1, "c": {"d": 2}, "e": {"d": 2}} == document


def test_merged_keys_are_not_duplicates() -> None:
    """A mapping may override keys that it merges."""
    text = "x: &x {a: 1}\nw: &w {<<: *x, a: 2}\nv: {<<: [*w, *x], a: 3}\nu: *w\n"
    ((_, document),) = load_documents(text, rejects_repeats=True)
    assert {"x": {"a": 1}, "w": {"a": 2}, "v": {"a": 3}, "u": {"a": 2}} == document


def _bomb(first: str, next_: str) -> str:
    names = "abcdefghijklm"
    lines = [f"a: &a {first}"]
    for before, name in pairwise(names):
        lines.append(f"{name}: &{name} " + next_.format(",".join([f"*{before}"] * 10)))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "did not find expected node content", id="open"),
        pytest.param("a:\n\t- b", "cannot start any token", id="tab"),
        pytest.param("a: .inf", "no infinity", id="infinity"),
        pytest.param("a: .nan", "no NaN", id="nan"),
        pytest.param("a: !!binary aGk=", "could not determine a constructor", id="binary"),
        pytest.param("a: !!set {x}", "could not determine a constructor", id="set"),
        pytest.param("a: !foo x", "could not determine a constructor", id="tag"),
        pytest.param("a: !!int x", "", id="no integer"),
        pytest.param("a: !!int [1]", "could not determine a constructor", id="list as integer"),
        pytest.param("a: !!bool x", "is not a boolean", id="no boolean"),
        pytest.param("? [1]\n: x", "unhashable", id="key is a list"),
        pytest.param("~: x", "a key is null", id="key is null"),
        pytest.param("a: *b", "undefined alias", id="alias of nothing"),
        pytest.param("{<<: 5}", "map merge", id="merge of a number"),
        pytest.param("&a [*a]", "nested deeper", id="list in itself"),
        pytest.param("&a {b: *a}", "nested deeper", id="map in itself"),
        pytest.param("&a {<<: *a}", "nested too deeply", id="merge of itself"),
        pytest.param("[" * 300_000, "nested deeper", id="deep flow"),
        pytest.param("{" * 300 + "}" * 300, "nested deeper", id="deep flow maps"),
        pytest.param("- " * 300_000 + "x", "nested deeper", id="deep block"),
        pytest.param(
            "\n".join(" " * at + "a:" for at in range(1000)), "nested deeper", id="deep indent"
        ),
        pytest.param(
            _bomb("[x,x,x,x]", "[{}]"),
            "aliases make it too large",
            id="alias bomb",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            _bomb("{x: 1}", "{{<<: [{}]}}"), "too large", id="merge bomb", marks=pytest.mark.slow
        ),
        pytest.param("a: \x00", "", id="control character"),
        pytest.param("%YAML 9.9\n---\na", "", id="version"),
    ],
)
def test_invalid_texts(text: str, message: str) -> None:
    """Parsing ends, and raises only YamlError."""
    if message:
        with pytest.raises(YamlError, match=message):
            list(load_documents(text))
        return
    _either_reads_or_refuses(text)


def _either_reads_or_refuses(text: str) -> None:
    try:
        list(load_documents(text))
    except YamlError:
        return


def test_many_brackets_in_texts_are_no_nesting() -> None:
    """Only documents that are really too deep are rejected."""
    ((_, document),) = load_documents("a: '" + "[" * 1000 + "'\nb: 1\n")
    assert {"a": "[" * 1000, "b": 1} == document


def test_errors_have_the_place() -> None:
    """The document, the line and the column, from 1."""
    with pytest.raises(YamlError) as caught:
        list(load_documents("a: 1\n---\nb: [1\nc: 2\n"))
    assert (2, 4, 2) == (caught.value.document, caught.value.line, caught.value.column)


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)
    | st.sampled_from(["y", "no", "1e3", "0o7", "1:30", "~", ".inf", "<<", "=", "2024-01-01", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ayn51", max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(_json.filter(lambda value: value is not None))
def test_round_trip(value: object) -> None:
    """Loading what `dump` wrote gives equal values."""
    ((_, found),) = load_documents(dump(value))
    assert value == found


@given(st.text("ab:-[]{}&*!<>|'\"#,? \n\t0.", max_size=30))
def test_any_text(text: str) -> None:
    """Any text is parsed or raises YamlError."""
    _either_reads_or_refuses(text)
