"""VolumeBinding: which nodes can serve a pod's claims."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.field_errors import ConfigError
from kubesched.api.meta import KubeObject
from kubesched.api.storage import CSIStorageCapacity, StorageClass
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.config.args import UtilizationShapePoint
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import UNSIGNED
from kubesched.framework.status import SUCCESS, Status, failure, unresolvable
from kubesched.plugins.shared.score_curve import ScoreCurve
from kubesched.plugins.volume_binding import (
    VolumeBinding,
    VolumeBindingArgs,
    after_capacity_change,
    after_csi_driver_change,
    after_csi_node_change,
    after_storage_class_change,
    score_pod_volumes,
)
from kubesched.plugins.volumes.claims import after_claim_change
from kubesched.plugins.volumes.decisions import PodVolumes, StaticBinding
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import all_rows, make_node, make_pod, make_pod_info, make_snapshot
from kubesched.testing.handle import FakeHandle
from tests.plugins.by_node import filter_all
from tests.plugins.observed import Observed
from tests.plugins.volume_objects import (
    HOSTNAME,
    SELECTED_NODE,
    ZONE,
    claim_volumes,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_pool,
    make_volume,
    terms,
)

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
CSI = "csi.example.com"
NODES = [make_node(f"n{i}", labels={ZONE: "ab"[i // 2], HOSTNAME: f"n{i}"}) for i in range(4)]
WAIT = make_class("wait")
STATIC = make_class("static", provisioner="kubernetes.io/no-provisioner")
MINE = {"namespace": "default", "name": "c"}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
X_IS_Y = {"selector": {"matchLabels": {"x": "y"}}}
GATE = {"StorageCapacityScoring": True}


def make_plugin(gates: dict[str, bool] | None = None) -> VolumeBinding:
    """Build the plugin with default arguments."""
    return VolumeBinding(VolumeBindingArgs(), FakeHandle(gates))


def ask(pod: PodInfo, objects: Sequence[KubeObject]) -> dict[str, Status] | Status:
    """Return the answers per node, or what pre_filter said if that was no success."""
    plugin, snapshot = make_plugin(), make_snapshot(NODES, objects=objects)
    result = plugin.pre_filter(CycleState(), pod, snapshot)
    if not result.status.is_success:
        return result.status
    assert result.state is not None
    found = filter_all(plugin, result.state, pod, snapshot.nodes)
    for row, status in enumerate(found.values()):
        # Without a state there is no detail.
        if status.is_success or status.is_rejected:
            detail = plugin.describe(result.state, pod, snapshot.nodes.row_view(row))
            assert status.is_success == (not detail)
    return found


def passing(pod: PodInfo, objects: Sequence[KubeObject]) -> str:
    """Return the numbers of the nodes that pass."""
    found = ask(pod, objects)
    assert isinstance(found, dict)
    return "".join(name[1:] for name, status in found.items() if status.is_success)


def using(*claims: str) -> PodInfo:
    """A pod with these claims."""
    return make_pod_info("pod", volumes=claim_volumes(*claims))


EPHEMERAL = make_pod_info("pod", volumes=[{"name": "e", "ephemeral": {}}])


@pytest.mark.parametrize(
    ("pod", "objects", "status"),
    [
        pytest.param(using("c"), [], 'persistentvolumeclaim "c" not found', id="no claim"),
        pytest.param(
            EPHEMERAL,
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-e"',
            id="ephemeral claim not made yet",
        ),
        pytest.param(
            EPHEMERAL,
            [make_claim("pod-e", volume="v", owner_uid="stranger")],
            "PVC default/pod-e was not created for pod default/pod (pod is not owner)",
            id="ephemeral claim of another pod",
        ),
        pytest.param(
            using("c"),
            [make_claim("c", volume="v", phase="Lost")],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
            id="lost",
        ),
        pytest.param(
            using("c"),
            [make_claim("c", volume="v", metadata=DELETED)],
            'persistentvolumeclaim "c" is being deleted',
            id="being deleted",
        ),
        *(
            pytest.param(
                using("c"),
                [claim, WAIT, make_class("now", mode="Immediate")],
                "pod has unbound immediate PersistentVolumeClaims",
                id=name,
            )
            for name, claim in {
                "no class": make_claim("c"),
                "class is missing": make_claim("c", storage_class="gone"),
                "binds at once": make_claim("c", storage_class="now"),
                "binding not over": make_claim(
                    "c", storage_class="wait", volume="v", completed=False
                ),
                "annotation without volume": make_claim("c", completed=True),
                "beta class": make_claim(
                    "c",
                    storage_class="wait",
                    annotations={"volume.beta.kubernetes.io/storage-class": "now"},
                ),
            }.items()
        ),
    ],
)
def test_pre_filter_rejects(pod: PodInfo, objects: Sequence[KubeObject], status: str) -> None:
    """Claims that cannot be used, or that others must bind first, reject the pod."""
    assert unresolvable(status) == ask(pod, objects)


def test_class_without_mode_is_an_error() -> None:
    """A class without a binding mode is an error."""
    objects = [make_claim("c", storage_class="s"), make_class("s", mode=None)]
    expected = failure('VolumeBindingMode not set for StorageClass "s"')
    assert expected == ask(using("c"), objects)


def test_skip_and_sign() -> None:
    """Pods without claims are skipped, have equal signatures, and are not scored."""
    plugin, snapshot = make_plugin(), make_snapshot(NODES)
    pod = make_pod_info(volumes=[{"name": "h", "hostPath": {"path": "/"}}])
    cycle = CycleState()
    result = plugin.pre_filter(cycle, pod, snapshot)
    assert result.status.is_skip
    cycle.filter_states[plugin.name] = result.state
    assert () == plugin.sign(pod)
    assert UNSIGNED is plugin.sign(using("c"))
    assert UNSIGNED is plugin.sign(EPHEMERAL)
    assert plugin.pre_score(cycle, pod, snapshot, all_rows(snapshot)).status.is_skip
    assert SUCCESS == plugin.reserve(cycle, pod, "n0")
    assert plugin.pre_bind_pre_flight(cycle, pod, "n0").is_skip
    plugin.unreserve(cycle, pod, "n0")


def bound(*volumes: PersistentVolume) -> list[KubeObject]:
    """Volumes, and a claim c0, c1, ... bound to each."""
    claims = [make_claim(f"c{i}", volume=v.metadata.name) for i, v in enumerate(volumes)]
    return [*volumes, *claims]


def fields(operator: str, *values: str) -> dict[str, object]:
    """A node affinity that requires a name."""
    term = {"matchFields": [{"key": "metadata.name", "operator": operator, "values": values}]}
    return {"required": {"nodeSelectorTerms": [term]}}


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param(make_volume("v"), "0123", id="no affinity"),
        pytest.param(make_volume("v", nodes={ZONE: ["a"]}), "01", id="zone"),
        pytest.param(make_volume("v", nodes={HOSTNAME: ["n3", "n1"]}), "13", id="hosts"),
        pytest.param(make_volume("v", nodes={}), "", id="an empty term"),
        pytest.param(make_volume("v", nodeAffinity={"required": terms()}), "", id="no terms"),
        pytest.param(make_volume("v", nodeAffinity={}), "0123", id="nothing required"),
        pytest.param(
            make_volume("v", nodeAffinity={"required": terms({ZONE: ["a"]}, {HOSTNAME: ["n3"]})}),
            "013",
            id="one of two terms",
        ),
        pytest.param(make_volume("v", nodeAffinity=fields("In", "n1")), "0123", id="no names"),
        pytest.param(make_volume("v", nodeAffinity=fields("NotIn", "n1")), "0123", id="no name"),
        pytest.param(make_volume("v", nodeAffinity=fields("In")), "", id="malformed"),
    ],
)
def test_bound_volume(volume: PersistentVolume, expected: str) -> None:
    """A bound volume is where its affinity says, by labels alone."""
    assert expected == passing(using("c0"), bound(volume))


def test_bound_volumes_are_checked_in_order() -> None:
    """The first problem of a node is the one that is reported."""
    here = make_volume("here", nodes={ZONE: ["a"]})
    objects: list[KubeObject] = [*bound(here), make_claim("gone", volume="gone")]
    conflict, missing = unresolvable(NODE_CONFLICT), unresolvable(VOLUME_MISSING)
    expected = {"n0": missing, "n1": missing, "n2": conflict, "n3": conflict}
    assert expected == ask(using("c0", "gone"), objects)
    assert dict.fromkeys(expected, missing) == ask(using("gone", "c0"), objects)


def test_migrated_volume() -> None:
    """On nodes with migration, an in-tree volume is matched by the driver's label."""
    key = "topology.ebs.csi.aws.com/zone"
    nodes = [make_node(f"n{i}", labels={ZONE: "ab"[i % 2], key: "ab"[i // 2]}) for i in range(4)]
    volume = make_volume("v", nodes={ZONE: ["a"]}, awsElasticBlockStore={"volumeID": "vol-1"})
    csi_nodes = [make_csi_node(f"n{i}", migrated=["kubernetes.io/aws-ebs"]) for i in (1, 2)]
    snapshot = make_snapshot(nodes, objects=[*bound(volume), *csi_nodes])
    plugin, pod = make_plugin(), using("c0")
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    found = filter_all(plugin, state, pod, snapshot.nodes)
    assert ["n0", "n1"] == [name for name, status in found.items() if status.is_success]
    broken = make_volume("v", awsElasticBlockStore={"volumeID": "aws://x"})
    snapshot = make_snapshot(nodes, objects=[*bound(broken), *csi_nodes])
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    codes = [
        status.error[:22] for status in filter_all(plugin, state, pod, snapshot.nodes).values()
    ]
    assert ["", "could not translate pv", "could not translate pv", ""] == codes
    observed = Observed()
    plugin.handle.provide(observer=observed)  # type: ignore[attr-defined]  # a fake
    plugin.filter(state, pod, snapshot.nodes)
    assert [("volume", "predicate")] == observed.calls


@pytest.mark.parametrize(
    ("claim", "volumes", "expected"),
    [
        pytest.param({}, [{"nodes": {ZONE: ["b"]}}], "23", id="where the volume is"),
        pytest.param({}, [{}], "0123", id="volume without affinity"),
        pytest.param({"storage": "2Gi"}, [{"storage": "1Gi"}], "", id="too small"),
        pytest.param({"storage": "1024Mi"}, [{"storage": "1Gi"}], "0123", id="just as large"),
        pytest.param({"storage": None}, [{}], "0123", id="no size asked for"),
        pytest.param({}, [{"phase": "Released"}], "", id="not available"),
        pytest.param({}, [{"storage_class": "other"}], "", id="other class"),
        pytest.param({}, [{"access_modes": ["ReadOnlyMany"]}], "", id="other access mode"),
        pytest.param({}, [{"volumeMode": "Block"}], "", id="other volume mode"),
        pytest.param(
            {"spec": {"volumeMode": "Filesystem"}}, [{}], "0123", id="default volume mode"
        ),
        pytest.param(
            {"spec": {"volumeAttributesClassName": "fast"}}, [{}], "", id="other attributes class"
        ),
        pytest.param(
            {"spec": {"volumeAttributesClassName": ""}}, [{}], "0123", id="empty attributes class"
        ),
        pytest.param({}, [{"metadata": DELETED}], "", id="deleting"),
        pytest.param({"spec": X_IS_Y}, [{}], "", id="selector"),
        pytest.param({"spec": X_IS_Y}, [{"labels": {"x": "y"}}], "0123", id="selector matches"),
        pytest.param({}, [{"claim": {"namespace": "default", "name": "d"}}], "", id="another's"),
        pytest.param(
            {},
            [{"claim": MINE, "phase": "Bound"}],
            "0123",
            id="kept for the claim, whatever the phase",
        ),
        pytest.param(
            {}, [{"claim": {**MINE, "uid": "old"}}], "", id="kept for a former claim of the name"
        ),
        pytest.param(
            {}, [{}, {"claim": MINE, "nodes": {ZONE: ["a"]}}], "01", id="its own volume or none"
        ),
        pytest.param(
            {"annotations": {SELECTED_NODE: "n1"}}, [{}], "", id="to be made elsewhere or never"
        ),
    ],
)
def test_static_matching(
    claim: dict[str, Any], volumes: list[dict[str, Any]], expected: str
) -> None:
    """Without a provisioner a claim needs a volume that fits it."""
    objects: list[KubeObject] = [STATIC, make_claim("c", storage_class="static", **claim)]
    for i, volume in enumerate(volumes):
        objects.append(make_volume(f"v{i}", **{"storage_class": "static", **volume}))
    assert expected == passing(using("c"), objects)


def test_smallest_claim_takes_smallest_volume() -> None:
    """Claims are served by size, so that the large volume is left for the large claim."""
    objects: list[KubeObject] = [
        STATIC,
        make_claim("large", storage_class="static", storage="5Gi"),
        make_claim("small", storage_class="static", storage="1Gi"),
        make_volume("v10", storage_class="static", storage="10Gi"),
        make_volume("v2", storage_class="static", storage="2Gi", nodes={ZONE: ["a"]}),
    ]
    # In zone b the small claim takes the only volume.
    assert "01" == passing(using("large", "small"), objects)
    expected = unresolvable(BIND_CONFLICT)
    found = ask(using("large", "small"), objects)
    assert isinstance(found, dict)
    assert expected == found["n2"]


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        pytest.param([{"claim": MINE}], "", id="used up"),
        pytest.param([{"claim": MINE}, {"nodes": {ZONE: ["a"]}}], "01", id="another in its place"),
        pytest.param(
            [{"claim": MINE, "nodes": {ZONE: ["a"]}}, {}, {}],
            "01",
            id="its own volume or none, on nodes where it is not used up",
        ),
        pytest.param([{"claim": MINE}] * 2, "0123", id="two of its own"),
        pytest.param([{}], "", id="one that is nobody's"),
        pytest.param([{}, {"nodes": {ZONE: ["b"]}}], "23", id="two that are nobody's"),
    ],
)
def test_claim_named_twice(volumes: list[dict[str, Any]], expected: str) -> None:
    """As upstream, a pod that names a claim twice needs two volumes for it."""
    objects: list[KubeObject] = [STATIC, make_claim("c", storage_class="static")]
    for i, volume in enumerate(volumes):
        objects.append(make_volume(f"v{i}", storage_class="static", **volume))
    assert expected == passing(using("c", "c"), objects)


def test_malformed_selector_is_an_error() -> None:
    """A claim whose selector does not parse ends the cycle."""
    bad = {"matchExpressions": [{"key": "x", "operator": "Near"}]}
    claim = make_claim("c", storage_class="static", spec={"selector": bad})
    found = ask(using("c"), [STATIC, claim])
    assert isinstance(found, dict)
    text = "error creating internal label selector for claim: default/c: "
    assert found["n0"].error.startswith(text)


@pytest.mark.parametrize(
    ("storage_class", "annotations", "expected"),
    [
        pytest.param(WAIT, {}, "0123", id="anywhere"),
        pytest.param(make_class("wait", provisioner=""), {}, "", id="no provisioner"),
        pytest.param(make_class("wait", topologies=[{ZONE: ["a"]}]), {}, "01", id="one zone"),
        pytest.param(
            make_class("wait", topologies=[{ZONE: ["a"]}, {HOSTNAME: ["n3"]}]), {}, "013", id="or"
        ),
        pytest.param(
            make_class("wait", topologies=[{ZONE: ["a"], HOSTNAME: ["n1", "n3"]}]),
            {},
            "1",
            id="and",
        ),
        pytest.param(make_class("wait", topologies=[{}]), {}, "", id="an empty term"),
        pytest.param(make_class("wait", topologies=[{ZONE: []}]), {}, "", id="no values"),
        pytest.param(WAIT, {SELECTED_NODE: "n2"}, "2", id="node was selected"),
        pytest.param(WAIT, {SELECTED_NODE: ""}, "", id="no node was selected"),
        pytest.param(WAIT, {SELECTED_NODE: "gone"}, "", id="selected node is gone"),
    ],
)
def test_provisioning(
    storage_class: StorageClass, annotations: dict[str, str], expected: str
) -> None:
    """A volume can be provisioned where the class allows it."""
    claim = make_claim("c", storage_class="wait", annotations=annotations)
    assert expected == passing(using("c"), [storage_class, claim])


def in_zone(zone: str) -> dict[str, object]:
    """A label selector of a zone."""
    return {"matchLabels": {ZONE: zone}}


@pytest.mark.parametrize(
    ("pools", "storage", "expected"),
    [
        pytest.param([], "1Gi", "", id="no pools"),
        pytest.param([], None, "0123", id="no size asked for"),
        pytest.param([("wait", {}, "1Gi", None)], "1Gi", "0123", id="everywhere"),
        pytest.param([("wait", None, "1Gi", None)], "1Gi", "", id="nowhere"),
        pytest.param([("other", {}, "1Gi", None)], "1Gi", "", id="of another class"),
        pytest.param([("wait", in_zone("b"), "1Gi", None)], "1Gi", "23", id="in a zone"),
        pytest.param([("wait", {}, "1Gi", None)], "2Gi", "", id="too small"),
        pytest.param([("wait", {}, "9Gi", "1Gi")], "2Gi", "", id="largest volume counts first"),
        pytest.param([("wait", {}, "1Gi", "9Gi")], "2Gi", "0123", id="though capacity is small"),
        pytest.param([("wait", {}, None, None)], "0", "", id="size is not known"),
        pytest.param(
            [("wait", {"matchExpressions": [{"key": "x", "operator": "Near"}]}, "1Gi", None)],
            "1Gi",
            "",
            id="malformed selector",
        ),
    ],
)
def test_capacity(
    pools: list[tuple[str, dict[str, object] | None, str | None, str | None]],
    storage: str | None,
    expected: str,
) -> None:
    """A driver that reports its capacity needs a pool with room for the volume."""
    objects: list[KubeObject] = [
        WAIT,
        make_driver(CSI, storageCapacity=True),
        make_claim("c", storage_class="wait", storage=storage),
    ]
    for i, (name, topology, capacity, largest) in enumerate(pools):
        objects.append(
            make_pool(f"p{i}", name, topology=topology, capacity=capacity, largest=largest)
        )
    assert expected == passing(using("c"), objects)
    found = ask(using("c"), objects)
    assert isinstance(found, dict)
    rejections = {status for status in found.values() if not status.is_success}
    assert rejections <= {unresolvable(NO_SPACE)}
    silent = [make_driver(CSI, storageCapacity=False), *objects[:1], *objects[2:]]
    assert "0123" == passing(using("c"), silent)


def test_two_reasons() -> None:
    """A node may be rejected for a bound claim and for an unbound one, in this order."""
    objects: list[KubeObject] = [
        *bound(make_volume("v", nodes={ZONE: ["a"]})),
        STATIC,
        make_claim("c", storage_class="static"),
    ]
    found = ask(using("c", "c0"), objects)
    assert isinstance(found, dict)
    assert unresolvable(BIND_CONFLICT) == found["n0"]
    assert unresolvable(NODE_CONFLICT, BIND_CONFLICT) == found["n3"]


def score(objects: Sequence[KubeObject], *claims: str) -> list[int]:
    """Return the scores of the nodes, with the gate on."""
    plugin, pod = make_plugin(GATE), using(*claims)
    snapshot = make_snapshot(NODES, objects=objects)
    cycle = start(plugin, pod, snapshot)
    result = plugin.pre_score(cycle, pod, snapshot, all_rows(snapshot))
    assert result.status.is_success
    assert result.state is not None
    scores: list[int] = plugin.score(result.state, pod, snapshot.nodes).tolist()
    return scores


def test_score_static() -> None:
    """With the gate on, emptier volumes are better: 100 - utilization by default."""
    objects: list[KubeObject] = [
        STATIC,
        make_claim("c", storage_class="static", storage="1Gi"),
        make_volume("small", storage_class="static", storage="2Gi", nodes={ZONE: ["a"]}),
        make_volume("large", storage_class="static", storage="4Gi", nodes={ZONE: ["b"]}),
    ]
    assert [50, 50, 75, 75] == score(objects, "c")


def test_score_dynamic() -> None:
    """Claims of one class share the pool's capacity; without known capacity the score is 0."""
    objects: list[KubeObject] = [
        WAIT,
        make_driver(CSI, storageCapacity=True),
        make_claim("c", storage_class="wait", storage="1Gi"),
        make_claim("d", storage_class="wait", storage="1Gi"),
        make_pool("a", "wait", topology=in_zone("a"), capacity="4Gi"),
        make_pool("b", "wait", topology=in_zone("b"), capacity="2Gi"),
    ]
    assert [50, 50, 0, 0] == score(objects, "c", "d")
    assert [75, 75, 50, 50] == score(objects, "c")
    assert [0, 0, 0, 0] == score([WAIT, *objects[2:]], "c")


def test_score_without_claims() -> None:
    """With the gate on, pods without claims score 0 everywhere instead of skipping."""
    plugin, snapshot = make_plugin(GATE), make_snapshot(NODES)
    pod, cycle = make_pod_info(), CycleState()
    cycle.filter_states[plugin.name] = plugin.pre_filter(cycle, pod, snapshot).state
    result = plugin.pre_score(cycle, pod, snapshot, all_rows(snapshot))
    assert result.status.is_success
    assert [0] * 4 == plugin.score(None, make_pod_info(), snapshot.nodes).tolist()


# The twin.

SIZES = {"1Gi": 1, "2Gi": 2, "1024Mi": 1, "3Gi": 3}
places = st.sampled_from([None, {ZONE: ["a"]}, {ZONE: ["b"]}, {HOSTNAME: ["n0", "n3"]}])
sizes = st.sampled_from(list(SIZES))
modes = st.sampled_from([("ReadWriteOnce",), ("ReadWriteOnce", "ReadOnlyMany")])
volume_strategy = st.fixed_dictionaries(
    {
        "storage_class": st.sampled_from(["static", "wait"]),
        "storage": sizes,
        "nodes": places,
        "claim": st.sampled_from(
            [None, None, None, {"namespace": "default", "name": "c0"}, {"name": "x"}]
        ),
        "phase": st.sampled_from(["Available", "Available", "Bound"]),
        "labels": st.sampled_from([{}, {"x": "y"}]),
        "access_modes": modes,
    }
)
claim_strategy = st.fixed_dictionaries(
    {
        "storage_class": st.sampled_from(["static", "wait"]),
        "storage": sizes,
        "volume": st.sampled_from(["", "", "", "v0", "v1", "gone"]),
        "annotations": st.sampled_from([{}, {}, {}, {SELECTED_NODE: "n0"}]),
        "spec": st.sampled_from([{}, {}, X_IS_Y]),
        "access_modes": modes,
    }
)
cluster_strategy = st.fixed_dictionaries(
    {
        "volumes": st.lists(volume_strategy, max_size=8),
        "claims": st.lists(claim_strategy, min_size=1, max_size=3),
        "again": st.lists(st.integers(0, 2), max_size=2),
        "topologies": st.sampled_from([(), ({ZONE: ["a"]},), ({HOSTNAME: ["n0", "n2"]},)]),
        "pools": st.none() | st.lists(st.tuples(st.sampled_from("ab"), sizes), max_size=3),
    }
)


def is_there(place: dict[str, list[str]] | None, labels: dict[str, str]) -> bool:
    """Whether a node with these labels is in the place."""
    return place is None or all(labels[key] in values for key, values in place.items())


def used_claims(cluster: dict[str, Any]) -> list[int]:
    """Return which claims the pod's volumes name, in order; some of them twice."""
    claims = range(len(cluster["claims"]))
    return [*claims, *(i for i in cluster["again"] if i in claims)]


class Twin:
    """Decides for one node after the other, from the rules.

    Attributes:
        taken: The volumes that claims get on the latest node.
    """

    def __init__(self, cluster: dict[str, Any]) -> None:
        self.taken: list[int] = []
        self.volumes: list[dict[str, Any]] = cluster["volumes"]
        self.claims: list[dict[str, Any]] = cluster["claims"]
        self.used = used_claims(cluster)
        self.topologies = cluster["topologies"]
        self.pools = cluster["pools"]

    def reasons(self, node: str, labels: dict[str, str]) -> list[str]:
        """Return what is wrong with a node."""
        self.taken, found = [], []
        problem = self.bound_problem(labels)
        if problem == NODE_CONFLICT:
            found.append(problem)
        unbound = self.unbound_problem(node, labels)
        if unbound:
            found.append(unbound)
        if problem == VOLUME_MISSING:
            found.append(problem)
        return found

    def bound_problem(self, labels: dict[str, str]) -> str:
        """Return the first problem with a bound claim."""
        for claim in self.claims:
            if not claim["volume"]:
                continue
            at = {"v0": 0, "v1": 1}.get(claim["volume"], 9)
            if at >= len(self.volumes):
                return VOLUME_MISSING
            if not is_there(self.volumes[at]["nodes"], labels):
                return NODE_CONFLICT
        return ""

    def unbound_problem(self, node: str, labels: dict[str, str]) -> str:
        """Return what is wrong with the claims that have no volume."""
        unbound = [i for i in self.used if not self.claims[i]["volume"]]
        to_make = [i for i in unbound if self.claims[i]["annotations"]]
        if any(self.claims[i]["annotations"][SELECTED_NODE] != node for i in to_make):
            return BIND_CONFLICT
        to_match = [i for i in unbound if i not in to_make]
        for i in sorted(to_match, key=lambda i: SIZES[self.claims[i]["storage"]]):
            volume = self.match(i, labels)
            if volume is None:
                to_make.append(i)
            else:
                self.taken.append(volume)
        for i in to_make:
            claim = self.claims[i]
            if claim["storage_class"] == "static":
                return BIND_CONFLICT
            if self.topologies and not any(is_there(t, labels) for t in self.topologies):
                return BIND_CONFLICT
            if self.pools is not None and not any(
                labels[ZONE] == zone and SIZES[size] >= SIZES[claim["storage"]]
                for zone, size in self.pools
            ):
                return NO_SPACE
        return ""

    def match(self, i: int, labels: dict[str, str]) -> int | None:
        """Return the best volume for a claim."""
        claim, best = self.claims[i], None
        for at, volume in enumerate(self.volumes):
            kept = volume["claim"]
            is_mine = kept is not None and kept == {"namespace": "default", "name": f"c{i}"}
            size = SIZES[volume["storage"]]
            if at in self.taken or (kept is not None and not is_mine):
                continue
            if volume["storage_class"] != claim["storage_class"]:
                continue
            if size < SIZES[claim["storage"]]:
                continue
            if is_mine:
                return at if is_there(volume["nodes"], labels) else None
            if volume["phase"] != "Available" or not is_there(volume["nodes"], labels):
                continue
            if claim["spec"] and not volume["labels"]:
                continue
            if not set(claim["access_modes"]) <= set(volume["access_modes"]):
                continue
            if best is None or size < SIZES[self.volumes[best]["storage"]]:
                best = at
        return best


def build(cluster: dict[str, Any]) -> list[KubeObject]:
    """Build the objects of a cluster."""
    objects: list[KubeObject] = [
        STATIC,
        make_class("wait", topologies=cluster["topologies"]),
        make_driver(CSI, storageCapacity=cluster["pools"] is not None),
    ]
    objects += [make_volume(f"v{i}", **volume) for i, volume in enumerate(cluster["volumes"])]
    objects += [make_claim(f"c{i}", **claim) for i, claim in enumerate(cluster["claims"])]
    for i, (zone, size) in enumerate(cluster["pools"] or ()):
        objects.append(make_pool(f"p{i}", "wait", topology=in_zone(zone), capacity=size))
    return objects


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(cluster_strategy)
def test_filter_equals_twin(cluster: dict[str, Any]) -> None:
    """The table answers as the rules do for each node."""
    twin, objects = Twin(cluster), build(cluster)
    pod = using(*(f"c{i}" for i in used_claims(cluster)))
    snapshot = make_snapshot(NODES, objects=objects)
    state = make_plugin().pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    expected = {}
    for row, node in enumerate(NODES):
        reasons = twin.reasons(node.metadata.name, node.metadata.labels)
        expected[node.metadata.name] = unresolvable(*reasons) if reasons else SUCCESS
        if not reasons:
            bindings = state.decider.decide().pod_volumes(row).static_bindings
            assert [f"v{at}" for at in twin.taken] == [b.volume.metadata.name for b in bindings]
    assert expected == ask(pod, objects)


# Arguments.


def test_args() -> None:
    """Ten minutes to bind; a shape only with the gate."""
    handle = FakeHandle()
    assert VolumeBindingArgs() == VolumeBinding.decode_args(None, handle, "args")
    args = VolumeBinding.decode_args({"bindTimeoutSeconds": 5}, handle, "args")
    assert 5 == args.bind_timeout_seconds
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    args = VolumeBinding.decode_args({"shape": shape}, FakeHandle(GATE), "args")
    assert args.shape is not None
    assert [0, 10] == [point.score for point in args.shape]


NEGATIVE = (
    "args.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, "
    "should not be a negative value"
)
UNEXPECTED = (
    "args.shape: Invalid value: []: unexpected field `shape`, remove it or turn on the "
    "feature gate StorageCapacityScoring"
)


@pytest.mark.parametrize(
    ("raw", "gates", "errors"),
    [
        pytest.param({"bindTimeoutSeconds": -1}, {}, [NEGATIVE], id="negative timeout"),
        pytest.param(
            {"shape": [], "bindTimeoutSeconds": -1},
            {},
            [NEGATIVE, UNEXPECTED],
            id="shape without the gate",
        ),
        pytest.param(
            {"shape": [{"utilization": 0, "score": 11}]},
            GATE,
            ["args.shape[0].score: Invalid value: 11: not in valid range [0, 10]"],
            id="score out of range",
        ),
    ],
)
def test_args_field_errors(
    raw: dict[str, object], gates: dict[str, bool], errors: list[str]
) -> None:
    """All field errors are reported, with upstream's messages."""
    with pytest.raises(ConfigError) as error:
        VolumeBinding.decode_args(raw, FakeHandle(gates), "args")
    assert errors == [str(field_error) for field_error in error.value.errors]


# Events.


def test_events() -> None:
    """Added and changed storage objects, and added or relabelled nodes."""
    expected = {
        "storage.k8s.io/StorageClass": 8189,
        "PersistentVolumeClaim": 8189,
        "PersistentVolume": 8189,
        "Node": 9,
        "storage.k8s.io/CSINode": 8189,
        "storage.k8s.io/CSIDriver": 8188,
        "storage.k8s.io/CSIStorageCapacity": 8189,
    }
    events = make_plugin().events_to_register()
    assert expected == {one.event.resource: int(one.event.action) for one in events}


def test_after_storage_class_change() -> None:
    """A class helps if it is new or allows other topologies."""
    other = make_class("wait", topologies=[{ZONE: ["a"]}])
    assert after_storage_class_change(make_pod(), None, WAIT)
    assert after_storage_class_change(make_pod(), WAIT, other)
    assert not after_storage_class_change(make_pod(), WAIT, make_class("wait", provisioner="x"))


def test_after_claim_change() -> None:
    """A claim of the pod helps, an ephemeral one too."""
    pod = make_pod(volumes=[*claim_volumes("c"), {"name": "e", "ephemeral": {}}])
    assert after_claim_change(pod, make_claim("c"), make_claim("c"))
    assert after_claim_change(pod, None, make_claim("pod-e"))
    assert not after_claim_change(pod, None, make_claim("other"))
    assert not after_claim_change(pod, None, make_claim("c", metadata={"namespace": "other"}))


def test_after_csi_node_change() -> None:
    """A CSINode helps if it is new or reports other migrated plugins."""
    plain, migrated = make_csi_node("n"), make_csi_node("n", migrated=["kubernetes.io/gce-pd"])
    assert after_csi_node_change(make_pod(), None, plain)
    assert after_csi_node_change(make_pod(), plain, migrated)
    assert not after_csi_node_change(make_pod(), plain, make_csi_node("n", {"d": 1}))


@pytest.mark.parametrize(
    ("old", "new", "driver", "queues"),
    [
        (True, False, CSI, True),
        (True, None, CSI, True),
        (False, True, CSI, False),
        (None, False, CSI, False),
        (True, True, CSI, False),
        (True, False, "other", False),
    ],
)
def test_after_csi_driver_change(
    old: bool | None, new: bool | None, driver: str, queues: bool
) -> None:
    """A driver of an inline volume helps when it stops reporting its capacity."""
    pod = make_pod(volumes=[{"name": "i", "csi": {"driver": driver}}])
    before, now = (
        make_driver(CSI, **({} if tells is None else {"storageCapacity": tells}))
        for tells in (old, new)
    )
    assert queues == after_csi_driver_change(pod, before, now)


@pytest.mark.parametrize(
    ("old", "new", "queues"),
    [
        pytest.param(None, ("1Gi", None), True, id="new"),
        pytest.param(("1Gi", None), ("2Gi", None), True, id="grew"),
        pytest.param(("1Gi", None), ("1024Mi", None), False, id="same"),
        pytest.param(("2Gi", None), ("1Gi", None), False, id="shrank"),
        pytest.param((None, None), ("1Gi", None), True, id="appeared"),
        pytest.param(("1Gi", None), (None, None), False, id="vanished"),
        pytest.param(("1Gi", "1Gi"), ("9Gi", "1Gi"), False, id="largest volume counts"),
    ],
)
def test_after_capacity_change(
    old: tuple[str | None, str | None] | None, new: tuple[str | None, str | None], queues: bool
) -> None:
    """A pool helps if it is new or has room for larger volumes."""

    def pool(sizes_: tuple[str | None, str | None]) -> CSIStorageCapacity:
        return make_pool("p", "wait", capacity=sizes_[0], largest=sizes_[1])

    before = None if old is None else pool(old)
    assert queues == after_capacity_change(make_pod(), before, pool(new))


# Decisions, and their effect on later cycles.


def start(plugin: VolumeBinding, pod: PodInfo, snapshot: Snapshot) -> CycleState:
    """Run a cycle up to the choice of a node."""
    cycle = CycleState()
    result = plugin.pre_filter(cycle, pod, snapshot)
    assert result.state is not None, result.status
    cycle.filter_states[plugin.name] = result.state
    plugin.filter(result.state, pod, snapshot.nodes)
    return cycle


def passing_rows(plugin: VolumeBinding, pod: PodInfo, snapshot: Snapshot) -> list[int]:
    """Return the rows that pass in a cycle of its own."""
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    rows: list[int] = plugin.filter(state, pod, snapshot.nodes).passed.nonzero()[0].tolist()
    return rows


def two_claims() -> Snapshot:
    """Two claims and one volume in zone a."""
    objects: list[KubeObject] = [
        STATIC,
        make_volume("v", storage_class="static", nodes={ZONE: ["a"]}),
        make_claim("c", storage_class="static"),
        make_claim("d", storage_class="static"),
    ]
    return make_snapshot(NODES, objects=objects)


def test_reserved_volume_is_taken() -> None:
    """A volume that is assumed bound is unavailable to other pods until it is released."""
    plugin, snapshot = make_plugin(), two_claims()
    cycle = start(plugin, using("c"), snapshot)
    assert SUCCESS == plugin.reserve(cycle, using("c"), "n1")
    assert plugin.pre_bind_pre_flight(cycle, using("c"), "n1").is_success
    assert [] == passing_rows(plugin, using("d"), snapshot)
    assert [0, 1] == passing_rows(plugin, using("c"), snapshot)
    plugin.unreserve(cycle, using("c"), "n1")
    plugin.unreserve(cycle, using("c"), "n1")
    assert [0, 1] == passing_rows(plugin, using("d"), snapshot)


def test_reserved_provision_keeps_the_node() -> None:
    """A claim that is provisioned for one node is not provisioned for another."""
    plugin = make_plugin()
    snapshot = make_snapshot(NODES, objects=[WAIT, make_claim("c", storage_class="wait")])
    pod = using("c")
    cycle = start(plugin, pod, snapshot)
    assert SUCCESS == plugin.reserve(cycle, pod, "n2")
    assert [2] == passing_rows(plugin, pod, snapshot)
    plugin.unreserve(cycle, pod, "n2")
    assert [0, 1, 2, 3] == passing_rows(plugin, pod, snapshot)


def test_all_bound_needs_no_binding() -> None:
    """When every claim has its volume, nothing is reserved and pre_bind is skipped."""
    plugin, pod = make_plugin(), using("c0")
    snapshot = make_snapshot(NODES, objects=bound(make_volume("v")))
    cycle = start(plugin, pod, snapshot)
    assert SUCCESS == plugin.reserve(cycle, pod, "n0")
    assert plugin.pre_bind_pre_flight(cycle, pod, "n0").is_skip


def test_reserve_after_a_change() -> None:
    """If the stored volume has changed, reserving fails and nothing stays assumed."""
    plugin, snapshot = make_plugin(), two_claims()
    cycle = start(plugin, using("c"), snapshot)
    newer = make_volume(
        "v", storage_class="static", nodes={ZONE: ["a"]}, metadata={"resourceVersion": "2"}
    )
    snapshot.objects.put(newer)  # type: ignore[attr-defined]  # the builder's store
    expected = failure('"v" is out of sync (stored: 2, assume: 1)')
    observed = Observed()
    plugin.handle.provide(observer=observed)  # type: ignore[attr-defined]  # a fake
    assert expected == plugin.reserve(cycle, using("c"), "n0")
    assert [("volume", "assume")] == observed.calls
    plugin.unreserve(cycle, using("c"), "n0")
    assert [0, 1] == passing_rows(plugin, using("d"), snapshot)


def test_pre_flight_of_another_node() -> None:
    """A node that was not reserved is an error."""
    plugin, snapshot = make_plugin(), two_claims()
    cycle = start(plugin, using("c"), snapshot)
    plugin.reserve(cycle, using("c"), "n0")
    expected = failure('no pod volume found for node "n3"')
    assert expected == plugin.pre_bind_pre_flight(cycle, using("c"), "n3")


def test_frozen_claims_stay() -> None:
    """Assumed objects are copies; stored objects do not change."""
    plugin = make_plugin()
    claim = make_claim("c", storage_class="wait")
    before: PersistentVolumeClaim = msgspec.structs.replace(claim)
    snapshot = make_snapshot(NODES, objects=[WAIT, claim])
    cycle = start(plugin, using("c"), snapshot)
    plugin.reserve(cycle, using("c"), "n0")
    assert before == claim


def test_decisions_follow_the_table_until_reserve() -> None:
    """A node that takes the row of another keeps its own volume."""
    volumes = [
        make_volume(f"v-{name}", storage_class="static", nodes={HOSTNAME: [name]}) for name in "abc"
    ]
    claim = make_claim(storage_class="static")
    nodes = [make_node(name, labels={HOSTNAME: name}) for name in "abc"]
    snapshot = make_snapshot(nodes, objects=[claim, STATIC, *volumes])
    plugin, pod, cycle = make_plugin(), make_pod_info(volumes=claim_volumes("claim")), CycleState()
    state = plugin.pre_filter(cycle, pod, snapshot).state
    assert state is not None
    cycle.filter_states[plugin.name] = state
    assert all(one.is_success for one in filter_all(plugin, state, pod, snapshot.nodes).values())
    snapshot.nodes.remove_node("a")
    assert plugin.reserve(cycle, pod, "c").is_success
    [binding] = state.reserved["c"].static_bindings
    assert binding.volume.metadata.name == "v-c"


# Scores by storage utilization.


RISING = ScoreCurve([UtilizationShapePoint(utilization=at, score=at // 10) for at in (0, 100)])


@pytest.mark.parametrize(
    ("bindings", "expected"),
    [
        pytest.param([("a", "1Gi", "4Gi")], 25, id="one"),
        pytest.param([("a", "1Gi", "4Gi"), ("a", "3Gi", "4Gi")], 50, id="one class: sums"),
        pytest.param([("a", "1Gi", "4Gi"), ("b", "3Gi", "4Gi")], 50, id="two classes: mean"),
        pytest.param([("a", "1", "100"), ("b", "2", "100")], 2, id="halves round up"),
        pytest.param([("a", "1Gi", "0")], 100, id="no capacity"),
        pytest.param([("a", "2Gi", "1Gi")], 100, id="more than there is"),
        pytest.param([("a", "8Ei", "8Ei")], 0, id="as upstream, 64 bits overflow"),
        pytest.param([], 0, id="nothing"),
    ],
)
def test_score(bindings: list[tuple[str, str, str]], expected: int) -> None:
    """Classes are scored by requested and capacity, and the mean counts."""
    volumes = PodVolumes(
        tuple(
            StaticBinding(
                make_volume(f"v{i}", storage_class=name, storage=capacity),
                make_claim(f"c{i}", storage=requested),
            )
            for i, (name, requested, capacity) in enumerate(bindings)
        )
    )
    assert expected == score_pod_volumes(volumes, RISING)
