"""What is written of pods is, to the letter, what kube-scheduler writes."""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import Any

import msgspec
import pytest

from kubesched.api.conditions import ConditionPatch
from kubesched.api.core import (
    ContainerExtendedResourceRequest,
    Pod,
    PodCondition,
    PodExtendedResourceClaimStatus,
    PodStatus,
)
from kubesched.api.media_types import STRATEGIC_MERGE_PATCH
from kubesched.api.meta import Condition, ObjectMeta
from kubesched.api.scheduling import PodGroup, PodGroupStatus
from kubesched.client.pod_client import PodClient

from .records import Answering, Plain, recorded_cases, recorded_writes

NOW = 1_714_557_600_999_999_999
NOW_TEXT = "2024-05-01T10:00:00Z"
EARLIER = "2024-05-01T09:00:00Z"

RECORDED_PATCHES = [
    pytest.param(name, at, id=f"{name}-{at}")
    for name, writes in recorded_writes().items()
    for at, write in enumerate(writes)
    if write["path"].endswith("/status")
]


def writer(server: Answering) -> PodClient:
    """Return a writer with a clock that does not move."""
    return PodClient(server, lambda: NOW, lambda _event: None)


def test_there_are_records() -> None:
    """The comparison below does not succeed for want of records."""
    assert len(RECORDED_PATCHES) > 50


@pytest.mark.parametrize(("name", "at"), RECORDED_PATCHES)
def test_status_patches_equal_recorded_ones(name: str, at: int) -> None:
    """The patch depends on the known and on the wanted status."""
    write = recorded_writes()[name][at]
    recorded = write["body"]["status"]
    pod, after = _before_and_after(recorded_writes()[name], at)
    changed = [one["type"] for one in recorded.get("conditions", ())]
    wanted = None
    if changed:
        (condition,) = (one for one in after.conditions if one.type == changed[0])
        wanted = ConditionPatch(
            condition.type, condition.status, condition.reason, condition.message
        )
    nominated = recorded["nominatedNodeName"] or "" if "nominatedNodeName" in recorded else None
    server = Answering()
    asyncio.run(writer(server).patch_pod_status(pod, wanted, nominated))
    sent = _with_recorded_time(server.in_short)
    assert [("PATCH", write["path"], write["body"])] == sent
    assert STRATEGIC_MERGE_PATCH == server.sent[0].content_type


def _before_and_after(writes: list[Plain], at: int) -> tuple[Pod, PodStatus]:
    """Return a pod as it was before a recorded patch, and its status after it."""
    write = writes[at]
    patch = write["body"]["status"]
    name = write["path"].split("/")[-2]
    if "response" not in write:
        # The pod is deleted, so only the fields to write are known.
        conditions = msgspec.convert(patch["conditions"], tuple[PodCondition, ...])
        metadata = ObjectMeta(name=name, namespace="default", generation=1)
        return Pod(metadata=metadata), PodStatus(conditions=conditions)
    response = msgspec.convert(write["response"], Pod)
    known = [
        earlier["response"]["status"]
        for earlier in writes[:at]
        if earlier["path"] == write["path"]
        and earlier.get("response", {}).get("metadata", {}).get("uid") == response.metadata.uid
    ]
    if known and "$setElementOrder/conditions" in patch:
        before = msgspec.convert(known[-1], PodStatus)
    else:
        added = {one["type"] for one in patch.get("conditions", ())}
        conditions = tuple(one for one in response.status.conditions if one.type not in added)
        before = PodStatus(conditions=conditions)
    if patch.get("nominatedNodeName", "") is None:
        before = msgspec.structs.replace(before, nominated_node_name="n1")
    elif "nominatedNodeName" not in patch:
        nominated = response.status.nominated_node_name
        before = msgspec.structs.replace(before, nominated_node_name=nominated)
    return Pod(metadata=response.metadata, status=before), response.status


def _with_recorded_time(sent: list[tuple[str, str, Any]]) -> list[tuple[str, str, Any]]:
    text = msgspec.json.encode(sent).replace(NOW_TEXT.encode(), b"<time>")
    return [(method, path, body) for method, path, body in msgspec.json.decode(text)]


def pod(*conditions: PodCondition, nominated: str = "", generation: int = 3) -> Pod:
    """Return a pod with a status."""
    return Pod(
        metadata=ObjectMeta(name="p", namespace="ns", uid="u", generation=generation),
        status=PodStatus(conditions=conditions, nominated_node_name=nominated),
    )


