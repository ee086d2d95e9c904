"""All objects of several kinds: pages, kinds without permission, and old servers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import pytest

from kubesched.api.apps import CronJob
from kubesched.api.core import Pod
from kubesched.api.errors import ApiError, GoneError, NotFoundError
from kubesched.api.scheme import kind_of
from kubesched.client.pager import KindList, list_kinds
from kubesched.client.requests import Request

_FORBIDDEN = ApiError(403, "Forbidden", "no")


class _Server:
    """A server with pages or an error for each path, which records the requests."""

    def __init__(self, answers: Mapping[str, Sequence[bytes | ApiError]]) -> None:
        self._answers = {path: list(given) for path, given in answers.items()}
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def send(self, request: Request) -> bytes:
        self.asked.append((request.path, dict(request.query)))
        answer = self._answers[request.path].pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    def stream(self, request: Request) -> AbstractAsyncContextManager[Any]:
        raise NotImplementedError


def _page(*names: str, token: str = "", version: str = "7") -> bytes:
    items = [{"metadata": {"name": name}} for name in names]
    metadata = {"resourceVersion": version, **({"continue": token} if token else {})}
    return msgspec.json.encode({"kind": "PodList", "metadata": metadata, "items": items})


def _listed(server: _Server, *types: type[Any]) -> list[KindList]:
    return asyncio.run(list_kinds(server, [kind_of(type_) for type_ in types]))


def _names(found: KindList) -> list[str]:
    return [item.metadata.name for item in found.items]


_PODS = "/api/v1/pods"


def test_pages_are_put_together() -> None:
    """Pages of 500; the objects have their kind, which lists leave out."""
    server = _Server({_PODS: [_page("a", token="next"), _page("b")]})  # noqa: S106 - of pages
    (found,) = _listed(server, Pod)
    assert ["a", "b"] == _names(found)
    assert [("Pod", "v1")] * 2 == [(item.kind, item.api_version) for item in found.items]
    assert server.asked == [
        (_PODS, {"limit": "500"}),
        (_PODS, {"limit": "500", "continue": "next"}),
    ]


def test_a_list_that_expires_begins_again() -> None:
    """No object is there twice, and none of the old list is left."""
    gone = GoneError("too old")
    server = _Server({_PODS: [_page("a", token="next"), gone, _page("b", "c")]})  # noqa: S106
    (found,) = _listed(server, Pod)
    assert ["b", "c"] == _names(found)


def test_kinds_without_permission_are_marked() -> None:
    """The others are read all the same."""
    server = _Server({_PODS: [_FORBIDDEN], "/apis/batch/v1/cronjobs": [_page("nightly")]})
    pods, jobs = _listed(server, Pod, CronJob)
    assert (True, False) == (pods.is_forbidden, jobs.is_forbidden)
    assert ["nightly"] == _names(jobs)


def test_a_server_without_pods_is_no_api_server() -> None:
    """Kinds of the core group are never missing, so the answer is an error."""
    with pytest.raises(NotFoundError):
        _listed(_Server({_PODS: [NotFoundError("404 page not found")]}), Pod)


@pytest.mark.parametrize("older", [["nightly"], []])
def test_old_servers_have_old_versions(older: list[str]) -> None:
    """A kind is read in the newest version that is served; without any there are none."""
    missing = NotFoundError("the server could not find the requested resource")
    answer = _page(*older) if older else missing
    new, old = "/apis/batch/v1/cronjobs", "/apis/batch/v1beta1/cronjobs"
    server = _Server({new: [missing], old: [answer]})
    (found,) = _listed(server, CronJob)
    assert older == _names(found)
    assert not found.is_forbidden
    assert {"batch/v1"} >= {item.api_version for item in found.items}


def test_a_server_that_fails_ends_the_reading() -> None:
    """The error is the server's own, not a group of errors."""
    failed = ApiError(500, "InternalError", "etcd is gone")
    server = _Server({_PODS: [failed], "/apis/batch/v1/cronjobs": [failed]})
    with pytest.raises(ApiError, match="etcd is gone"):
        _listed(server, Pod, CronJob)
