"""Objects from files: all formats, all errors, and nothing raised but DecodeError."""

import bz2
import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.codec import DecodeError, Skipped, Source, decode_object, encode_json
from kubesched.api.core import Pod
from kubesched.api.decode import load, load_bytes
from kubesched.api.meta import ObjectMeta
from kubesched.api.yaml_syntax import dump


def _plain(name: str, kind: str = "Pod", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


A, B = _plain("a"), _plain("b", "Node")
TEXT_A, TEXT_B = json.dumps(A), json.dumps(B)


def _names(data: bytes | str, file: str = "x.json") -> list[str]:
    raw = data.encode() if isinstance(data, str) else data
    return [
        f"{type(loaded.object).__name__} {loaded.object.metadata.name}"
        for loaded in load_bytes(raw, file, Skipped())
    ]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("x.json", f"[{TEXT_A},{TEXT_B}]", id="array"),
        pytest.param("x.json", f"\n {TEXT_A}\n{TEXT_B}\n", id="lines"),
        pytest.param("x.jsonl", f"{TEXT_A}\r\n\r\n{TEXT_B}", id="lines with blank ones"),
        pytest.param("x.json", f"{TEXT_A}{TEXT_B}", id="one after the other"),
        pytest.param(
            "x.json", json.dumps(A, indent=1) + json.dumps(B, indent=1), id="over many lines"
        ),
        pytest.param(
            "x.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": [A, B]}), id="list"
        ),
        pytest.param(
            "x.txt",
            f"{json.dumps(A, indent=4)}\n==== START logs for container c of pod default/a ====\n"
            '{"ready": true==== END logs for container c of pod default/a ====\n'
            f"{json.dumps(B, indent=4)}\n",
            id="kubectl cluster-info dump",
        ),
        pytest.param("x.json", f"\ufeff[{TEXT_A},{TEXT_B}]", id="byte order mark"),
        pytest.param("x.yaml", f"[{TEXT_A},{TEXT_B}]", id="JSON in a YAML file"),
        pytest.param("x.yaml", f"---\n{TEXT_A}\n---\n---\n{TEXT_B}", id="documents"),
        pytest.param("-", f"{TEXT_A}\n{TEXT_B}", id="no suffix, lines"),
        pytest.param("-", f"{{apiVersion: v1, items: [{TEXT_A},{TEXT_B}], kind: List}}", id="flow"),
        pytest.param(
            "x.yml",
            "items:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n"
            "- {apiVersion: v1, kind: Node, metadata: {name: b}}\n"
            "kind: List\napiVersion: v1\n",
            id="block",
        ),
    ],
)
def test_every_form_is_read(file: str, text: str) -> None:
    """All formats give the same two objects, compressed or not."""
    assert ["Pod a", "Node b"] == _names(text, file)
    assert ["Pod a", "Node b"] == _names(gzip.compress(text.encode()), f"{file}.gz")


def test_items_of_a_typed_list_need_no_kind() -> None:
    """The items of a PodList need no kind of their own."""
    text = json.dumps(
        {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}]}
    )
    assert ["Pod a"] == _names(text)
    assert ["Pod a"] == _names(text, "x.yaml")


def test_unknown_kinds_are_counted() -> None:
    """Objects of unknown kinds are skipped and counted."""
    skipped = Skipped()
    foo = {"apiVersion": "x/v1", "kind": "Foo", "metadata": {}}
    data = json.dumps([foo, A, foo]).encode()
    assert 1 == len(list(load_bytes(data, "x.json", skipped)))
    assert {"x/v1/Foo": 2} == dict(skipped)


def test_objects_are_placed_in_namespaces() -> None:
    """As with kubectl: the given namespace by default, and none for cluster-scoped kinds."""
    pods = [A, _plain("c", metadata={"name": "c", "namespace": "n"})]
    data = json.dumps([*pods, _plain("b", "Node", metadata={"name": "b", "namespace": "n"})])
    found = load_bytes(data.encode(), "x.json", Skipped(), namespace="m")
    metadata = [loaded.object.metadata for loaded in found]
    assert ["m", "n", ""] == [meta.namespace for meta in metadata]


