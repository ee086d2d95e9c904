"""VolumeRestrictions: one disk, one pod; one ReadWriteOncePod claim, one pod."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.api.volume import Volume
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import UNSIGNED
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.plugins.volume_restrictions import VolumeRestrictions, after_pod_deletion, conflicts
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_snapshot
from kubesched.testing.handle import FakeHandle
from tests.plugins.by_node import filter_all
from tests.plugins.volume_objects import claim_volumes, make_claim

DISK = VolumeRestrictions.disk_conflict
CLAIM = VolumeRestrictions.claim_conflict
NAMES = [f"n{at}" for at in range(9)]
EXCLUSIVE = ("ReadWriteOncePod",)


def gce(name: str, read_only: bool = False) -> dict[str, object]:
    """A Google disk."""
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str, read_only: bool = False) -> dict[str, object]:
    """An Amazon disk."""
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(name: str, read_only: bool = False) -> dict[str, object]:
    """An iSCSI disk."""
    portal = f"portal-{read_only}"
    return {"iscsi": {"targetPortal": portal, "iqn": name, "readOnly": read_only}}


def rbd(name: str, read_only: bool = False, *, monitors: str = "ab", pool: str = "p") -> object:
    """A Ceph image."""
    image = {"monitors": list(monitors), "pool": pool, "image": name, "readOnly": read_only}
    return {"rbd": image}


def with_disks(name: str, *disks: object, node: str = "") -> Pod:
    """A pod with disks."""
    volumes = [{"name": f"d{i}", **disk} for i, disk in enumerate(disks)]  # type: ignore[dict-item]
    return make_pod(name, volumes=volumes, node_name=node)


def ask(pod: Pod, snapshot: Snapshot) -> dict[str, Status] | Status:
    """Return the answers per node, or what pre_filter said if that was no success."""
    plugin = VolumeRestrictions(None, FakeHandle())
    info = PodInfo(pod)
    result = plugin.pre_filter(CycleState(), info, snapshot)
    if not result.status.is_success:
        return result.status
    assert result.state is not None
    return filter_all(plugin, result.state, info, snapshot.nodes)


@pytest.mark.parametrize(
    ("mine", "theirs", "fits"),
    [
        pytest.param(gce("a"), gce("a"), False, id="gce: same"),
        pytest.param(gce("a"), gce("b"), True, id="gce: other"),
        pytest.param(gce("a", True), gce("a"), False, id="gce: one writes"),
        pytest.param(gce("a", True), gce("a", True), True, id="gce: both read"),
        pytest.param(ebs("a"), ebs("a"), False, id="ebs: same"),
        pytest.param(ebs("a", True), ebs("a", True), False, id="ebs: both read"),
        pytest.param(ebs("a"), gce("a"), True, id="different kinds"),
        pytest.param(iscsi("a"), iscsi("a"), False, id="iscsi: same"),
        pytest.param(iscsi("a", True), iscsi("a", True), True, id="iscsi: both read"),
        pytest.param(iscsi("a", True), iscsi("a"), False, id="iscsi: the portal is no matter"),
        pytest.param(rbd("a"), rbd("a", monitors="bc"), False, id="rbd: a shared monitor"),
        pytest.param(rbd("a"), rbd("a", monitors="cd"), True, id="rbd: no shared monitor"),
        pytest.param(rbd("a"), rbd("a", pool="q"), True, id="rbd: other pool"),
        pytest.param(rbd("a"), rbd("b"), True, id="rbd: other image"),
        pytest.param(rbd("a", True), rbd("a", True), True, id="rbd: both read"),
    ],
)
def test_disks(mine: object, theirs: object, fits: bool) -> None:
    """Pods on a node share a disk only if both mount it read-only, where its kind allows that."""
    snapshot = make_snapshot(
        [make_node("n"), make_node("free")], [with_disks("old", theirs, node="n")]
    )
    expected = {"n": SUCCESS if fits else DISK, "free": SUCCESS}
    assert expected == ask(with_disks("new", mine), snapshot)


def test_disks_of_other_names_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only nodes with a disk of the same name are looked at."""
    compared: list[str] = []

    def noted(mine: Volume, theirs: Volume) -> bool:
        compared.append(theirs.name)
        return conflicts(mine, theirs)

    monkeypatch.setattr("kubesched.plugins.volume_restrictions.conflicts", noted)
    pods = [with_disks(f"p{at}", gce(f"disk-{at}"), node=f"n{at}") for at in range(9)]
    snapshot = make_snapshot(map(make_node, NAMES), pods)
    pod, plugin = PodInfo(with_disks("new", gce("disk-4"))), VolumeRestrictions(None, FakeHandle())
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    found = plugin.filter(state, pod, snapshot.nodes)
    assert [name == "n4" for name in NAMES] == (found.index > 0).tolist()
    assert 1 == len(compared)


