"""The controllers of a sandbox, with kubelets and a scheduler that assigns nodes in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from kubesched.api.errors import ApiError
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.schema import type_of
from kubesched.apiserver.values import Reading
from kubesched.cluster.controllers import IDLE_KINDS, Controllers
from kubesched.cluster.controllers.controller import with_owner
from kubesched.cluster.controllers.deployments import template_hash
from kubesched.cluster.controllers.jobs import job_of
from kubesched.cluster.store import Key
from kubesched.sandbox.local_client import LocalClient
from kubesched.sandbox.pod_reports import EXIT_CODE, RUN_SECONDS, PodLatencies
from tests.apiserver.test_server import ask, new_server
from tests.loops import as_test, on_virtual_time

from .sandbox_world import Json, World, live

T = TypeVar("T")
BACKEND = {"apiGroup": "example.com", "kind": "Bucket", "name": "b"}
SPEC = {"containers": [{"name": "c", "image": "i"}]}
ONCE = {**SPEC, "restartPolicy": "Never"}
NAME = "w"
NEW_IMAGE = {
    "metadata": {"labels": {"app": NAME}},
    "spec": {"containers": [{"name": "c", "image": "new"}]},
}


def in_order(story: Callable[[World], Awaitable[T]], nodes: int = 3) -> T:
    """Run a coroutine in a world with controllers."""

    async def happen(world: World) -> T:
        controllers = Controllers(lambda user: LocalClient(world.server.registry, user))
        turn = 0

        def bind(key: Key, _before: Plain | None, pod: Plain | None) -> None:
            nonlocal turn
            pod = world.client.find(*key)
            if pod is not None and pod["spec"].keys().isdisjoint(("nodeName", "schedulingGates")):
                turn += 1
                spec = {**pod["spec"], "nodeName": _meant_for(pod) or f"node-{turn % nodes}"}
                world.client.write(key, {**pod, "spec": spec})

        scheduler = world.client.follow("pods", bind)
        controllers.start()
        scheduler.start()
        try:
            return await story(world)
        finally:
            scheduler.stop()
            controllers.stop()

    return live(happen, PodLatencies(0.5, 0.5, 5.0), nodes)


def controlled(story: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test in a world with controllers, which is its first argument."""
    return as_test(story, in_order)


def _meant_for(pod: Plain) -> str:
    try:
        required = pod["spec"]["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
    except KeyError:
        return ""
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def workload(kind: str, replicas: int | None = None, **spec: Any) -> tuple[str, Json]:
    """Return a workload, and its key in the store."""
    labels = {"app": NAME}
    template = {"metadata": {"labels": labels}, "spec": spec.pop("pod", SPEC)}
    spec |= {"template": template}
    if not kind.startswith("jobs"):
        spec["selector"] = {"matchLabels": labels}
    if replicas is not None:
        spec["replicas"] = replicas
    return kind, {"metadata": {"name": NAME, "namespace": "default"}, "spec": spec}


def running(world: World) -> list[Json]:
    """Return the running pods that are not terminating."""
    return [
        pod
        for pod in world.client.list("pods")
        if pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp")
    ]


def status_of(world: World, kind: str) -> Json:
    """Return the workload's status."""
    status: Json = world.get(kind, NAME)["status"]
    return status


def change(world: World, kind: str, **spec: Any) -> None:
    """Update fields of the workload's spec."""
    found = world.get(kind, NAME)
    metadata = {**found["metadata"], "generation": found["metadata"]["generation"] + 1}
    changed = {**found, "metadata": metadata, "spec": {**found["spec"], **spec}}
    world.client.write(Key(kind, "default", NAME), changed)


@controlled
async def test_a_replica_set_keeps_its_replicas(world: World) -> None:
    """Missing pods are created, surplus ones deleted, deleted ones replaced; all are counted."""
    world.client.create(*workload("replicasets.apps", 4))
    counts = []
    for replicas in (None, 6, 2):
        if replicas is not None:
            change(world, "replicasets.apps", replicas=replicas)
        await asyncio.sleep(3)
        counts.append(len(running(world)))
    name = running(world)[0]["metadata"]["name"]
    world.client.delete(Key("pods", "default", name))
    await asyncio.sleep(3)
    status = status_of(world, "replicasets.apps")
    fields = ("replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas")
    assert [4, 6, 2, 2, 2, 2, 2, 2] == [
        *counts,
        len(running(world)),
        *(status[field] for field in fields),
    ]


@controlled
async def test_a_replica_set_larger_than_a_burst_is_created_in_parts(world: World) -> None:
    """No pod is created twice."""
    world.client.create(*workload("replicasets.apps", 230))
    await asyncio.sleep(3)
    assert 230 == world.client.store.count("pods")


@controlled
async def test_scaling_down_deletes_unassigned_pods_first(world: World) -> None:
    """Running pods stay."""
    world.client.create(*workload("replicasets.apps", 3))
    await asyncio.sleep(2)
    before = {pod["metadata"]["name"] for pod in running(world)}
    change(world, "replicasets.apps", replicas=5)
    await asyncio.sleep(0.01)
    change(world, "replicasets.apps", replicas=3)
    await asyncio.sleep(3)
    assert set() == (before ^ {pod["metadata"]["name"] for pod in running(world)})


@controlled
async def test_pods_are_available_after_min_ready_seconds(world: World) -> None:
    """They are ready before."""
    world.client.create(*workload("replicasets.apps", 2, minReadySeconds=10))
    counts = []
    for seconds in (5, 8):
        await asyncio.sleep(seconds)
        status = status_of(world, "replicasets.apps")
        counts.append((status["readyReplicas"], status.get("availableReplicas", 0)))
    assert [(2, 0), (2, 2)] == counts


@pytest.mark.parametrize(
    ("strategy", "least", "most"),
    [
        pytest.param({"type": "Recreate"}, 0, 4, id="recreate"),
        pytest.param(
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            3,
            4,
            id="one-less",
        ),
        pytest.param(
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            4,
            5,
            id="one-more",
        ),
        pytest.param(
            {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "50%", "maxUnavailable": "25%"},
            },
            3,
            6,
            id="parts",
        ),
    ],
)
@controlled
async def test_a_deployment_rolls_out_within_its_limits(
    world: World, strategy: Json, least: int, most: int
) -> None:
    """There are never fewer ready pods, or more in all, than allowed."""
    kind = "deployments.apps"
    world.client.create(*workload(kind, 4, strategy=strategy))
    await asyncio.sleep(5)
    change(world, kind, template=NEW_IMAGE)
    ready, total = [], []
    for _ in range(400):
        await asyncio.sleep(0.05)
        ready.append(len(running(world)))
        active = [
            pod for pod in world.client.list("pods") if not pod["metadata"].get("deletionTimestamp")
        ]
        total.append(len(active))
    assert least <= min(ready)
    assert max(total) <= most
    assert {"new"} == {pod["spec"]["containers"][0]["image"] for pod in running(world)}
    status = status_of(world, kind)
    assert [4, 4, 4, 4] == [
        status[name]
        for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    ]
    assert {"Available": "True", "Progressing": "True"} == {
        one["type"]: one["status"] for one in status["conditions"]
    }


