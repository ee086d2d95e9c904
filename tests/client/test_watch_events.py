"""What a server writes in watches and lists is read in one pass, or in two where it must be."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from kubesched.api.core import Node, Pod
from kubesched.api.errors import ApiError
from kubesched.api.meta import KubeObject
from kubesched.api.scheme import kind_of
from kubesched.api.storage import StorageClass
from kubesched.client import watch_events
from kubesched.client.watch_events import Bookmark, WatchDecoder, WatchEvent

POD: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "p", "namespace": "default", "resourceVersion": "7"},
    "spec": {"containers": [{"name": "main", "image": "pause"}], "nodeName": "n1"},
    "status": {"phase": "Running"},
}


def line(word: str, item: Any) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": word, "object": item}).encode()


def read(item: Any) -> KubeObject:
    """Return the object of an ADDED line."""
    event = WatchDecoder(kind_of(Pod)).event(line("ADDED", item))
    assert isinstance(event, WatchEvent)
    return event.object


@pytest.mark.parametrize("word", ["ADDED", "MODIFIED", "DELETED", "UNHEARD_OF"])
def test_objects_come_typed(word: str) -> None:
    """The word is kept, the object is of its class."""
    event = WatchDecoder(kind_of(Pod)).event(line(word, POD))
    assert WatchEvent(word, msgspec.convert(POD, Pod)) == event


def test_nulls_are_absent() -> None:
    """Objects with nulls are decoded like those of files."""
    with_nulls = POD | {
        "metadata": POD["metadata"] | {"labels": {"a": None}, "finalizers": None},
        "spec": {"containers": None, "tolerations": [None, {"key": "k"}]},
    }
    pod = read(with_nulls)
    assert isinstance(pod, Pod)
    assert {"a": ""} == pod.metadata.labels
    assert ["k"] == [toleration.key for toleration in pod.spec.tolerations]
    assert ((), "Running") == (pod.spec.containers, pod.status.phase)


@pytest.mark.parametrize("type_", [Pod, Node, StorageClass])
@pytest.mark.parametrize("annotation", ["true", "false", ""])
def test_bookmarks(type_: type[Any], annotation: str) -> None:
    """A bookmark is a version, whatever else its object holds; only "true" ends initial events."""
    annotations = {"annotations": {"k8s.io/initial-events-end": annotation}} if annotation else {}
    item = {
        "kind": "Whatever",
        "metadata": {"resourceVersion": "12", "creationTimestamp": None, **annotations},
        "spec": {"containers": None},
        "status": {},
    }
    bookmark = WatchDecoder(kind_of(type_)).event(line("BOOKMARK", item))
    assert Bookmark("12", annotation == "true") == bookmark


@pytest.mark.parametrize("type_", [Pod, StorageClass])
def test_error_events(type_: type[Any]) -> None:
    """An error event is an error, also where its Status could be taken for an object."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "too old resource version: 1 (5)",
        "reason": "Expired",
        "code": 410,
    }
    with pytest.raises(ApiError) as caught:
        WatchDecoder(kind_of(type_)).event(line("ERROR", status))
    assert (410, "Expired") == (caught.value.code, caught.value.reason)
    assert "too old resource version: 1 (5)" == caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut off"),
        pytest.param(b'{"type": "ADDED"}', id="no object"),
        pytest.param(b'{"type": "ADDED", "object": 3}', id="a number"),
        pytest.param(b'{"type": "ADDED", "object": {"metadata": {"name": 3}}}', id="wrong type"),
        pytest.param(b'{"type": "ADDED", "object": ' + b"[" * 100_000, id="nested too deeply"),
        pytest.param(line("ERROR", {"kind": "Pod"}), id="an error that is no Status"),
        pytest.param(line("ERROR", {"kind": "Status", "code": 0}), id="a Status without code"),
    ],
)
def test_malformed_lines(text: bytes) -> None:
    """The error is the one of upstream's decoder."""
    with pytest.raises(ApiError) as caught:
        WatchDecoder(kind_of(Pod)).event(text)
    assert 500 == caught.value.code


def page(items: Any) -> bytes:
    """Return a page of pods."""
    metadata = {"resourceVersion": "9", "continue": "token", "remainingItemCount": 3}
    return json.dumps({"kind": "PodList", "metadata": metadata, "items": items}).encode()


def objects_of(body: bytes) -> list[KubeObject]:
    """Return the objects of a page."""
    decoder = WatchDecoder(kind_of(Pod))
    read_page = decoder.page(body)
    assert ("9", "token") == (read_page.metadata.resource_version, read_page.metadata.continue_)
    items = read_page.items or []
    return [decoder.item(item) if isinstance(item, msgspec.Raw) else item for item in items]


BARE = {name: POD[name] for name in ("metadata", "spec", "status")}


@pytest.mark.parametrize("bytes_at_once", [0, 1 << 20], ids=["cut", "whole"])
def test_pages_and_watches_are_equal(bytes_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of lists, which have no kind, equal those of watches; also on large pages."""
    monkeypatch.setattr(watch_events, "_PAGE_BYTES_AT_ONCE", bytes_at_once)
    with_nulls = BARE | {"spec": {"containers": None}}
    assert [read(POD)] * 2 == objects_of(page([BARE, BARE]))
    assert [read(with_nulls | {"kind": "Pod"}), read(POD)] == objects_of(page([with_nulls, BARE]))
    assert [] == objects_of(page([]))
    assert [] == objects_of(page(None))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>", id="no JSON"),
        pytest.param(page([{"metadata": {"name": 3}}]), id="wrong type"),
        pytest.param(page({"a": 1}), id="items are no list"),
        pytest.param(b'{"hello": "world"}', id="no list at all"),
    ],
)
def test_lists_that_cannot_be_read(body: bytes) -> None:
    """One object that cannot be read spoils the list, as upstream."""
    with pytest.raises(ApiError) as caught:
        objects_of(body)
    assert 500 == caught.value.code