def test_sources_have_the_place() -> None:
    """File, document from 1, item from 0."""
    data = f"{TEXT_A}\n[{TEXT_A},{TEXT_B}]".encode()
    sources = [loaded.source for loaded in load_bytes(data, "x.json", Skipped())]
    assert [Source("x.json", 1), Source("x.json", 2, 0), Source("x.json", 2, 1)] == sources
    assert "x.json: document 2: items[1]" == str(sources[-1])


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        pytest.param(_plain("a", spec=None), Pod(), id="struct"),
        pytest.param(_plain("a", status={"conditions": None}), Pod(), id="list"),
        pytest.param(_plain("a", spec={"containers": [None]}), Pod(), id="item"),
        pytest.param(_plain("a", spec={"priority": None}), Pod(), id="optional"),
    ],
)
def test_null_is_absent(plain: dict[str, Any], expected: Pod) -> None:
    """Null fields are absent in JSON, YAML and plain values."""
    for raw in (plain, json.dumps(plain).encode()):
        found = decode_object(raw)
        assert isinstance(found, Pod)
        assert (expected.spec, expected.status) == (found.spec, found.status)


def test_null_in_a_map_is_empty() -> None:
    """Go keeps the key, so a null request counts as a request of 0."""
    plain = _plain(
        "a",
        metadata={"name": "a", "labels": {"k": None}},
        spec={"containers": [{"resources": {"requests": {"cpu": None}}}]},
    )
    pod = decode_object(json.dumps(plain).encode())
    assert isinstance(pod, Pod)
    assert {"k": ""} == pod.metadata.labels
    assert {"cpu": "0"} == pod.spec.containers[0].resources.requests


_NO_JSON = "it is not JSON: "


def _spec(**spec: Any) -> str:
    return json.dumps(_plain("a", spec=spec))


def _error(text: str | bytes, file: str) -> str:
    with pytest.raises(DecodeError) as caught:
        _names(text, file)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            '{"a": 1,}', _NO_JSON + "trailing comma in object at line 1, column 9", id="comma"
        ),
        pytest.param('{\n"a": 1', _NO_JSON + "input data was truncated", id="truncated"),
        pytest.param(
            '{"apiVersion": "v1", "metadata": {"name": "a"}}', "a: $.kind: missing", id="no kind"
        ),
        pytest.param(
            '{"kind": "Pod", "metadata": {"name": "a"}}',
            "Pod a: $.apiVersion: missing",
            id="no version",
        ),
        pytest.param(
            '{"kind": 5, "apiVersion": "v1"}',
            "$.kind: expected `str | null`, got `int`; write it in quotes",
            id="kind is a number",
        ),
        pytest.param(
            '{"kind": "Pod", "apiVersion": "v1"}', "Pod: $.metadata.name: missing", id="no name"
        ),
        pytest.param(
            f"[{TEXT_A}, 5]", "items[1]: expected `object`, got `int`", id="number for an object"
        ),
        pytest.param("5", "$: expected `object`, got another JSON value", id="number"),
        pytest.param(
            _spec(priority="high"),
            "Pod a: $.spec.priority: expected `int | null`, got `str`",
            id="type",
        ),
        pytest.param(
            _spec(priority=10**30),
            "Pod a: $.spec.priority: expected `int` <= 2147483647",
            id="huge",
        ),
        pytest.param(
            _spec(nodeName=5),
            "Pod a: $.spec.nodeName: expected `str`, got `int`; write it in quotes",
            id="text is a number",
        ),
        pytest.param(
            '{"apiVersion": "v1", "kind": "List", "items": {}}',
            "List: $.items: expected `array | null`, got `object`",
            id="items",
        ),
        pytest.param(
            '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},'
            ' "status": {"allocatable": {"cpu": 1, "a.b/c": []}}}',
            "Node n: $.status.allocatable.a.b/c: expected `int | float | str`, got `array`",
            id="entry of a map",
        ),
        pytest.param(
            '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},'
            ' "status": {"allocatable": {"cpu": 1' + "0" * 19 + "}}}",
            "Node n: $.status.allocatable[...]: expected `int` <= 9223372036854775807",
            id="huge quantity",
        ),
        pytest.param(
            json.dumps([[[[[[[[[[A]]]]]]]]]]),
            "items[0]: lists are nested deeper than 8 levels",
            id="lists in lists",
        ),
        pytest.param("[" * 1_000_000, "it is nested too deeply", id="deep"),
        pytest.param(
            _spec(x=0)[:-3] + "[" * 1_000_000 + "]" * 1_000_000 + "}}",
            "it is nested too deeply",
            id="deep in a field nobody reads",
        ),
        pytest.param(
            TEXT_A[:-1] + ', "kind": "Node"}', "Pod a: $.kind: it is there twice", id="two kinds"
        ),
    ],
)
def test_errors_in_json(text: str, message: str) -> None:
    """The message has the place and what was expected."""
    assert f"x.json: document 1: {message}" == _error(text, "x.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "a: 1\n---\nb: [1\nc: 2\n",
            "$.kind: missing; Kubernetes objects have apiVersion and kind",
            id="YAML, first",
        ),
        pytest.param(
            "version: 1\nduration: 1h\n",
            "$.kind: missing; Kubernetes objects have apiVersion and kind; a scenario is a file of "
            "its own, which `kubesched simulate` plays",
            id="a scenario",
        ),
        pytest.param(
            "b: [1\nc: 2\n",
            "it is not YAML for JSON: did not find expected ',' or ']' at line 2, column 2",
            id="YAML",
        ),
        pytest.param(
            "a: 1\nb:\n\tc: 1\n",
            "it is not YAML for JSON: found character that cannot start any token at "
            "line 3, column 1; indent with spaces instead of tabs",
            id="tabs",
        ),
        pytest.param(
            "{{ .Values.pods }}\n",
            "it is not YAML for JSON: found unhashable key at line 1, column 2; it is a "
            "template: render it first",
            id="template",
        ),
        pytest.param(
            "hello",
            "$: expected `object`, got `str`; `kubectl get -o json` or `-o yaml` prints objects",
            id="text",
        ),
        pytest.param(
            "{apiVersion: v1, kind: List, items: {a: 1}}",
            "$.items: expected `array`, got `object`",
            id="items in YAML",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {b: yes}}}",
            "Pod a: $.metadata.labels.b: expected `str`, got `bool`; write it in quotes",
            id="label",
        ),
        pytest.param(
            "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b},"
            " spec: {minAvailable: half}}",
            "PodDisruptionBudget b: $.spec.minAvailable: expected `str` matching regex '^[0-9]+%$'",
            id="budget",
        ),
        pytest.param(
            "kind: List\nitems: []\nkind: List\nitems: []\n",
            "it is not YAML for JSON: the key 'kind' is there twice;"
            " write --- between objects at line 3, column 1",
            id="two lists in one document",
        ),
    ],
)
def test_errors_in_yaml(text: str, message: str) -> None:
    """The same for YAML."""
    assert f"x.yaml: document 1: {message}" == _error(text, "x.yaml")