SCHEDULED = PodCondition(
    type="PodScheduled",
    status="False",
    reason="Unschedulable",
    message="no room",
    observed_generation=3,
    last_transition_time=EARLIER,
)
READY = PodCondition(type="Ready", status="True", last_transition_time=EARLIER)
SAME = ConditionPatch("PodScheduled", "False", "Unschedulable", "no room")
ORDER = {"$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}]}


@pytest.mark.parametrize(
    ("before", "wanted", "nominated", "expected"),
    [
        pytest.param(pod(SCHEDULED), SAME, None, None, id="nothing new"),
        pytest.param(pod(SCHEDULED, nominated="n"), SAME, "n", None, id="same node"),
        pytest.param(pod(), None, None, None, id="nothing wanted"),
        pytest.param(pod(), None, "", None, id="nothing to clear"),
        pytest.param(pod(SCHEDULED, generation=4), SAME, None, None, id="only the generation"),
        pytest.param(
            pod(SCHEDULED, nominated="m"), SAME, "n", {"nominatedNodeName": "n"}, id="only the node"
        ),
        pytest.param(
            pod(READY, nominated="m"), None, "", {"nominatedNodeName": None}, id="clear the node"
        ),
        pytest.param(
            pod(READY, SCHEDULED, generation=4),
            SAME,
            "n",
            {
                **ORDER,
                "conditions": [{"observedGeneration": 4, "type": "PodScheduled"}],
                "nominatedNodeName": "n",
            },
            id="with a new node a new generation is written, too",
        ),
        pytest.param(
            pod(READY, SCHEDULED),
            ConditionPatch("PodScheduled", "True", "", ""),
            None,
            {
                **ORDER,
                "conditions": [
                    {
                        "lastTransitionTime": NOW_TEXT,
                        "message": None,
                        "reason": None,
                        "status": "True",
                        "type": "PodScheduled",
                    }
                ],
            },
            id="what is gone is null",
        ),
        pytest.param(
            pod(READY, msgspec.structs.replace(SCHEDULED, last_probe_time=EARLIER)),
            SAME,
            None,
            {**ORDER, "conditions": [{"lastProbeTime": None, "type": "PodScheduled"}]},
            id="a time of probing is taken away",
        ),
        pytest.param(
            pod(READY, generation=0),
            SAME,
            None,
            {
                **ORDER,
                "conditions": [
                    {
                        "lastProbeTime": None,
                        "lastTransitionTime": NOW_TEXT,
                        "message": "no room",
                        "reason": "Unschedulable",
                        "status": "False",
                        "type": "PodScheduled",
                    }
                ],
            },
            id="another condition",
        ),
    ],
)
def test_status_patches(
    before: Pod, wanted: ConditionPatch | None, nominated: str | None, expected: Plain | None
) -> None:
    """The difference is written, if there is one that matters."""
    server = Answering()
    asyncio.run(writer(server).patch_pod_status(before, wanted, nominated))
    path = "/api/v1/namespaces/ns/pods/p/status"
    assert ([("PATCH", path, {"status": expected})] if expected else []) == server.in_short


def test_keys_of_patches_are_in_order() -> None:
    """Bytes are equal, too."""
    server = Answering()
    wanted = ConditionPatch("T", "True", "R", "M")
    asyncio.run(writer(server).patch_pod_status(pod(), wanted, "n"))
    assert (
        b'{"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"2024-05-01T10:00:00Z",'
        b'"message":"M","observedGeneration":3,"reason":"R","status":"True","type":"T"}],'
        b'"nominatedNodeName":"n"}}'
    ) == server.sent[0].body


@pytest.mark.parametrize("write", recorded_cases(lambda write: write["path"].endswith("/binding")))
def test_bindings_are_those_recorded(write: Plain) -> None:
    """The body names the pod with its uid, and the node."""
    body = write["body"]
    bound = Pod(metadata=msgspec.convert(body["metadata"], ObjectMeta))
    server = Answering()
    asyncio.run(writer(server).bind(bound, body["target"]["name"]))
    assert [("POST", write["path"], body)] == server.in_short


def test_a_binding_without_uid_names_none() -> None:
    """An empty uid is no precondition."""
    server = Answering()
    asyncio.run(writer(server).bind(Pod(metadata=ObjectMeta(name="p", namespace="ns")), "n"))
    assert {"name": "p", "namespace": "ns"} == server.in_short[0][2]["metadata"]


def test_deletions_are_those_recorded() -> None:
    """No precondition, no grace period: the pod's own counts."""
    writes = chain.from_iterable(recorded_writes().values())
    bodies = [write["body"] for write in writes if write["method"] == "DELETE"]
    assert len(bodies) > 5
    # The audit log shows an internal version.
    internal = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal"}
    assert [internal] * len(bodies) == bodies
    server = Answering()
    asyncio.run(writer(server).delete_pod(pod()))
    options = {"kind": "DeleteOptions", "apiVersion": "v1"}
    assert [("DELETE", "/api/v1/namespaces/ns/pods/p", options)] == server.in_short


MAPPING = ContainerExtendedResourceRequest(
    container_name="main", resource_name="example.com/gpu", request_name="r0"
)
PLAIN_MAPPING = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r0"}


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        pytest.param(
            None, {"requestMappings": [PLAIN_MAPPING], "resourceClaimName": "c"}, id="new"
        ),
        pytest.param(
            PodExtendedResourceClaimStatus(request_mappings=(MAPPING,), resource_claim_name="b"),
            {"resourceClaimName": "c"},
            id="another claim",
        ),
        pytest.param(
            PodExtendedResourceClaimStatus(request_mappings=(MAPPING,), resource_claim_name="c"),
            None,
            id="the same",
        ),
    ],
)
def test_extended_resource_claims(
    old: PodExtendedResourceClaimStatus | None, expected: Plain | None
) -> None:
    """The claim is written as far as it is new."""
    before = Pod(
        metadata=ObjectMeta(name="p", namespace="ns"),
        status=PodStatus(extended_resource_claim_status=old),
    )
    status = PodExtendedResourceClaimStatus(request_mappings=(MAPPING,), resource_claim_name="c")
    server = Answering()
    asyncio.run(writer(server).patch_extended_resource_claim_status(before, status))
    bodies = [body["status"]["extendedResourceClaimStatus"] for _, _, body in server.in_short]
    assert ([expected] if expected else []) == bodies


