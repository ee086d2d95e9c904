"""NodeVolumeLimits: volumes per CSI driver and node."""

from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.api.meta import KubeObject
from kubesched.api.storage import CSINode, StorageClass, VolumeAttachment
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import UNSIGNED
from kubesched.framework.status import SUCCESS, Status, failure, unresolvable, unschedulable
from kubesched.plugins.node_volume_limits import (
    NodeVolumeLimits,
    after_attachment_deletion,
    after_csi_node_update,
    after_pod_deletion,
)
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.objects import ObjectStore
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_snapshot, make_table
from kubesched.testing.handle import FakeHandle
from tests.plugins.by_node import filter_all
from tests.plugins.volume_objects import (
    claim_volumes,
    make_attachment,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
)

FULL = unschedulable("node(s) exceed max volume count")
EBS = "ebs.csi.aws.com"
DRIVER = "csi.example.com"
Json = dict[str, object]


def csi_pair(name: str, handle: str | None = None, driver: str = DRIVER) -> list[KubeObject]:
    """A claim and its CSI volume."""
    csi = {"driver": driver, "volumeHandle": handle or name}
    return [make_claim(name, volume=f"pv-{name}"), make_volume(f"pv-{name}", csi=csi)]


def ebs_volume(volume_id: str) -> Json:
    """An in-tree Amazon disk of a pod."""
    return {"name": f"ebs-{volume_id}", "awsElasticBlockStore": {"volumeID": volume_id}}


def ask(pod: Pod, snapshot: Snapshot, *, scaling: bool = False) -> dict[str, Status]:
    """Return the answers per node; all succeed if pre_filter skips."""
    plugin = NodeVolumeLimits(None, FakeHandle({"VolumeLimitScaling": scaling}))
    info = PodInfo(pod)
    result = plugin.pre_filter(CycleState(), info, snapshot)
    if result.status.is_skip:
        return dict.fromkeys(snapshot.nodes.names, SUCCESS)
    assert result.state is not None
    return filter_all(plugin, result.state, info, snapshot.nodes)


def ask_one(
    volumes: list[Json],
    objects: list[KubeObject],
    *,
    in_place: list[list[Json]] | None = None,
    limits: dict[str, int | None] | None = None,
) -> Status:
    """Return the answer of one node that has pods with these volumes."""
    pods = [
        make_pod(f"old{i}", volumes=theirs, node_name="n")
        for i, theirs in enumerate(in_place or [])
    ]
    nodes = [] if limits is None else [make_csi_node("n", limits)]
    snapshot = make_snapshot([make_node("n")], pods, [*objects, *nodes])
    return ask(make_pod("new", volumes=volumes), snapshot)["n"]


PAIRS = [*csi_pair("a"), *csi_pair("b"), *csi_pair("c", "a"), *csi_pair("d", driver="other")]


@pytest.mark.parametrize(
    ("mine", "theirs", "limit", "fits"),
    [
        pytest.param("a", [], 1, True, id="room for one"),
        pytest.param("a", [], 0, False, id="room for none"),
        pytest.param("a", ["b"], 1, False, id="no room left"),
        pytest.param("a", ["b"], 2, True, id="just fits"),
        pytest.param("a", ["a"], 1, True, id="in use there already"),
        pytest.param("a", ["c"], 1, True, id="same handle through another claim"),
        pytest.param("ab", ["d"], 2, True, id="other drivers have limits of their own"),
        pytest.param("ab", ["b"], 2, True, id="one of two is there"),
        pytest.param("aa", ["b"], 2, True, id="used twice, counted once"),
        pytest.param("a", ["b", "b"], 2, True, id="shared by two pods"),
        pytest.param("a", ["b"], None, True, id="driver without a limit"),
    ],
)
def test_limits(mine: str, theirs: list[str], limit: int | None, fits: bool) -> None:
    """New and attached volumes of a driver together stay within the limit."""
    found = ask_one(
        claim_volumes(*mine),
        PAIRS,
        in_place=[claim_volumes(*names) for names in theirs],
        limits={DRIVER: limit, "other": 1},
    )
    assert (SUCCESS if fits else FULL) == found