@pytest.mark.parametrize(
    ("modes", "user", "rejected"),
    [
        pytest.param(EXCLUSIVE, "default", True, id="in use"),
        pytest.param(("ReadWriteOnce",), "default", False, id="may be shared"),
        pytest.param(EXCLUSIVE, "other", False, id="used in another namespace"),
        pytest.param(EXCLUSIVE, None, False, id="not in use"),
    ],
)
def test_exclusive_claims(modes: tuple[str, ...], user: str | None, rejected: bool) -> None:
    """A ReadWriteOncePod claim in use rejects every node."""
    pods = []
    if user is not None:
        pods.append(make_pod("old", namespace=user, volumes=claim_volumes("c"), node_name="n"))
    claim = make_claim("c", access_modes=modes)
    snapshot = make_snapshot([make_node("n"), make_node("free")], pods, [claim])
    found = ask(make_pod("new", volumes=claim_volumes("c")), snapshot)
    if rejected:
        assert {"n": CLAIM, "free": CLAIM} == found
    else:
        assert isinstance(found, Status)
        assert found.is_skip


def test_disk_conflict_comes_first() -> None:
    """A node where disk and claim are taken names the disk."""
    volumes = [*claim_volumes("c"), {"name": "d", **gce("a")}]
    old = make_pod("old", volumes=volumes, node_name="n")
    claim = make_claim("c", access_modes=EXCLUSIVE)
    snapshot = make_snapshot([make_node("n"), make_node("free")], [old], [claim])
    expected = {"n": DISK, "free": CLAIM}
    assert expected == ask(make_pod("new", volumes=volumes), snapshot)


def test_missing_claim() -> None:
    """A missing claim rejects the pod; other plugins handle a missing ephemeral claim."""
    snapshot = make_snapshot([make_node("n")])
    found = ask(make_pod(volumes=claim_volumes("gone")), snapshot)
    assert unresolvable('persistentvolumeclaim "gone" not found') == found
    found = ask(make_pod(volumes=[{"name": "e", "ephemeral": {}}]), snapshot)
    assert isinstance(found, Status)
    assert found.is_skip


def test_what_if_counts_uses() -> None:
    """Added and removed pods change the count of uses; their namespace is not compared."""
    plugin = VolumeRestrictions(None, FakeHandle())
    old = make_pod("old", volumes=claim_volumes("c"), node_name="n")
    claim = make_claim("c", access_modes=EXCLUSIVE)
    snapshot = make_snapshot([make_node("n")], [old], [claim])
    pod = make_pod_info("new", volumes=claim_volumes("c"))
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    node = snapshot.nodes.take(np.array([0]))
    what_if = state.clone()
    plugin.remove_pod(what_if, pod, PodInfo(old), node)
    assert SUCCESS == plugin.filter(what_if, pod, node)[0]
    assert CLAIM == plugin.filter(state, pod, node)[0]
    stranger = make_pod_info("s", namespace="other", volumes=claim_volumes("c", "c"))
    plugin.add_pod(what_if, pod, stranger, node)
    assert 2 == what_if.count
    plugin.remove_pod(what_if, pod, stranger, node)
    plugin.remove_pod(what_if, pod, stranger, node)
    assert -2 == what_if.count
    assert SUCCESS == plugin.filter(what_if, pod, node)[0]