@controlled
async def test_recreation_waits_until_the_old_pods_are_gone(world: World) -> None:
    """Pods that are being deleted still count, and the status has their number."""
    kind = "deployments.apps"
    world.client.create(*workload(kind, 2, strategy={"type": "Recreate"}))
    await asyncio.sleep(5)
    change(world, kind, template=NEW_IMAGE)
    images, terminating = set(), set()
    for _ in range(100):
        await asyncio.sleep(0.05)
        images.add(
            tuple({one["spec"]["containers"][0]["image"] for one in world.client.list("pods")})
        )
        terminating.add(status_of(world, kind)["terminatingReplicas"])
    assert {("i",), (), ("new",)} == images
    assert {0, 2} <= terminating


@controlled
async def test_a_paused_deployment_is_scaled_without_a_rollout(world: World) -> None:
    """The ReplicaSet that has pods gets the replicas, whichever template is current."""
    kind, strategy = "deployments.apps", {"type": "Recreate"}
    world.client.create(*workload(kind, 2, paused=True, strategy=strategy))
    await asyncio.sleep(3)
    assert [] == world.client.list("replicasets.apps")
    change(world, kind, paused=False)
    await asyncio.sleep(3)
    change(world, kind, paused=True, template=NEW_IMAGE)
    await asyncio.sleep(3)
    change(world, kind, replicas=3)
    await asyncio.sleep(3)
    assert ["i"] * 3 == [pod["spec"]["containers"][0]["image"] for pod in running(world)]
    reasons = {one["type"]: one["reason"] for one in status_of(world, kind)["conditions"]}
    assert {
        "Available": "MinimumReplicasAvailable",
        "Progressing": "DeploymentPaused",
    } == reasons