@pytest.mark.parametrize(
    ("claim", "volume", "storage_class", "counts"),
    [
        pytest.param(make_claim("c"), None, None, False, id="no volume, no class"),
        pytest.param(
            make_claim("c", storage_class="s"), None, make_class("s", provisioner=DRIVER), True,
            id="to be made by the driver",
        ),
        pytest.param(
            make_claim("c", storage_class="s", volume="gone"), None,
            make_class("s", provisioner=DRIVER), True, id="volume is missing",
        ),
        pytest.param(make_claim("c", storage_class="gone"), None, None, False, id="no class"),
        pytest.param(
            make_claim("c", storage_class="s"), None, make_class("s", provisioner=""), False,
            id="class without provisioner",
        ),
        pytest.param(
            make_claim("c", storage_class="s"), None,
            make_class("s", provisioner="kubernetes.io/aws-ebs"), True, id="in-tree provisioner",
        ),
        pytest.param(
            make_claim("c", storage_class="s"), None,
            make_class("s", provisioner="kubernetes.io/vsphere-volume"), False,
            id="in-tree provisioner that is not counted",
        ),
        pytest.param(
            make_claim("c", volume="v"),
            make_volume("v", awsElasticBlockStore={"volumeID": "aws:///vol-1"}), None, True,
            id="in-tree volume",
        ),
        pytest.param(
            make_claim("c", volume="v"),
            make_volume("v", awsElasticBlockStore={"volumeID": "aws:///nothing"}), None, False,
            id="in-tree volume that cannot be translated",
        ),
        pytest.param(
            make_claim("c", volume="v"),
            make_volume("v", vsphereVolume={"volumePath": "p"}), None, False,
            id="in-tree volume that is not counted",
        ),
        pytest.param(
            make_claim("c", volume="v"), make_volume("v", hostPath={"path": "/"}), None, False,
            id="no driver's volume",
        ),
        pytest.param(
            make_claim("c", volume="v"),
            make_volume("v", csi={"driver": DRIVER, "volumeHandle": ""}), None, False,
            id="no handle",
        ),
    ],
)  # fmt: skip
def test_counted_claims(
    claim: PersistentVolumeClaim,
    volume: PersistentVolume | None,
    storage_class: StorageClass | None,
    counts: bool,
) -> None:
    """A claim counts if a driver attaches its volume, provisioned or not."""
    objects: list[KubeObject] = [
        item for item in (claim, volume, storage_class) if item is not None
    ]
    limits: dict[str, int | None] = {DRIVER: 0, EBS: 0, "csi.vsphere.vmware.com": 0, "": 0}
    found = ask_one(claim_volumes("c"), objects, limits=limits)
    assert (FULL if counts else SUCCESS) == found


def test_in_tree_volumes_of_pods_count() -> None:
    """A pod's in-tree disk counts for the CSI driver that replaces its plugin."""
    volumes = [ebs_volume("vol-1")]
    assert FULL == ask_one(volumes, [], limits={EBS: 0})
    assert SUCCESS == ask_one(volumes, [], limits={EBS: 1})
    assert FULL == ask_one(volumes, [], in_place=[[ebs_volume("vol-2")]], limits={EBS: 1})
    assert SUCCESS == ask_one(volumes, [], in_place=[[ebs_volume("vol-1")]], limits={EBS: 1})
    assert SUCCESS == ask_one(volumes, [], limits=None)