def test_an_error_in_a_later_document() -> None:
    """The lines are those of the file."""
    problem = "Expecting property name enclosed in double quotes at line 3, column 1"
    expected = f"x.json: document 2: {_NO_JSON}{problem}"
    assert expected == _error(f"{TEXT_A}\n{{\n'a'", "x.json")


def test_a_quantity_is_checked_at_once() -> None:
    """Errors have the path of the quantity or time."""
    text = _spec(containers=[{"resources": {"limits": {"cpu": "1 core"}}}])
    with pytest.raises(DecodeError) as caught:
        _names(text)
    assert "$.spec.containers[0].resources.limits.cpu" == caught.value.path
    assert "Pod a" == caught.value.object_name
    assert "'1 core'" in caught.value.problem


@pytest.mark.parametrize("before", [0, 1_048_575, 1_048_576])
def test_text_is_utf_8(before: int) -> None:
    """The position of the byte is reported, also across chunks."""
    with pytest.raises(DecodeError, match=rf"invalid start byte \(byte {before + 1}\)"):
        _names(b" " * before + b'"\xff"')
    assert ["Pod a"] == _names(" " * before + TEXT_A.replace("Pod", "P\\u006fd") + " " * 3)


def test_file_of_another_compression(tmp_path: Path) -> None:
    """The error says which compression can be read."""
    file = tmp_path / "cluster.json.bz2"
    file.write_bytes(bz2.compress(TEXT_A.encode()))
    with pytest.raises(DecodeError, match="of compressed files, only gzip can be read"):
        list(load([file]))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
@pytest.mark.parametrize("file", ["a.json", "a.yaml"])
def test_text_with_a_mark_of_its_encoding(file: str, encoding: str) -> None:
    """PowerShell writes UTF-16."""
    text = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ä"}}'
    [(found, _)] = load_bytes(text.encode(encoding), file, Skipped())
    assert isinstance(found, Pod)
    assert "ä" == found.metadata.name


def test_compressed_nonsense_is_refused() -> None:
    """A truncated file is an error."""
    for data in (b"\x1f\x8bxxxxxxxxxxxx", gzip.compress(TEXT_A.encode())[:-4]):
        with pytest.raises(DecodeError, match="it is not gzip"):
            _names(data)


