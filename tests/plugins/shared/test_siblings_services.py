from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from kubesched.api.core import Service
from kubesched.api.selectors import matches_set
from kubesched.plugins.shared.siblings import ServiceIndex
from kubesched.snapshot.objects import ObjectStore
from kubesched.testing.builders import make_pod_info


def _service(name: str, selector: Mapping[str, str] | None) -> Service:
    metadata = {"name": name, "namespace": "default"}
    return msgspec.convert({"metadata": metadata, "spec": {"selector": selector}}, Service)


def test_services_are_compared_with_pods_that_may_match(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many services, only those that share a label are; the index follows changes."""
    compared: list[Mapping[str, str]] = []

    def noted(wanted: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        compared.append(wanted)
        return matches_set(wanted, labels)

    monkeypatch.setattr("kubesched.plugins.shared.siblings.matches_set", noted)
    store, index = ObjectStore(), ServiceIndex()
    for at in range(50):
        store.put(_service(f"s{at}", {"part-of": "shop", "app": f"a{at}"}))
    pod = make_pod_info(labels={"part-of": "shop", "app": "a7"})
    assert {"part-of": "shop", "app": "a7"} == index.labels_for(pod, store)
    assert len(compared) < 3

    store.put(_service("s7", {"app": "a8"}))
    store.put(_service("t", {"app": "a7"}))
    assert {"app": "a7"} == index.labels_for(pod, store)
    store.delete(_service("t", None))
    assert {} == index.labels_for(pod, store)