@pytest.mark.parametrize(
    ("volume", "owner", "expected"),
    [
        pytest.param(
            claim_volumes("gone")[0],
            None,
            unresolvable('looking up PVC default/gone: persistentvolumeclaim "gone" not found'),
            id="no claim",
        ),
        pytest.param(
            claim_volumes("")[0], None, failure("PersistentVolumeClaim had no name"), id="no name"
        ),
        pytest.param({"name": "e", "ephemeral": {}}, "default/new", FULL, id="ephemeral"),
        pytest.param(
            {"name": "e", "ephemeral": {}},
            "stranger",
            failure("PVC default/new-e was not created for pod default/new (pod is not owner)"),
            id="not owned",
        ),
        pytest.param(
            ebs_volume("aws://x"),
            None,
            failure(
                "converting volume(ebs-aws://x) from inline to csi: failed to translate "
                "Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://x)"
            ),
            id="not to be translated",
        ),
    ],
)
def test_trouble_with_new_volumes(volume: Json, owner: str | None, expected: Status) -> None:
    """A missing claim rejects the pod; a volume that cannot be identified is an error."""
    claim = make_claim("new-e", storage_class="s", owner_uid=owner)
    objects: list[KubeObject] = [claim, make_class("s", provisioner=DRIVER)]
    assert expected == ask_one([volume], objects, limits={DRIVER: 0})


def test_trouble_with_volumes_in_place() -> None:
    """Missing claims of pods on nodes are ignored; a foreign ephemeral claim is an error."""
    objects: list[KubeObject] = [*PAIRS, make_claim("old0-e", owner_uid="stranger")]
    gone = [claim_volumes("gone")]
    assert SUCCESS == ask_one(claim_volumes("a"), objects, in_place=gone, limits={DRIVER: 1})
    foreign: list[list[Json]] = [[{"name": "e", "ephemeral": {}}]]
    text = "PVC default/old0-e was not created for pod default/old0 (pod is not owner)"
    many: dict[str, int | None] = {DRIVER: 100}
    assert failure(text) == ask_one(claim_volumes("a"), objects, in_place=foreign, limits=many)
    without: dict[str, int | None] = {DRIVER: None}
    assert SUCCESS == ask_one(claim_volumes("a"), objects, in_place=foreign, limits=without)


def many_nodes(pods: list[Pod], *objects: KubeObject) -> Snapshot:
    """Twenty nodes, each with room for two volumes."""
    names = [f"n{i}" for i in range(20)]
    csi_nodes = [make_csi_node(name, {DRIVER: 2}) for name in names]
    nodes = [make_node(name) for name in names]
    return make_snapshot(nodes, pods, [*PAIRS, *csi_nodes, *objects])


def test_trouble_among_many_nodes() -> None:
    """Volumes that cannot be identified are found among any number of nodes."""
    foreign = {"name": "e", "ephemeral": {}}
    olds = [
        make_pod("foreign", volumes=[foreign], node_name="n3"),
        make_pod("broken", volumes=[ebs_volume("aws://x")], node_name="n4"),
        make_pod("nameless", volumes=claim_volumes(""), node_name="n5"),
    ]
    snapshot = many_nodes(olds, make_claim("foreign-e", owner_uid="stranger"))
    found = ask(make_pod("new", volumes=claim_volumes("a")), snapshot)
    failed = [name for name, status in found.items() if status.error]
    assert ["n3", "n4", "n5"] == failed


def test_pods_added_to_many_rows() -> None:
    """A what-if that adds pods to a row of many is counted with them."""
    snapshot = many_nodes([make_pod("old", volumes=claim_volumes("b"), node_name="n0")])
    plugin = NodeVolumeLimits(None, FakeHandle())
    pod = make_pod_info("new", volumes=claim_volumes("a"))
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    what_if = snapshot.nodes.take(np.arange(20))
    assert plugin.filter(state, pod, what_if).passed.all()
    for item in csi_pair("x"):
        snapshot.objects.put(item)  # type: ignore[attr-defined]  # the builder's store
    what_if.add_pod(make_pod_info("more", volumes=claim_volumes("x")), 0)
    assert FULL == plugin.filter(state, pod, what_if)[0]