@controlled
async def test_a_deployment_reuses_the_replica_set_of_an_earlier_template(world: World) -> None:
    """It becomes the newest revision."""
    kind = "deployments.apps"
    world.client.create(*workload(kind, 2))
    await asyncio.sleep(3)
    first = world.get(kind, NAME)["spec"]["template"]
    for template in ({**first, "spec": {**SPEC, "hostNetwork": True}}, first):
        change(world, kind, template=template)
        await asyncio.sleep(10)
    sets = world.client.list("replicasets.apps")
    assert [("2", 0), ("3", 2)] == sorted(
        (
            one["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
            one["spec"]["replicas"],
        )
        for one in sets
    )


@controlled
async def test_the_newest_replica_set_has_the_annotations_of_its_deployment(world: World) -> None:
    """`kubectl rollout` reads the causes of changes there, and an undo restores them all."""
    kind = "deployments.apps"
    key, deployment = workload(kind, 1)
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    deployment["metadata"]["annotations"] = {"team": "x", **applied}
    world.client.create(key, deployment)
    await asyncio.sleep(3)
    world.client.annotate(Key(kind, "default", NAME), "kubernetes.io/change-cause", "first")
    await asyncio.sleep(3)
    revision = {"deployment.kubernetes.io/revision": "1"}
    expected = {"team": "x", "kubernetes.io/change-cause": "first", **revision}
    assert [expected] == [
        one["metadata"]["annotations"] for one in world.client.list("replicasets.apps")
    ]


def test_template_hashes_do_not_depend_on_the_order_of_fields() -> None:
    """They depend on the values."""
    one = {"spec": {"template": {"a": 1, "b": [1, {"c": 2, "d": 3}]}}}
    same = {"spec": {"template": {"b": [1, {"d": 3, "c": 2}], "a": 1}}}
    other = {"spec": {"template": {"a": 1, "b": [1, {"c": 2, "d": 4}]}}}
    assert template_hash(one) == template_hash(same) != template_hash(other)


@controlled
async def test_a_daemon_set_has_a_pod_on_every_tolerated_node(world: World) -> None:
    """Also on later and cordoned nodes, not on tainted ones."""
    kind = "daemonsets.apps"
    world.client.create(*workload(kind))
    await asyncio.sleep(2)
    taint = {"key": "a", "value": "b", "effect": "NoExecute"}
    for name, spec in (("late", {"unschedulable": True}), ("bad", {"taints": [taint]})):
        world.client.create("nodes", {"metadata": {"name": name}, "spec": spec})
    await asyncio.sleep(2)
    nodes = sorted(pod["spec"]["nodeName"] for pod in running(world))
    assert ["late", "node-0", "node-1", "node-2"] == nodes
    status = status_of(world, kind)
    assert (4, 4, 0) == tuple(
        status[name] for name in ("desiredNumberScheduled", "numberReady", "numberMisscheduled")
    )


@controlled
async def test_a_daemon_set_that_names_a_node_has_a_pod_there_only(world: World) -> None:
    """Its template has nodeName."""
    kind = "daemonsets.apps"
    world.client.create(*workload(kind, pod={**SPEC, "nodeName": "node-1"}))
    await asyncio.sleep(2)
    assert ["node-1"] == [pod["spec"]["nodeName"] for pod in running(world)]
    assert 1 == status_of(world, kind)["desiredNumberScheduled"]


@pytest.mark.parametrize(
    "rolling",
    [
        pytest.param({}, id="default"),
        pytest.param({"maxUnavailable": 0, "maxSurge": "10%"}, id="surge"),
    ],
)
@controlled
async def test_a_daemon_set_is_updated_pod_by_pod(world: World, rolling: Json) -> None:
    """At most one is missing at a time."""
    kind = "daemonsets.apps"
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    world.client.create(*workload(kind, updateStrategy=strategy))
    await asyncio.sleep(2)
    change(world, kind, template=NEW_IMAGE)
    fewest = 3
    for _ in range(200):
        await asyncio.sleep(0.05)
        fewest = min(fewest, len(running(world)))
    assert 2 == fewest
    assert {"new"} == {pod["spec"]["containers"][0]["image"] for pod in running(world)}


@controlled
async def test_an_updated_daemon_waits_until_the_one_before_is_available(world: World) -> None:
    """A ready pod is available after minReadySeconds."""
    kind, counts = "daemonsets.apps", []
    world.client.create(*workload(kind, minReadySeconds=10))
    await asyncio.sleep(5)
    counts.append(status_of(world, kind))
    await asyncio.sleep(10)
    counts.append(status_of(world, kind))
    change(world, kind, template=NEW_IMAGE)
    await asyncio.sleep(5)
    counts.append(status_of(world, kind))
    fields = ("numberReady", "numberAvailable", "updatedNumberScheduled")
    assert [(3, 0, 3), (3, 3, 3), (3, 2, 1)] == [
        tuple(status.get(field, 0) for field in fields) for status in counts
    ]


@pytest.mark.parametrize(
    ("spec", "exit_code", "condition", "succeeded", "failed"),
    [
        pytest.param({"completions": 5, "parallelism": 2}, 0, "Complete", 5, 0, id="five"),
        pytest.param({"completions": 1, "backoffLimit": 2}, 1, "Failed", 0, 3, id="fails"),
        pytest.param({"parallelism": 3}, 0, "Complete", 3, 0, id="queue"),
    ],
)
@controlled
async def test_a_job_runs_to_completion(
    world: World, spec: Json, exit_code: int, condition: str, succeeded: int, failed: int
) -> None:
    """With the given parallelism; its conditions give the outcome."""
    kind, job = workload("jobs.batch", pod=ONCE, **spec)
    annotations = {"sandbox/exit-code": str(exit_code)}
    job["spec"]["template"]["metadata"]["annotations"] = annotations
    world.client.create(kind, job)
    most = 0
    for _ in range(400):
        await asyncio.sleep(0.1)
        most = max(most, len(running(world)))
    status = status_of(world, kind)
    assert most <= spec.get("parallelism", 1)
    assert condition in [one["type"] for one in status["conditions"]]
    assert (succeeded, failed, 0) == tuple(
        status.get(name, 0) for name in ("succeeded", "failed", "active")
    )


@pytest.mark.parametrize("limit", [0, 3])
@controlled
async def test_restarts_of_a_jobs_containers_count_towards_its_limit(
    world: World, limit: int
) -> None:
    """The Job fails, and its pod is deleted."""
    kind, job = workload(
        "jobs.batch", pod={**SPEC, "restartPolicy": "OnFailure"}, backoffLimit=limit
    )
    job["spec"]["template"]["metadata"]["annotations"] = {EXIT_CODE: "1", RUN_SECONDS: "2"}
    world.client.create(kind, job)
    await asyncio.sleep(20)
    assert [] == names(world)
    assert "BackoffLimitExceeded" == status_of(world, kind)["conditions"][-1]["reason"]


@controlled
async def test_a_job_without_completions_to_reach_ends_at_once(world: World) -> None:
    """It runs no pod, and has the times that its API requires of a complete Job."""
    world.client.create(*workload("jobs.batch", pod=ONCE, completions=0))
    await asyncio.sleep(2)
    pods, status = len(running(world)), status_of(world, "jobs.batch")
    assert pods == 0
    assert [one["type"] for one in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert status["startTime"] == status["completionTime"]


@controlled
async def test_a_suspended_job_is_resumed(world: World) -> None:
    """Its pods are deleted and created again, and its time starts again."""
    kind = "jobs.batch"
    world.client.create(*workload(kind, pod=ONCE))
    seen = []
    for is_suspended in (False, True, False):
        change(world, kind, suspend=is_suspended)
        await asyncio.sleep(2)
        seen.append((len(running(world)), status_of(world, kind)))
    (before, first), (meanwhile, suspended), (after, resumed) = seen
    assert (1, 0, 1) == (before, meanwhile, after)
    assert "conditions" not in first
    assert [("Suspended", "True", "JobSuspended"), ("Suspended", "False", "JobResumed")] == [
        (one["type"], one["status"], one["reason"])
        for status in (suspended, resumed)
        for one in status["conditions"]
    ]
    assert "startTime" not in suspended
    assert first["startTime"] < resumed["startTime"]


@controlled
async def test_a_job_counts_pods_that_are_being_deleted(world: World) -> None:
    """Until they are gone."""
    kind = "jobs.batch"
    world.client.create(*workload(kind, pod=ONCE, parallelism=2, completions=2))
    await asyncio.sleep(2)
    change(world, kind, suspend=True)
    seen = []
    for seconds in (0.2, 2):
        await asyncio.sleep(seconds)
        status = status_of(world, kind)
        seen.append((status.get("active", 0), status["terminating"]))
    assert [(0, 2), (0, 0)] == seen


@pytest.mark.parametrize(
    ("kind", "replicas"),
    [
        pytest.param("replicasets.apps", 0, id="replica-set"),
        pytest.param("replicationcontrollers", 0, id="replication-controller"),
        pytest.param("deployments.apps", 0, id="deployment"),
        pytest.param("statefulsets.apps", 0, id="stateful-set"),
        pytest.param("daemonsets.apps", None, id="daemon-set"),
        pytest.param("jobs.batch", None, id="job"),
    ],
)
@controlled
async def test_statuses_have_the_zeros_that_the_api_writes(
    world: World, kind: str, replicas: int | None
) -> None:
    """Others are left out, so that a client finds the same fields as in any cluster."""
    spec = {} if replicas is None else {"replicas": replicas}
    pod = ONCE if kind == "jobs.batch" else {**SPEC, "nodeSelector": {"no": "node"}}
    key, item = workload(kind, pod=pod, **spec)
    if kind == "replicationcontrollers":
        item["spec"]["selector"] = {"app": NAME}
    world.client.create(key, item)
    await asyncio.sleep(2)
    stored = world.get(kind, NAME)
    written = type_of(stored["apiVersion"], stored["kind"])
    assert written is not None
    assert stored["status"] == written.read(stored, None, Reading())["status"]


@controlled
async def test_a_budgets_status_is_counted(world: World) -> None:
    """Healthy and desired pods, and allowed disruptions."""
    selector = {"matchLabels": {"app": NAME}}
    for name, spec in (
        ("least", {"minAvailable": 3}),
        ("part", {"minAvailable": "50%"}),
        ("most", {"maxUnavailable": 1}),
    ):
        budget = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {**spec, "selector": selector},
        }
        world.client.create("poddisruptionbudgets.policy", budget)
    world.client.create(*workload("deployments.apps", 5))
    await asyncio.sleep(3)
    found = []
    for name in ("least", "part", "most"):
        status = world.get("poddisruptionbudgets.policy", name)["status"]
        fields = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
        found.append(tuple(status[field] for field in fields))
    assert [(5, 5, 3, 2), (5, 5, 3, 2), (5, 5, 4, 1)] == found


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        pytest.param("Background", (0, 0, 0), id="background"),
        pytest.param("Foreground", (0, 0, 0), id="foreground"),
        pytest.param("Orphan", (0, 1, 2), id="orphan"),
    ],
)
@controlled
async def test_propagation_policies_of_a_deletion(
    world: World, policy: str, left: tuple[int, ...]
) -> None:
    """Dependents of a deployment are deleted after it, before it, or stay."""
    kinds = ("deployments.apps", "replicasets.apps", "pods")
    world.client.create(*workload("deployments.apps", 2))
    await asyncio.sleep(3)
    world.client.delete(Key("deployments.apps", "default", NAME), policy=policy)
    await asyncio.sleep(3)
    assert left == tuple(world.client.store.count(kind) for kind in kinds)


DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def define_cats(world: World) -> str:
    """Define a kind, and return its name in the store."""
    kind, names = "cats.example.com", {"plural": "cats", "kind": "Cat"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    world.client.create(DEFINITIONS, {"metadata": {"name": kind}, "spec": spec})
    return kind


@controlled
async def test_a_definition_is_deleted_after_its_last_object(world: World) -> None:
    """Objects with finalizers are served until their finalizers are gone; no others come."""
    kind = define_cats(world)
    await asyncio.sleep(1)
    for name, finalizers in (("tom", ["example.com/f"]), ("tim", [])):
        metadata = {"name": name, "namespace": "default", "finalizers": finalizers}
        world.client.create(kind, {"metadata": metadata})
    world.client.delete(Key(DEFINITIONS, "", kind))
    await asyncio.sleep(1)
    with pytest.raises(ApiError, match="custom resource definition is terminating"):
        world.client.create(kind, {"metadata": {"name": "new", "namespace": "default"}})
    assert ["tom"] == names(world, kind)
    assert world.get(kind, "tom")["metadata"]["deletionTimestamp"]
    assert world.client.find(DEFINITIONS, "", kind)
    world.client.release(Key(kind, "default", "tom"), "example.com/f")
    await asyncio.sleep(1)
    assert world.client.find(DEFINITIONS, "", kind) is None


@controlled
async def test_custom_resources_may_own_and_be_owned(world: World) -> None:
    """Foreground deletion removes the dependent first."""
    kind = define_cats(world)
    await asyncio.sleep(1)
    mother = world.client.create(kind, {"metadata": {"name": "m", "namespace": "default"}})
    owner = {"apiVersion": "example.com/v1", "kind": "Cat", "name": "m", "controller": True}
    owner["uid"] = mother["metadata"]["uid"]
    metadata = {"name": "k", "namespace": "default", "ownerReferences": [owner]}
    world.client.create(kind, {"metadata": metadata})
    await asyncio.sleep(1)
    world.client.delete(Key(kind, "default", "m"), policy="Foreground")
    await asyncio.sleep(1)
    assert 0 == world.client.store.count(kind)


@controlled
async def test_foreground_deletion_ends_after_the_dependents(world: World) -> None:
    """Until then the owner has a deletion timestamp."""
    world.client.create(*workload("replicasets.apps", 2))
    await asyncio.sleep(3)
    world.client.delete(Key("replicasets.apps", "default", NAME), policy="Foreground")
    seen = []
    for _ in range(30):
        found = world.client.find("replicasets.apps", "default", NAME)
        seen.append((found is not None, world.client.store.count("pods")))
        await asyncio.sleep(0.05)
    assert (True, 2) == seen[0]
    assert (False, 0) == seen[-1]
    assert all(is_there for is_there, pods in seen if pods)


@controlled
async def test_foreground_deletion_ends_for_owners_in_a_circle(world: World) -> None:
    """Each waits for the next, so one of them lets its owner go first."""
    names = ("a", "b", "c")
    uids = {}
    for name in names:
        named = {"name": name, "namespace": "default"}
        made = world.client.create("configmaps", {"metadata": named})
        uids[name] = made["metadata"]["uid"]
    for name, owner in zip(names, ("c", "a", "b"), strict=True):
        found = world.get("configmaps", name)
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uids[owner]}
        reference["blockOwnerDeletion"] = True
        metadata = {**found["metadata"], "ownerReferences": [reference]}
        key = Key("configmaps", "default", name)
        world.client.write(key, {**found, "metadata": metadata})
    await asyncio.sleep(1)
    world.client.delete(Key("configmaps", "default", "a"), policy="Foreground")
    await asyncio.sleep(1)
    assert [] == _config_maps(world)