GROUP_CONDITION = Condition(
    type="PodGroupScheduled",
    status="False",
    reason="Unschedulable",
    message="no room",
    observed_generation=2,
    last_transition_time=EARLIER,
)
SAME_OF_GROUP = ConditionPatch("PodGroupScheduled", "False", "Unschedulable", "no room")
SCHEDULED_GROUP = ConditionPatch("PodGroupScheduled", "True", "Scheduled", "")
SCHEDULED_FIELDS = {
    "lastTransitionTime": NOW_TEXT,
    "message": "",
    "reason": "Scheduled",
    "status": "True",
    "type": "PodGroupScheduled",
}


@pytest.mark.parametrize(
    ("conditions", "wanted", "generation", "expected"),
    [
        pytest.param(
            (),
            SCHEDULED_GROUP,
            2,
            {"conditions": [{**SCHEDULED_FIELDS, "observedGeneration": 2}]},
            id="first",
        ),
        pytest.param((GROUP_CONDITION,), SAME_OF_GROUP, 2, None, id="nothing new"),
        pytest.param(
            (GROUP_CONDITION,),
            SAME_OF_GROUP,
            3,
            {
                "$setElementOrder/conditions": [{"type": "PodGroupScheduled"}],
                "conditions": [{"observedGeneration": 3, "type": "PodGroupScheduled"}],
            },
            id="a new generation is a change",
        ),
        pytest.param(
            (GROUP_CONDITION,),
            SCHEDULED_GROUP,
            0,
            {
                "$setElementOrder/conditions": [{"type": "PodGroupScheduled"}],
                "conditions": [{**SCHEDULED_FIELDS, "observedGeneration": None}],
            },
            id="another status",
        ),
    ],
)
def test_pod_groups(
    conditions: tuple[Condition, ...],
    wanted: ConditionPatch,
    generation: int,
    expected: Plain | None,
) -> None:
    """A group's condition is written as a pod's is, but with the generation."""
    group = PodGroup(
        metadata=ObjectMeta(name="g", namespace="ns", generation=generation),
        status=PodGroupStatus(conditions=conditions),
    )
    server = Answering()
    asyncio.run(writer(server).patch_pod_group_status(group, wanted))
    path = "/apis/scheduling.k8s.io/v1alpha2/namespaces/ns/podgroups/g/status"
    assert ([("PATCH", path, {"status": expected})] if expected else []) == server.in_short