def test_pods_bound_to_many_rows_later_count() -> None:
    """Pods that come and go after the first cycle are counted."""
    snapshot = many_nodes([], *csi_pair("x"))
    plugin, table = NodeVolumeLimits(None, FakeHandle()), snapshot.nodes
    pod, expected = make_pod_info("new", volumes=claim_volumes("a")), [True] * 20
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    assert plugin.filter(state, pod, table).passed.all()
    bound = make_pod_info("old", volumes=claim_volumes("b", "x"))
    table.add_pod(bound, 7)
    expected[7] = False
    assert expected == plugin.filter(state, pod, table).passed.tolist()
    table.remove_pod(bound, 7)
    assert plugin.filter(state, pod, table).passed.all()


def test_attachments() -> None:
    """Attached CSI volumes count; one that is new counts again, one in use by a pod does not."""
    plain = make_volume("plain", hostPath={"path": "/"})
    attachments = [
        make_attachment("1", node="n", volume="pv-b"),
        make_attachment("2", node="other", volume="pv-d"),
        make_attachment("3", node="n", volume="gone"),
        make_attachment("4", node="n", volume="plain"),
        make_attachment("5", node="n", volume=None),
        make_attachment("6", node="n", volume="pv-b", attacher=""),
    ]
    objects: list[KubeObject] = [*PAIRS, plain, *attachments]
    assert FULL == ask_one(claim_volumes("a"), objects, limits={DRIVER: 1})
    assert SUCCESS == ask_one(claim_volumes("a"), objects, limits={DRIVER: 2})
    assert FULL == ask_one(claim_volumes("b"), objects, limits={DRIVER: 1})
    used = [claim_volumes("b")]
    assert SUCCESS == ask_one(claim_volumes("b"), objects, in_place=used, limits={DRIVER: 1})


def test_attachments_that_come_and_go() -> None:
    """A volume counts on the node that it is attached to now."""
    snapshot = many_nodes([])
    store, plugin = snapshot.objects, NodeVolumeLimits(None, FakeHandle())
    assert isinstance(store, ObjectStore)
    pod = make_pod_info("new", volumes=claim_volumes("a"))
    state = plugin.filter_state(CycleState(), pod, snapshot)
    store.put(make_attachment("1", node="n0", volume="pv-b"))
    store.put(make_volume("pv-x", csi={"driver": DRIVER, "volumeHandle": "x"}))
    for node in ("n1", "n0", "n2", None):
        attachment = make_attachment("2", node=node or "", volume="pv-x")
        _ = store.put(attachment) if node else store.delete(attachment)
        found = filter_all(plugin, state, pod, snapshot.nodes)
        assert [name for name, status in found.items() if status == FULL] == ["n0"] * (node == "n0")


def test_missing_driver() -> None:
    """With the gate VolumeLimitScaling, a driver may require to be installed."""
    objects: list[KubeObject] = [
        *PAIRS,
        make_driver(DRIVER, preventPodSchedulingIfMissing=True),
        make_csi_node("installed", {DRIVER: None}),
        make_csi_node("missing", {"other": 1}),
    ]
    nodes = [make_node(name) for name in ("installed", "missing", "unknown")]
    snapshot = make_snapshot(nodes, objects=objects)
    missing = unschedulable(f"{DRIVER} CSI driver is not installed on the node")
    expected = {"installed": SUCCESS, "missing": missing, "unknown": missing}
    pod = make_pod("new", volumes=claim_volumes("a"))
    assert expected == ask(pod, snapshot, scaling=True)
    assert dict.fromkeys(expected, SUCCESS) == ask(pod, snapshot)
    other = make_pod("new", volumes=claim_volumes("d"))
    assert dict.fromkeys(expected, SUCCESS) == ask(other, snapshot, scaling=True)