def _config_maps(world: World) -> list[str]:
    """Return the names of a namespace's ConfigMaps, but for the one that all namespaces have."""
    found = world.client.list("configmaps", "default")
    return [
        one["metadata"]["name"] for one in found if one["metadata"]["name"] != "kube-root-ca.crt"
    ]


@controlled
async def test_objects_without_owner_references_are_not_collected(world: World) -> None:
    """Only those whose owners do not exist."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "no"}
    unknown = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "no"}
    for name, owners in (("alone", []), ("lost", [owner]), ("strange", [unknown])):
        metadata = {"name": name, "namespace": "default", "ownerReferences": owners}
        world.client.create("configmaps", {"metadata": metadata})
    # An owner with a namespace cannot be looked up for a dependent without one.
    above = {"metadata": {"name": "above", "ownerReferences": [owner]}, "provisioner": "x"}
    world.client.create("storageclasses.storage.k8s.io", above)
    await asyncio.sleep(1)
    assert ["alone", "strange"] == _config_maps(world)
    assert 1 == world.client.store.count("storageclasses.storage.k8s.io")


@controlled
async def test_a_namespace_is_emptied_before_it_is_deleted(world: World) -> None:
    """Its objects are deleted, and no new ones are accepted."""
    world.client.create("namespaces", {"metadata": {"name": "other"}})
    kind, item = workload("deployments.apps", 2)
    item["metadata"]["namespace"] = "other"
    world.client.create(kind, item)
    await asyncio.sleep(2)
    world.client.delete(Key("namespaces", "", "other"))
    phase = world.get("namespaces", "other", "")["status"]["phase"]
    with pytest.raises(ApiError):
        world.client.create("pods", {"metadata": {"name": "p", "namespace": "other"}})
    await asyncio.sleep(5)
    left = world.client.find("namespaces", "", "other")
    assert ("Terminating", True, 0) == (phase, left is None, world.client.store.count("pods"))


@controlled
async def test_the_pods_of_a_namespace_are_deleted_first(world: World) -> None:
    """Its other objects stay as long as one of them does."""
    world.client.create("namespaces", {"metadata": {"name": "other"}})
    metadata = {"name": "p", "namespace": "other", "finalizers": ["example.com/log"]}
    world.client.create("pods", {"metadata": metadata, "spec": SPEC})
    await asyncio.sleep(2)
    world.client.delete(Key("namespaces", "", "other"))
    counts = []
    for _ in range(2):
        await asyncio.sleep(3)
        counts.append(len(world.client.list("configmaps", "other")))
        world.client.release(Key("pods", "other", "p"), "example.com/log")
    assert [1, 0] == counts
    assert world.client.find("namespaces", "", "other") is None


def watch_states(world: World) -> list[tuple[str, str, str]]:
    """Return a list of what a watch reports of pods: phase, why and by whom they are disrupted."""
    states: list[tuple[str, str, str]] = []

    def note(_key: Key, _before: Plain | None, pod: Plain | None) -> None:
        if pod is not None:
            conditions = {one["type"]: one for one in pod["status"]["conditions"]}
            told = conditions.get("DisruptionTarget", {"reason": "", "message": ""})
            states.append((pod["status"]["phase"], told["reason"], told["message"]))

    world.client.follow("pods", note).start()
    return states


@controlled
async def test_pods_of_a_removed_node_are_collected(world: World) -> None:
    """After a delay in which the node may be added again."""
    world.add_pod()
    await asyncio.sleep(2)
    world.client.delete(Key("nodes", "", "node-0"))
    states = watch_states(world)
    counts = []
    for seconds in (30, 15):
        await asyncio.sleep(seconds)
        counts.append(world.client.store.count("pods"))
    assert [1, 0] == counts
    assert {("Failed", "DeletionByPodGC", "PodGC: node no longer exists")} == {*states[1:]}


@pytest.mark.parametrize(
    ("tolerations", "gone_after"),
    [
        pytest.param([], 1, id="none"),
        pytest.param(
            [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}],
            22,
            id="some-time",
        ),
        pytest.param([{"operator": "Exists"}], 100, id="for-ever"),
        pytest.param(
            [
                {"operator": "Exists"},
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20},
            ],
            100,
            id="the-first-counts",
        ),
        pytest.param([{"key": "other", "operator": "Exists"}], 1, id="another"),
    ],
)
@controlled
async def test_no_execute_taints_evict_pods(
    world: World, tolerations: list[Json], gone_after: float
) -> None:
    """Those that do not tolerate the taint, or no longer."""
    world.add_pod(tolerations=tolerations)
    await asyncio.sleep(2)
    node = world.node()
    taints = [{"key": "a", "value": "b", "effect": "NoExecute"}]
    node = {**node, "spec": {**node["spec"], "taints": taints}}
    world.client.write(Key("nodes", "", "node-0"), node)
    states = watch_states(world)
    seconds = 0
    while seconds < 100 and world.client.store.count("pods"):
        await asyncio.sleep(1)
        seconds += 1
    assert gone_after - 2 <= seconds <= gone_after + 1
    reason, message = "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
    assert (("Running", reason, message) in states) == (seconds < 100)


@controlled
async def test_a_later_taint_does_not_shorten_an_eviction(world: World) -> None:
    """Upstream keeps the time that follows from the taints at first."""
    seconds = {"a": 20, "b": 5}
    rest = {"operator": "Exists", "effect": "NoExecute"}
    world.add_pod(
        tolerations=[{"key": key, "tolerationSeconds": seconds[key], **rest} for key in seconds]
    )
    counts = []
    for keys, pause in (("a", 8), ("ab", 8), ("ab", 8)):
        await asyncio.sleep(2)
        node = world.node()
        taints = [{"key": key, "effect": "NoExecute"} for key in keys]
        world.client.write(
            Key("nodes", "", "node-0"), {**node, "spec": {**node["spec"], "taints": taints}}
        )
        await asyncio.sleep(pause)
        counts.append(world.client.store.count("pods"))
    assert [1, 1, 0] == counts


@controlled
async def test_a_replication_controller_keeps_its_replicas(world: World) -> None:
    """Like a replica set, with a plain selector."""
    kind, item = workload("replicationcontrollers", 3)
    item["spec"]["selector"] = {"app": NAME}
    world.client.create(kind, item)
    await asyncio.sleep(3)
    assert (3, 3) == (len(running(world)), status_of(world, kind)["readyReplicas"])


def stateful(world: World, **spec: Any) -> None:
    """Create a stateful set of three pods with a claim each."""
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    mount = {"name": "data", "mountPath": "/data"}
    container = {"name": "c", "image": "i", "volumeMounts": [mount]}
    pod = {"containers": [container]}
    spec = {"serviceName": "s", "volumeClaimTemplates": [claim], "pod": pod, **spec}
    world.client.create(*workload("statefulsets.apps", 3, **spec))


def names(world: World, kind: str = "pods") -> list[str]:
    """Return the names of the objects of a kind, oldest first."""
    return [one["metadata"]["name"] for one in world.client.list(kind)]


@controlled
async def test_a_stateful_set_grows_and_shrinks_in_order(world: World) -> None:
    """Each pod is created when the one before runs; its claim stays when it is deleted."""
    stateful(world)
    await asyncio.sleep(0.3)
    assert ["w-0"] == names(world)
    await asyncio.sleep(5)
    assert ["w-0", "w-1", "w-2"] == names(world)
    volumes = world.client.list("pods")[1]["spec"]["volumes"]
    assert [{"name": "data", "persistentVolumeClaim": {"claimName": "data-w-1"}}] == volumes
    change(world, "statefulsets.apps", replicas=1)
    await asyncio.sleep(5)
    assert ["w-0"] == names(world)
    assert 1 == status_of(world, "statefulsets.apps")["readyReplicas"]
    assert ["data-w-0", "data-w-1", "data-w-2"] == names(world, "persistentvolumeclaims")


@controlled
async def test_a_stateful_set_ignores_pods_with_names_of_others(world: World) -> None:
    """A pod that names it as its controller is neither counted nor deleted."""
    stateful(world)
    uid = world.get("statefulsets.apps", NAME)["metadata"]["uid"]
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": NAME, "uid": uid}
    owner = {**reference, "controller": True}
    for name in ("stray", "other-7"):
        metadata = {
            "name": name,
            "namespace": "default",
            "labels": {"app": NAME},
            "ownerReferences": [owner],
        }
        world.client.create("pods", {"metadata": metadata, "spec": SPEC})
    await asyncio.sleep(8)
    pods, status = sorted(names(world)), status_of(world, "statefulsets.apps")
    assert ["other-7", "stray", "w-0", "w-1", "w-2"] == pods
    assert status["replicas"] == 3


@controlled
async def test_a_parallel_stateful_set_creates_all_pods_at_once(world: World) -> None:
    """With the policy Parallel no pod waits for another."""
    stateful(world, podManagementPolicy="Parallel")
    await asyncio.sleep(0.3)
    assert ["w-0", "w-1", "w-2"] == names(world)


@controlled
async def test_a_stateful_set_is_updated_from_its_end_to_its_partition(world: World) -> None:
    """A pod is replaced when all after it are updated and run."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    stateful(world, updateStrategy=strategy)
    await asyncio.sleep(5)
    change(world, "statefulsets.apps", template=NEW_IMAGE)
    await asyncio.sleep(10)
    pods = sorted(world.client.list("pods"), key=lambda pod: pod["metadata"]["name"])
    assert ["i", "new", "new"] == [pod["spec"]["containers"][0]["image"] for pod in pods]


