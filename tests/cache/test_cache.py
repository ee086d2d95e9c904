"""The cache: states of pods, added and removed nodes, and the rows of the table."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kubesched.api.core import ContainerStatus, Pod, ResourceRequirements, Service
from kubesched.cache.cache import Cache, CacheError, CacheStatistics
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_pod_info

NODES = ("a", "b", "c")
HUNDRED = {"cpu": "100m"}

_names = st.sampled_from(["p", "q", "r", "s"])
_nodes = st.sampled_from(NODES)
_sizes = st.integers(1, 3)


def _pod(name: str, node_name: str, size: int = 1) -> Pod:
    return make_pod(
        name,
        node_name=node_name,
        requests={"cpu": size},
        host_ports=[8000 + size],
        labels={"size": str(size)},
    )


class CacheHistory(RuleBasedStateMachine):
    """Compares the cache with a dictionary of pods and states, by the specification's table."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.nodes: dict[str, int] = {}
        self.assumed: dict[str, tuple[str, int]] = {}
        self.added: dict[str, tuple[str, int]] = {}

    @rule(name=_names, node=_nodes, size=_sizes)
    def assume(self, name: str, node: str, size: int) -> None:
        """Only an absent pod can be assumed."""
        info = PodInfo(_pod(name, "", size))
        if name in self.assumed or name in self.added:
            text = f"pod {info.uid}({info.key}) is in the cache, so can't be assumed"
            _refused(lambda: self.cache.assume_pod(info, node), text)
        else:
            there = self.cache.assume_pod(info, node)
            assert (node, "") == (there.node_name, info.node_name)
            self.assumed[name] = (node, size)

    @rule(name=_names)
    def forget(self, name: str) -> None:
        """An assumed pod is forgotten, an added one is not, an absent one is ignored."""
        node, size = self.assumed.get(name) or self.added.get(name) or ("a", 1)
        info = PodInfo(_pod(name, node, size))
        if name in self.added:
            text = f"pod {info.uid}({info.key}) wasn't assumed so cannot be forgotten"
            _refused(lambda: self.cache.forget_pod(info), text)
        else:
            self.cache.forget_pod(info)
            self.assumed.pop(name, None)

    @rule(name=_names, node=_nodes, size=_sizes)
    def add(self, name: str, node: str, size: int) -> None:
        """An assumed pod is confirmed on any node; an added one cannot be added again."""
        pod = _pod(name, node, size)
        if name in self.added:
            key = f"{pod.metadata.uid}({pod.metadata.namespace}/{name})"
            _refused(lambda: self.cache.add_pod(pod), f"pod {key} was already in added state")
        else:
            assert node == self.cache.add_pod(pod).node_name
            self.assumed.pop(name, None)
            self.added[name] = (node, size)

    @rule(name=_names)
    def confirm(self, name: str) -> None:
        """The informer observes the pod exactly as assumed."""
        if name in self.assumed:
            node, size = self.added[name] = self.assumed.pop(name)
            self.cache.add_pod(_pod(name, node, size))

    @rule(name=_names, node=_nodes, size=_sizes)
    def update(self, name: str, node: str, size: int) -> None:
        """Only an added pod can be updated; it may change its size, and its node."""
        pod = _pod(name, node, size)
        if name in self.added:
            self.cache.update_pod(pod)
            self.added[name] = (node, size)
        else:
            key = f"{pod.metadata.uid}({pod.metadata.namespace}/{name})"
            text = f"pod {key} is not added, so can't be updated"
            _refused(lambda: self.cache.update_pod(pod), text)

    @rule(name=_names)
    def remove(self, name: str) -> None:
        """Remove a pod in any state."""
        found = self.cache.remove_pod(f"default/{name}")
        known = name in self.assumed or name in self.added
        assert known == (found is not None)
        self.assumed.pop(name, None)
        self.added.pop(name, None)

    @rule(node=_nodes, cpu=st.integers(1, 4))
    def put_node(self, node: str, cpu: int) -> None:
        """Add or update a node."""
        self.cache.add_node(make_node(node, allocatable={"cpu": cpu}))
        self.nodes[node] = cpu

    @rule(node=_nodes)
    def remove_node(self, node: str) -> None:
        """Remove a node; its pods are kept."""
        self.cache.remove_node(node)
        self.nodes.pop(node, None)

    @invariant()
    def is_consistent(self) -> None:
        """The cache's invariants hold."""
        self.cache.check()

    @invariant()
    def equals_the_dictionary(self) -> None:
        """The same pods are in the same states."""
        everything = {**self.assumed, **self.added}
        statistics = CacheStatistics(len(self.nodes), len(everything), len(self.assumed))
        assert statistics == self.cache.statistics()
        for name in ("p", "q", "r", "s"):
            info = self.cache.get_pod(f"default/{name}")
            assert (name in everything) == (info is not None)
            assert (name in self.assumed) == self.cache.is_assumed(f"default/{name}")
            assert info is None or everything[name][0] == info.node_name

    @invariant()
    def rows_equal_the_sums_of_their_pods(self) -> None:
        """Pods of unknown nodes are on no row."""
        everything = {**self.assumed, **self.added}
        table = self.cache.snapshot().nodes
        assert set(self.nodes) == set(table.names)
        for row, node in enumerate(table.names):
            here = {name: size for name, (at, size) in everything.items() if at == node}
            assert {f"default/{name}" for name in here} == set(table.pods[row])
            assert 1000 * sum(here.values()) == table.requested_of("cpu")[row]
            assert 1000 * self.nodes[node] == table.allocatable_of("cpu")[row]
            assert len(here) == table.pod_counts[row]