def test_directories_are_read_to_the_bottom(tmp_path: Path) -> None:
    """Directories are read in order of names, without hidden files, other suffixes and links."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "z.yaml").write_text(TEXT_A)
    (tmp_path / "a.json").write_text(TEXT_B)
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(TEXT_B.encode()))
    (tmp_path / ".hidden.json").write_text("?")
    (tmp_path / "readme.md").write_text("?")
    (tmp_path / "b" / "up").symlink_to(tmp_path)
    files = [Path(loaded.source.file).name for loaded in load([tmp_path])]
    assert ["a.json", "z.yaml", "c.jsonl.gz"] == files


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The error names the directory or file."""
    with pytest.raises(DecodeError, match=r"no\.json: it cannot be read: No such"):
        list(load([tmp_path / "no.json"]))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("x.json", "", id="JSON"),
        pytest.param("x.jsonl", "\n\n", id="blank lines"),
        pytest.param("x.yaml", "# nothing\n---\n---\n", id="comments"),
        pytest.param("-", " ", id="stdin"),
    ],
)
def test_a_file_that_holds_nothing(file: str, text: str) -> None:
    """An empty file is an error that names it, compressed or not; an empty list is not."""
    for data in (text.encode(), gzip.compress(text.encode())):
        expected = f"{Source(file, 0)}: it is empty; expected objects"
        assert _error(data, file).startswith(expected)
    assert [] == _names("[]", file)
    assert [] == _names('{"apiVersion": "v1", "kind": "List", "items": []}', file)


def test_a_directory_that_holds_nothing(tmp_path: Path) -> None:
    """A directory without files to read is an error."""
    (tmp_path / "readme.md").write_text("?")
    with pytest.raises(DecodeError, match=r"no file in it ends in \.json, \.yaml, \.yml or "):
        list(load([tmp_path]))


@pytest.mark.parametrize("text", ["apiVersion: v1\n", "# a pod\nkind: Pod", "---\n", "- a: 1\n"])
def test_yaml_with_the_name_of_json(text: str) -> None:
    """The file's name determines its format, so the error suggests another name."""
    expected = "x.json: it is not JSON; if it is YAML, end its name in .yaml"
    assert expected == _error(text, "x.json")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT_A.encode())))
    (loaded,) = load(["-"])
    assert Source("-") == loaded.source


def test_an_object_of_an_unknown_kind() -> None:
    """`decode_object` raises for an unknown kind."""
    with pytest.raises(DecodeError, match="kind 'Foo' of apiVersion 'v1' is not known"):
        decode_object(_plain("a", "Foo"))


def test_encoded_objects_have_their_kind() -> None:
    """Encoded objects can be decoded again."""
    pod = Pod(metadata=ObjectMeta(name="a", labels={"on": "yes"}))
    assert {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"on": "yes"}},
    } == (json.loads(encode_json(pod)))
    again = decode_object(encode_json(pod))
    text = dump(json.loads(encode_json(pod)))
    (from_yaml,) = load_bytes(text.encode(), "x.yaml", Skipped(), namespace="")
    assert again == from_yaml.object


_FIELDS = ["metadata", "name", "spec", "containers", "resources", "requests", "cpu", "labels"]
_junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(["1Gi", "v1"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_FIELDS), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(_junk, st.sampled_from(["Pod", "Node", "List", "PodList", "Foo", None]))
@settings(max_examples=200)
def test_any_object_is_read_or_refused(junk: Any, kind: str | None) -> None:
    """Random input raises nothing but DecodeError, as JSON and as YAML."""
    plain = {"apiVersion": "v1", "kind": kind, "items": junk, "spec": junk, "metadata": junk}
    for value in (plain, junk):
        text = json.dumps(value)
        for file in ("x.json", "x.yaml"):
            try:
                list(load_bytes(text.encode(), file, Skipped()))
            except DecodeError as error:
                assert str(Source(file, 0)) in str(error)  # noqa: PT017 - most of it is fine


@given(st.binary(max_size=30) | st.text('{}[]",:ab1 \n', max_size=30).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Random input raises nothing but DecodeError."""
    for file in ("x.json", "x.yaml", "-"):
        try:
            list(load_bytes(data, file, Skipped()))
        except DecodeError as error:
            assert str(Source(file, 0)) in str(error)  # noqa: PT017 - most of it is fine


def test_a_generated_name_ends_in_1() -> None:
    """An object with `generateName` alone gets that name with 1 appended."""
    text = b'{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "run-"}}'
    (found,) = load_bytes(text, "job.json", Skipped())
    assert found.object.metadata.name == "run-1"