def test_sign() -> None:
    """Pods without claims are distinguished by their disks."""
    plugin = VolumeRestrictions(None, FakeHandle())
    assert () == plugin.sign(make_pod_info())
    one, two = (PodInfo(with_disks("p", gce(name))) for name in "ab")
    assert plugin.sign(one) == plugin.sign(PodInfo(with_disks("q", gce("a"))))
    assert plugin.sign(one) != plugin.sign(two)
    assert hash(plugin.sign(one)) == hash(plugin.sign(one))
    assert UNSIGNED is plugin.sign(make_pod_info(volumes=claim_volumes("c")))


def test_describe() -> None:
    """The pod that has the disk, or the claims that are for one pod."""
    plugin = VolumeRestrictions(None, FakeHandle())
    snapshot = make_snapshot([make_node("n")], [with_disks("old", gce("a"), node="n")])
    pod = PodInfo(with_disks("new", gce("a")))
    state = plugin.pre_filter(CycleState(), pod, snapshot).state
    assert state is not None
    assert "disk in use by pod default/old" == plugin.describe(state, pod, snapshot.nodes)


disks = st.lists(
    st.builds(
        lambda make, name, read_only: make(name, read_only),
        st.sampled_from([gce, ebs, iscsi, rbd]),
        st.sampled_from("ab"),
        st.booleans(),
    ),
    max_size=2,
)


def slow_conflict(mine: Volume, theirs: Volume) -> bool:
    """Whether two disks may not meet, from the rule."""
    for field, names in (
        ("gce_persistent_disk", ("pd_name",)),
        ("iscsi", ("iqn",)),
        ("rbd", ("pool", "image")),
        ("aws_elastic_block_store", ("volume_id",)),
    ):
        a, b = getattr(mine, field), getattr(theirs, field)
        if a is None or b is None or any(getattr(a, n) != getattr(b, n) for n in names):
            continue
        if field == "rbd" and not set(a.monitors) & set(b.monitors):
            continue
        if field == "aws_elastic_block_store" or not (a.read_only and b.read_only):
            return True
    return False


@given(disks, st.lists(disks, max_size=5))
def test_disks_equal_twin(mine: list[object], others: list[list[object]]) -> None:
    """The table answers as the rule does for each node, also after pods have moved."""
    pods = [with_disks(f"p{i}", *theirs, node=f"n{i % 3}") for i, theirs in enumerate(others)]
    snapshot = make_snapshot([make_node(f"n{i}") for i in range(3)], pods)
    pod = PodInfo(with_disks("new", *mine))
    plugin = VolumeRestrictions(None, FakeHandle())
    result = plugin.pre_filter(CycleState(), pod, snapshot)
    if result.status.is_skip:
        assert not mine
        return
    assert result.state is not None
    for _ in range(2):
        expected = {
            name: DISK
            if any(
                slow_conflict(a, b)
                for other in snapshot.nodes.pods[row].values()
                for a in pod.spec.volumes
                for b in other.spec.volumes
            )
            else SUCCESS
            for row, name in enumerate(snapshot.nodes.names)
        }
        assert expected == filter_all(plugin, result.state, pod, snapshot.nodes)
        for info in list(snapshot.nodes.pods[0].values()):
            snapshot.nodes.remove_pod(info, 0)
            snapshot.nodes.add_pod(info, 1)


@pytest.mark.parametrize(
    ("deleted", "queues"),
    [
        pytest.param(with_disks("old", gce("a")), True, id="had the disk"),
        pytest.param(with_disks("old", gce("b")), False, id="had another disk"),
        pytest.param(make_pod("old", volumes=claim_volumes("c")), True, id="used the claim"),
        pytest.param(make_pod("old", volumes=claim_volumes("d")), False, id="used another claim"),
        pytest.param(
            make_pod("old", namespace="other", volumes=claim_volumes("c")), False, id="elsewhere"
        ),
    ],
)
def test_after_pod_deletion(deleted: Pod, queues: bool) -> None:
    """The deletion of a pod with a disk or a claim of the pod helps."""
    pod = make_pod(volumes=[*claim_volumes("c"), {"name": "d", **gce("a")}])
    assert queues == after_pod_deletion(pod, deleted, None)


def test_events() -> None:
    """Deleted pods, new nodes, new claims."""
    events = VolumeRestrictions(None, FakeHandle()).events_to_register()
    expected = ["PodDelete", "NodeAdd", "PersistentVolumeClaimAdd"]
    assert expected == [one.event.label for one in events]