def test_sign_and_skip() -> None:
    """Pods without attachable volumes have equal signatures and are skipped."""
    plugin = NodeVolumeLimits(None, FakeHandle())
    for volumes in ([], [{"name": "s", "secret": {"secretName": "x"}}]):
        pod = make_pod_info(volumes=volumes)
        assert () == plugin.sign(pod)
        assert plugin.pre_filter(CycleState(), pod, make_snapshot()).status.is_skip
    others: list[Json] = [*claim_volumes("c"), ebs_volume("v"), {"name": "e", "ephemeral": {}}]
    for volume in others:
        assert UNSIGNED is plugin.sign(make_pod_info(volumes=[volume]))


def test_describe() -> None:
    """The driver, what is new, what is in use, and the limit."""
    plugin = NodeVolumeLimits(None, FakeHandle())
    old = make_pod("old", volumes=claim_volumes("b"), node_name="n")
    csi_node = make_csi_node("n", {DRIVER: 1})
    snapshot = make_snapshot([make_node("n")], [old], [*PAIRS, csi_node])
    pod = make_pod_info("new", volumes=claim_volumes("a"))
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    expected = f"{DRIVER}: 1 new volumes, 1 of 1 in use"
    assert expected == plugin.describe(state, pod, snapshot.nodes)


NAMES = "abcdefgh"
uses = st.lists(st.sampled_from(NAMES), max_size=3)


def slow_answer(
    pod: PodInfo, others: list[PodInfo], csi_node: CSINode | None, attached: list[str]
) -> Status:
    """Answer for one node from the rule; claim x has handle x of driver 0 or 1 by its letter."""

    def drivers(pods: list[PodInfo]) -> dict[str, str]:
        names = [name for info in pods for name in info.claim_names]
        return {name: f"d{NAMES.index(name) % 2}" for name in names}

    new, used = drivers([pod]), drivers(others)
    if csi_node is None or not new:
        return SUCCESS
    count = Counter(used.values())
    count.update(f"d{NAMES.index(name) % 2}" for name in set(attached) - set(used))
    wanted = Counter(driver for name, driver in new.items() if name not in used)
    for one in csi_node.spec.drivers:
        assert one.allocatable is not None
        limit = one.allocatable.count
        if limit is not None and wanted[one.name] and wanted[one.name] + count[one.name] > limit:
            return FULL
    return SUCCESS


@pytest.mark.slow
@settings(deadline=None)
@given(
    uses.filter(bool),
    st.lists(uses, min_size=20, max_size=24),
    st.lists(st.sampled_from(NAMES), max_size=6, unique=True),
    st.lists(st.none() | st.integers(0, 5), min_size=2, max_size=2),
    st.integers(0, 19),
)
def test_equals_twin(
    mine: list[str],
    others: list[list[str]],
    attached: list[str],
    limits: list[int | None],
    moved: int,
) -> None:
    """All rows answer as the rule does; also after a pod moved."""
    pairs = [item for i, x in enumerate(NAMES) for item in csi_pair(x, driver=f"d{i % 2}")]
    rows = 20
    csi_nodes = [make_csi_node(f"n{i}", {"d0": limits[0], "d1": 3}) for i in range(0, rows, 2)]
    if limits[1] is not None:
        csi_nodes[0] = make_csi_node("n0", {"d1": limits[1]})
    attachments = [
        make_attachment(x, node="n0", volume=f"pv-{x}", attacher=f"d{NAMES.index(x) % 2}")
        for x in attached
    ]
    pods = [
        make_pod(f"p{i}", volumes=claim_volumes(*names), node_name=f"n{(i % rows) // 4 * 2}")
        for i, names in enumerate(others)
    ]
    snapshot = make_snapshot(
        [make_node(f"n{i}") for i in range(rows)], pods, [*pairs, *csi_nodes, *attachments]
    )
    csi = {node.metadata.name: with_allocatable(node) for node in csi_nodes}
    pod = make_pod_info("new", volumes=claim_volumes(*mine))
    plugin = NodeVolumeLimits(None, FakeHandle())
    for _ in range(2):
        state = plugin.pre_filter(CycleState(), pod, snapshot).state
        assert state is not None
        expected = {
            name: slow_answer(
                pod,
                list(snapshot.nodes.pods[row].values()),
                csi.get(name),
                attached if name == "n0" else [],
            )
            for row, name in enumerate(snapshot.nodes.names)
        }
        assert expected == filter_all(plugin, state, pod, snapshot.nodes)
        what_if = snapshot.nodes.take(np.arange(rows))
        for info in list(what_if.pods[0].values()):
            what_if.remove_pod(info, 0)
        gone = slow_answer(pod, [], csi.get("n0"), attached)
        assert gone == plugin.filter(state, pod, what_if)[0]
        for info in list(snapshot.nodes.pods[moved].values()):
            snapshot.nodes.remove_pod(info, moved)
            snapshot.nodes.add_pod(info, 0)


steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["come", "come", "go", "limit", "attach", "detach", "node", "move", "bind", "lose"]
        ),
        st.integers(0, 19),
        uses.filter(bool),
    ),
    max_size=25,
)


def change_table(table: NodeColumns, at: int, what: str, row: int, names: list[str]) -> None:
    """Add, remove or replace pods or a node."""
    match what:
        case "come":
            for copy in range(2):
                table.add_pod(make_pod_info(f"p{at}-{copy}", volumes=claim_volumes(*names)), row)
        case "go":
            for info in list(table.pods[row].values())[:1]:
                table.remove_pod(info, row)
        case "node":
            table.update_node(make_node(table.names[row], labels={"x": f"{at}"}))
        case "move":
            table.add_node(make_node(f"m{at}"))
            table.remove_node(table.names[row])


def change_objects(store: ObjectStore, at: int, what: str, row: int, names: list[str]) -> None:
    """Change a limit, an attachment, a claim or a volume."""
    match what:
        case "limit":
            store.put(make_csi_node(f"n{row}", {"d0": len(names), "d1": None}))
        case "attach":
            attacher, volume = f"d{NAMES.index(names[0]) % 2}", f"pv-{names[0]}"
            store.put(make_attachment(f"{at}", node=f"n{row}", volume=volume, attacher=attacher))
        case "detach":
            for attachment in list(store.list(VolumeAttachment))[:1]:
                store.delete(attachment)
        case "bind":
            store.put(make_claim(names[0], volume=f"pv-{names[-1]}"))
        case "lose":
            store.delete(make_volume(f"pv-{names[0]}"))


@pytest.mark.slow
@settings(deadline=None)
@given(steps)
def test_kept_counts_equal_new_counts(story: list[tuple[str, int, list[str]]]) -> None:
    """While the cluster changes, pods of two drivers ask about its nodes and about a what-if."""
    pairs = [item for i, x in enumerate(NAMES) for item in csi_pair(x, driver=f"d{i % 2}")]
    csi_nodes = [make_csi_node(f"n{i}", {"d0": 2, "d1": 3}) for i in range(20)]
    snapshot = make_snapshot([make_node(f"n{i}") for i in range(20)], [], [*pairs, *csi_nodes])
    table, store = snapshot.nodes, snapshot.objects
    assert isinstance(store, ObjectStore)
    plugin = NodeVolumeLimits(None, FakeHandle())
    for at, (what, row, names) in enumerate(story):
        change_table(table, at, what, row, names)
        change_objects(store, at, what, row, names)
        pod = make_pod_info("new", volumes=claim_volumes(*names))
        state = plugin.pre_filter(CycleState(), pod, snapshot).state
        assert state is not None
        fresh = NodeVolumeLimits(None, FakeHandle())
        assert filter_all(fresh, state, pod, table) == filter_all(plugin, state, pod, table)
        what_if = table.take(np.array([row]))
        for info in list(what_if.pods[0].values())[:2]:
            what_if.remove_pod(info)
        what_if.add_pod(make_pod_info("nominated", volumes=claim_volumes(*names)))
        alone = Snapshot(nodes=make_table([make_node(table.names[row])]), objects=store)
        for info in what_if.pods[0].values():
            alone.nodes.add_pod(info, 0)
        expected = filter_all(fresh, fresh.filter_state(CycleState(), pod, alone), pod, alone.nodes)
        assert [*expected.values()] == [plugin.filter(state, pod, what_if)[0]]