def add_cron_job(
    world: World, annotations: Json | None = None, name: str = NAME, **spec: Any
) -> None:
    """Create a cron job; the annotations are those of its pods."""
    pod = {"metadata": {"annotations": annotations or {}}, "spec": ONCE}
    spec["jobTemplate"] = {"spec": {"template": pod}}
    metadata = {"name": name, "namespace": "default"}
    world.client.create("cronjobs.batch", {"metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("policy", "jobs"),
    [
        pytest.param("Allow", ["w-29453762", "w-29453764", "w-29453766"], id="allow"),
        pytest.param("Forbid", ["w-29453762"], id="forbid"),
        pytest.param("Replace", ["w-29453766"], id="replace"),
    ],
)
@controlled
async def test_a_cron_job_creates_jobs_at_its_times(
    world: World, policy: str, jobs: list[str]
) -> None:
    """A job that still runs is kept, joined by another one, or replaced, by the policy."""
    annotations = {RUN_SECONDS: "1000"}
    add_cron_job(world, annotations, schedule="*/2 * * * *", concurrencyPolicy=policy)
    await asyncio.sleep(6 * 60 + 10)
    assert "2026-01-01T00:0" in status_of(world, "cronjobs.batch")["lastScheduleTime"]
    [first, *_] = [one["metadata"]["annotations"] for one in world.client.list("jobs.batch")]
    time = f"2026-01-01T00:0{jobs[0][-1]}:00Z"
    assert time == first["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert jobs == names(world, "jobs.batch")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"schedule": "@every 5m"}, id="schedule"),
        pytest.param({"schedule": "* * * * *", "timeZone": "Mars/Olympus"}, id="time-zone"),
        pytest.param({"schedule": "* * * * *", "timeZone": "Europe"}, id="part-of-a-time-zone"),
    ],
)
@controlled
async def test_an_invalid_cron_job_does_not_affect_others(world: World, spec: Json) -> None:
    """It is logged, and creates nothing: an older server may have stored it."""
    add_cron_job(world, schedule="@hourly")
    change(world, "cronjobs.batch", **spec)
    add_cron_job(world, name="b", schedule="@hourly")
    await asyncio.sleep(3700)
    assert ["b"] == [name.partition("-")[0] for name in names(world, "jobs.batch")]