TestCacheHistory = pytest.mark.slow(CacheHistory.TestCase)
TestCacheHistory.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def _refused(ask: Callable[[], object], text: str) -> None:
    with pytest.raises(CacheError) as raised:
        ask()
    assert text == str(raised.value)


def _cache(*nodes: str) -> Cache:
    cache = Cache()
    for name in nodes:
        cache.add_node(make_node(name))
    return cache


def test_confirming_a_pod_as_assumed_changes_no_row() -> None:
    """The newer object is stored."""
    cache = _cache("a")
    assumed = cache.assume_pod(make_pod_info("p", requests=HUNDRED), "a")
    changes = cache.nodes.changes.version
    confirmed = make_pod("p", requests=HUNDRED, node_name="a", start_time="2026-01-01T00:00:00Z")
    cache.add_pod(confirmed)
    assert changes == cache.nodes.changes.version
    (info,) = cache.nodes.pods[0].values()
    assert (assumed.uid, confirmed) == (info.uid, info.pod)
    assert info is cache.get_pod(assumed.uid)


def test_labels_added_by_the_binding_change_the_row() -> None:
    """But not the amounts that the pod occupies; the row is logged once more."""
    cache = _cache("a")
    pod = make_pod("p", requests=HUNDRED, labels={"app": "x"}, host_ports=[80])
    assumed = cache.assume_pod(PodInfo(pod), "a")
    cache.assume_pod(make_pod_info("q", requests=HUNDRED, labels={"app": "x"}), "a")
    changes = cache.nodes.changes.version
    labels = {"app": "x", "topology.kubernetes.io/zone": "z"}
    info = cache.add_pod(
        make_pod("p", requests=HUNDRED, labels=labels, host_ports=[80], node_name="a")
    )
    assert changes + 1 == cache.nodes.changes.version
    assert ["q", "p"] == [each.name for each in cache.nodes.pods[0].values()]
    assert not cache.is_assumed(assumed.uid)
    assert [{"app": "x"}, labels] == [group.labels for group in cache.nodes.groups]
    cache.check()
    cache.remove_pod(info.uid)
    assert [{"app": "x"}] == [group.labels for group in cache.nodes.groups]
    assert [100] == cache.nodes.requested_of("cpu").tolist()
    cache.check()


@pytest.mark.parametrize("is_assumed", [False, True])
def test_annotations_of_a_pod_change_its_row(*, is_assumed: bool) -> None:
    """Plugins of scope ROW may read them, such as the devices that a pod was given."""
    cache = _cache("a")
    if is_assumed:
        cache.assume_pod(make_pod_info("p"), "a")
    else:
        cache.add_pod(make_pod("p", node_name="a"))
    changes = cache.nodes.changes.version
    annotated = make_pod("p", node_name="a", metadata={"annotations": {"gpus": "0,1"}})
    change = cache.add_pod if is_assumed else cache.update_pod
    info = change(annotated)
    assert changes < cache.nodes.changes.version
    assert [info] == list(cache.nodes.pods[0].values())
    cache.check()


def _reported(pod: Pod, cpu: str) -> Pod:
    """Return the pod with allocated resources in its status."""
    name = pod.spec.containers[0].name
    resources = ResourceRequirements(requests={"cpu": cpu})
    given = ContainerStatus(name=name, allocated_resources={"cpu": cpu}, resources=resources)
    status = msgspec.structs.replace(pod.status, container_statuses=(given,))
    return msgspec.structs.replace(pod, status=status)


@pytest.mark.parametrize(("cpu", "is_row_changed"), [("100m", False), ("300m", True)])
def test_allocated_resources_change_a_row_if_they_exceed_the_requests(
    cpu: str, is_row_changed: bool
) -> None:
    """Usually they equal the requests."""
    cache = _cache("a")
    pod = make_pod("p", requests=HUNDRED, node_name="a")
    cache.add_pod(pod)
    before = cache.nodes.requested_of("cpu").tolist()
    changes = cache.nodes.changes.version
    reported = _reported(pod, cpu)
    info = cache.update_pod(reported)
    assert is_row_changed == (changes < cache.nodes.changes.version)
    assert is_row_changed == (before != cache.nodes.requested_of("cpu").tolist())
    assert reported is info.pod
    assert [info] == list(cache.nodes.pods[0].values())
    cache.check()
    cache.remove_pod(info.uid)
    assert [0] == cache.nodes.requested_of("cpu").tolist()


