from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.errors import ApiError
from kubesched.apiserver.listing import fields_selected
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.stored_object import from_core

from .verdicts import served

POD: Plain = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"nodeName": "n1", "restartPolicy": "Always", "schedulerName": "s"},
    "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
}
EVENT: Plain = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "p", "uid": "u"},
    "reason": "Scheduled",
    "source": {},
    "reportingComponent": "default-scheduler",
    "type": "Normal",
}


@pytest.mark.parametrize(
    ("plural", "value", "selector", "expected"),
    [
        pytest.param("pods", POD, "", True, id="empty"),
        pytest.param("pods", POD, "spec.nodeName=n1,status.phase!=Failed", True, id="both"),
        pytest.param("pods", POD, "spec.nodeName=n1,status.phase!=Running", False, id="one of two"),
        pytest.param("pods", POD, "spec.host==n1", True, id="old name"),
        pytest.param("pods", POD, "spec.hostNetwork=false", True, id="missing truth"),
        pytest.param("pods", POD, "status.podIP=10.0.0.1", True, id="address"),
        pytest.param("pods", POD, "status.podIPs=", True, id="offered and empty"),
        pytest.param("pods", POD, "status.nominatedNodeName=", True, id="missing text"),
        pytest.param("pods", POD, "metadata.name=p\\,q", False, id="escaped"),
        pytest.param("nodes", {}, "spec.unschedulable=false", True, id="schedulable"),
        pytest.param(
            "nodes", {"spec": {"unschedulable": True}}, "spec.unschedulable!=true", False, id="not"
        ),
        pytest.param("events", EVENT, "involvedObject.name=p,reason=Scheduled", True, id="event"),
        pytest.param("events", EVENT, "source=default-scheduler", True, id="source"),
        pytest.param(
            "services", {"spec": {"type": "NodePort"}}, "spec.type=NodePort", True, id="svc"
        ),
        pytest.param("replicationcontrollers", {}, "status.replicas=0", True, id="number"),
    ],
)
def test_selection(plural: str, value: Plain, selector: str, expected: Any) -> None:
    """Fields are compared as text; what is missing is empty, false or 0."""
    assert expected is fields_selected(served(plural), selector)(value)


def test_events_of_the_newer_group() -> None:
    """Fields of events.k8s.io have the newer names."""
    events = served("events", "events.k8s.io")
    selected = fields_selected(
        events, "regarding.name=p,reportingController=default-scheduler,type=Normal"
    )
    assert selected(from_core(EVENT))
    with pytest.raises(ApiError, match=r"field label not supported: involvedObject\.name"):
        fields_selected(events, "involvedObject.name=p")


@pytest.mark.parametrize(
    ("plural", "group", "selector", "expected"),
    [
        pytest.param(
            "pods", "", "spec.nosuch=1", "field label not supported: spec.nosuch", id="pod"
        ),
        pytest.param(
            "nodes",
            "",
            "metadata.namespace=",
            "field label not supported: metadata.namespace",
            id="node",
        ),
        pytest.param(
            "leases",
            "coordination.k8s.io",
            "spec.holderIdentity=a",
            '"spec.holderIdentity" is not a known field selector: only "metadata.name", '
            '"metadata.namespace"',
            id="lease",
        ),
        pytest.param(
            "pods",
            "",
            "metadata.name in (p3)",
            "invalid selector: 'metadata.name in (p3)'; can't understand 'metadata.name in (p3)'",
            id="no field selector",
        ),
    ],
)
def test_selectors_that_are_refused(plural: str, group: str, selector: str, expected: str) -> None:
    """The words are kube-apiserver's."""
    with pytest.raises(ApiError) as caught:
        fields_selected(served(plural, group), selector)
    assert (400, "BadRequest", expected) == (
        caught.value.code,
        caught.value.reason,
        caught.value.message,
    )