def with_allocatable(node: CSINode) -> CSINode:
    """Drop drivers without a limit."""
    drivers = tuple(one for one in node.spec.drivers if one.allocatable is not None)
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, drivers=drivers))


@pytest.mark.parametrize(
    ("old", "new", "queues"),
    [
        pytest.param({"d": 1}, {"d": 2}, True, id="grew"),
        pytest.param({"d": 2}, {"d": 1}, False, id="shrank"),
        pytest.param({"d": 1}, {"d": 1}, False, id="same"),
        pytest.param({}, {"d": 1}, True, id="came"),
        pytest.param({}, {"d": 0}, False, id="came without room"),
        pytest.param({"d": None}, {"d": 1}, True, id="no limit counts as none"),
        pytest.param({"d": 1}, {"d": None}, False, id="limit was dropped"),
    ],
)
def test_after_csi_node_update(
    old: dict[str, int | None], new: dict[str, int | None], queues: bool
) -> None:
    """A limit that grew helps."""
    before, now = make_csi_node("n", old), make_csi_node("n", new)
    assert queues == after_csi_node_update(make_pod(), before, now)


@pytest.mark.parametrize(
    ("deleted", "queues"),
    [
        pytest.param(make_pod(volumes=claim_volumes("c"), node_name="n"), True, id="claim"),
        pytest.param(make_pod(volumes=claim_volumes("c")), False, id="was nowhere"),
        pytest.param(
            make_pod(volumes=[ebs_volume("v")], nominated_node_name="n"), True, id="nominated"
        ),
        pytest.param(make_pod(node_name="n"), False, id="no volumes"),
        pytest.param(
            make_pod(volumes=[{"name": "h", "hostPath": {"path": "/"}}], node_name="n"),
            False,
            id="nothing to attach",
        ),
    ],
)
def test_after_pod_deletion(deleted: Pod, queues: bool) -> None:
    """A pod that may have had volumes attached helps."""
    assert queues == after_pod_deletion(make_pod(), deleted, None)


@pytest.mark.parametrize(
    ("volumes", "queues"),
    [
        pytest.param(claim_volumes("c"), True, id="any claim"),
        pytest.param([{"name": "e", "ephemeral": {}}], False, id="not an ephemeral one"),
        pytest.param([ebs_volume("v")], True, id="in-tree volume of the driver"),
        pytest.param(
            [{"name": "g", "gcePersistentDisk": {"pdName": "d"}}], False, id="of another driver"
        ),
        pytest.param([], False, id="no volumes"),
    ],
)
def test_after_attachment_deletion(volumes: list[Json], queues: bool) -> None:
    """A detached volume may make room for the pod's."""
    attachment: VolumeAttachment = make_attachment("1", node="n", volume="v", attacher=EBS)
    assert queues == after_attachment_deletion(make_pod(volumes=volumes), attachment, None)


def test_events() -> None:
    """CSINodes, deleted pods, new claims, deleted attachments."""
    expected = [
        "storage.k8s.io/CSINodeAdd",
        "storage.k8s.io/CSINodeUpdate",
        "PodDelete",
        "PersistentVolumeClaimAdd",
        "storage.k8s.io/VolumeAttachmentDelete",
    ]
    events = NodeVolumeLimits(None, FakeHandle()).events_to_register()
    assert expected == [one.event.label for one in events]