def test_a_confirmation_on_another_node_moves_the_pod() -> None:
    """The observed node overrides the assumed one."""
    cache = _cache("a", "b")
    info = cache.assume_pod(make_pod_info("p", requests=HUNDRED), "a")
    cache.add_pod(make_pod("p", requests=HUNDRED, node_name="b"))
    assert [0, 100] == cache.nodes.requested_of("cpu").tolist()
    assert not cache.is_assumed(info.uid)
    cache.check()


def test_a_pod_confirmed_with_a_deletion_timestamp_is_terminating() -> None:
    """Its label group is that of terminating pods."""
    cache = _cache("a")
    cache.assume_pod(make_pod_info("p"), "a")
    cache.add_pod(
        make_pod("p", node_name="a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    )
    assert [True] == [group.is_terminating for group in cache.nodes.groups]
    cache.check()


def test_pods_observed_before_their_node() -> None:
    """They count once it is added, until it is removed."""
    cache = Cache()
    cache.add_pod(make_pod("p", node_name="late", requests=HUNDRED))
    cache.assume_pod(make_pod_info("q", requests=HUNDRED), "late")
    cache.add_node(make_node("late"))
    assert [200] == cache.nodes.requested_of("cpu").tolist()
    cache.remove_node("late")
    assert (0, 2) == (len(cache.nodes), cache.statistics().pods)
    cache.remove_pod("default/p")
    cache.add_pod(make_pod("q", node_name="late", requests=HUNDRED))
    cache.add_node(make_node("late"))
    assert ["default/q"] == list(cache.nodes.pods[0])
    cache.check()


def test_removing_an_unknown_node_does_nothing() -> None:
    """The other nodes stay."""
    cache = _cache("a")
    cache.remove_node("b")
    assert ["a"] == list(cache.nodes.names)


@pytest.mark.parametrize(
    ("change", "is_seen"),
    [
        ({"lastHeartbeatTime": "2026-01-01T00:05:00Z"}, False),
        ({"status": "False"}, True),
        ({"reason": "KubeletNotReady"}, True),
    ],
)
def test_a_heartbeat_does_not_invalidate_answers(
    *, change: dict[str, object], is_seen: bool
) -> None:
    """The table's epoch grows if anything else of the node has changed."""
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    before, after = (
        make_node("a", status={"conditions": [condition]}, metadata={"resourceVersion": version})
        for condition, version in ((ready, "1"), ({**ready, **change}, "2"))
    )
    cache = _cache()
    cache.add_node(before)
    epoch = cache.nodes.epoch
    cache.add_node(after)
    assert epoch + is_seen == cache.nodes.epoch


@pytest.mark.parametrize(
    ("status", "is_seen"),
    [
        ({"volumesInUse": ["v"], "volumesAttached": [{"name": "v", "devicePath": "d"}]}, False),
        ({"images": [{"names": ["app:1"], "sizeBytes": 1}]}, True),
    ],
)
def test_attached_volumes_do_not_invalidate_answers(
    *, status: dict[str, object], is_seen: bool
) -> None:
    """They change with every pod that has volumes, and no plugin may rely on them."""
    cache = _cache("a")
    epoch = cache.nodes.epoch
    cache.add_node(make_node("a", status=status))
    assert epoch + is_seen == cache.nodes.epoch


def test_other_objects_are_in_the_snapshot_at_once() -> None:
    """They are added, replaced and deleted."""
    cache = Cache()
    old, new = (
        msgspec.convert(
            {"metadata": {"name": "s", "namespace": "n"}, "spec": {"selector": {"v": v}}}, Service
        )
        for v in ("1", "2")
    )
    objects = cache.snapshot().objects
    assert objects is cache.objects
    assert cache.put(old) is None
    assert old == cache.put(new)
    assert new == objects.get(Service, "s", "n")
    assert new == cache.delete(old)
    assert cache.delete(old) is None
    assert objects.get(Service, "s", "n") is None


@pytest.mark.parametrize("harm", ["place", "row", "state"])
def test_check_finds_contradictions(harm: str) -> None:
    """Each broken invariant raises."""
    cache = _cache("a")
    info = cache.add_pod(make_pod("p", node_name="a"))
    if harm == "place":
        cache._waiting_for_node["a"] = {info.uid: info}
    elif harm == "row":
        cache.nodes.remove_pod(info, 0)
    else:
        cache._assumed["default/unknown"] = None
    with pytest.raises(AssertionError):
        cache.check()