@pytest.mark.parametrize(
    ("policy", "jobs"),
    [
        pytest.param("Forbid", ["mine", "w-29453761"], id="forbid"),
        pytest.param("Replace", ["mine", "w-29453762"], id="replace"),
    ],
)
@controlled
async def test_jobs_that_users_create_from_a_cron_job_do_not_count(
    world: World, policy: str, jobs: list[str]
) -> None:
    """They neither prevent Jobs nor are replaced, as after `kubectl create job --from`."""
    kind = "cronjobs.batch"
    annotations = {RUN_SECONDS: "1000"}
    add_cron_job(world, annotations, schedule="* * * * *", concurrencyPolicy=policy)
    mine = job_of(world.get(kind, NAME), "mine")
    mine["metadata"]["namespace"] = "default"
    world.client.create("jobs.batch", with_owner(world.get(kind, NAME), mine))
    await asyncio.sleep(130)
    assert jobs == names(world, "jobs.batch")
    assert jobs[1:] == [one["name"] for one in status_of(world, kind)["active"]]


@controlled
async def test_a_cron_job_keeps_its_history_limits(world: World) -> None:
    """Of finished jobs the last ones stay."""
    add_cron_job(world, schedule="* * * * *", successfulJobsHistoryLimit=2)
    await asyncio.sleep(5 * 60 + 30)
    assert ["w-29453764", "w-29453765"] == names(world, "jobs.batch")


@on_virtual_time
async def test_creating_kinds_without_controllers_warns() -> None:
    """Every kind of the list is served."""
    server = new_server()
    server.registry.idle_kinds = IDLE_KINDS
    kinds = LocalClient(server.registry, "tester").kinds()
    assert IDLE_KINDS.keys() - kinds == set()
    ingress = {"metadata": {"name": "i"}, "spec": {"defaultBackend": {"resource": BACKEND}}}
    where = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
    answer = await ask(server, "POST", where, ingress)
    assert 201 == answer.status
    assert ("Ingress is stored, but here nothing serves requests",) == answer.warnings
