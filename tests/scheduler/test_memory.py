"""Remembered answers equal fresh ones, whatever happened in the cluster."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    NOT_SHARED,
    UNSIGNED,
    PostFilterResult,
    PreFilterResult,
    PreScoreResult,
    Scope,
    ScorePlugin,
)
from kubesched.framework.preemption import verdict_memory
from kubesched.framework.status import SKIP, SUCCESS, NodeToStatus, Status, failure, unschedulable
from kubesched.scheduler import sampling
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.decision import Placed
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_pod_info
from tests.scheduler.toys import (
    Toy,
    alike,
    cluster,
    comparable,
    cycle_of,
    failed,
    placed,
    rejected,
    rejections,
    toy,
)
from tests.scheduler.twins import Twins, random_step

NODES = ("a", "b", "c", "d")
MANY = tuple(f"node-{number}" for number in range(10))
POD = make_pod_info("pod", priority=5)
GUEST = make_pod_info("guest", node_name="a")
NO = unschedulable("no")

_numbers = st.integers(0, 999)


@pytest.fixture(autouse=True)
def _screening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Screen also the few rows of these clusters before victims are sought there."""
    monkeypatch.setattr(verdict_memory, "FEW_ROWS", 0)


class ClusterHistory(RuleBasedStateMachine):
    """Compares a cluster that remembers answers with one that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.twins = Twins()

    @initialize(filled=st.booleans())
    def start(self, *, filled: bool) -> None:
        """Begin with an empty cluster or with a small one."""
        if filled:
            self.twins.fill()

    @rule(template=_numbers, traced=st.booleans())
    def schedule(self, template: int, *, traced: bool) -> None:
        """Schedule a new pod."""
        self.twins.schedule(template, traced=traced)

    @rule(template=_numbers, times=st.integers(2, 5))
    def schedule_siblings(self, template: int, times: int) -> None:
        """Schedule several pods of one template."""
        for _ in range(times):
            self.twins.schedule(template)

    @rule(which=_numbers)
    def retry(self, which: int) -> None:
        """Schedule a pending pod again."""
        self.twins.retry(which)

    @rule(which=_numbers)
    def confirm(self, which: int) -> None:
        """Confirm a bound pod, as the informer does."""
        self.twins.confirm(which)

    @rule(which=_numbers)
    def remove_pod(self, which: int) -> None:
        """Delete a bound pod."""
        self.twins.remove_pod(which)

    @rule(which=_numbers)
    def give_up(self, which: int) -> None:
        """Delete a pending pod."""
        self.twins.give_up(which)

    @rule(which=_numbers, name=st.integers(0, 9))
    def nominate(self, which: int, name: int) -> None:
        """Nominate a node for a pending pod."""
        self.twins.nominate(which, name)

    @rule(name=st.integers(0, 9), variant=_numbers)
    def put_node(self, name: int, variant: int) -> None:
        """Add or update a node."""
        self.twins.put_node(name, variant)

    @rule(which=_numbers)
    def break_disk(self, which: int) -> None:
        """Change nothing but a condition of a node."""
        self.twins.break_disk(which)

    @rule(which=_numbers)
    def remove_node(self, which: int) -> None:
        """Delete a node."""
        self.twins.remove_node(which)

    @rule(which=_numbers)
    def put(self, which: int) -> None:
        """Put a service, namespace, claim, volume or device class."""
        self.twins.put(which)

    @rule(which=_numbers)
    def delete(self, which: int) -> None:
        """Delete one of these."""
        self.twins.delete(which)

    @invariant()
    def is_consistent(self) -> None:
        """Caches and nominators keep their invariants."""
        self.twins.check()


TestClusterHistory = pytest.mark.slow(ClusterHistory.TestCase)
TestClusterHistory.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_long_history(seed: int) -> None:
    """Hundreds of random steps, with many decisions of each kind."""
    twins, random = Twins(seed), Random(seed)
    twins.fill()
    for _ in range(600):
        random_step(twins, random)
        twins.check()
    assert min(twins.placed, twins.rejected) > 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_long_history_of_samples(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches that end early use what is remembered, too."""
    monkeypatch.setattr(sampling, "NODES_MIN", 2)
    twins, random = Twins(seed, percentage=40), Random(seed)
    twins.fill()
    for _ in range(600):
        random_step(twins, random)
        twins.check()
    assert min(twins.placed, twins.rejected) > 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_decisions_do_not_depend_on_resource_columns(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither nodes nor victims depend on which resources have columns."""
    ends: list[object] = []
    for resources_max in (3, 64):
        monkeypatch.setattr(NodeColumns, "resources_max", resources_max)
        twins, random = Twins(seed), Random(seed)
        twins.fill()
        for _ in range(300):
            random_step(twins, random)
        bound = {uid: pod.spec.node_name for uid, pod in twins.bound.items()}
        ends.append((bound, list(twins.waiting), twins.placed, twins.rejected))
        assert (resources_max == 3) == bool(twins.clusters[0].cache.nodes.rare)
    assert ends[0] == ends[1]


# Which answers are computed again, and when.


def _cluster(*names: str) -> Snapshot:
    return cluster(*(names or NODES))


class _Signed(Toy):
    """A toy with one signature for all pods."""

    scope: ClassVar = Scope.ROW

    def sign(self, pod: object) -> Hashable:
        """Give every pod the same signature."""
        return ()


def _remembering(*plugins: type[Toy]) -> SchedulingCycle:
    return cycle_of(*plugins, remembers=True)


def _after_two_pods(
    *plugins: type[Toy], names: Sequence[str] = NODES
) -> tuple[Snapshot, SchedulingCycle]:
    """Return nodes, and a cycle that remembers answers for rows since the second of two pods."""
    snapshot, cycle = _cluster(*names), _remembering(*plugins)
    for _ in range(2):
        cycle.schedule_one(POD, snapshot)
    for plugin in plugins:
        plugin.asked.clear()
    return snapshot, cycle


def _full(pods: Sequence[str]) -> Status:
    """Reject a node that has a pod."""
    return unschedulable("full") if pods else SUCCESS


def test_answers_for_a_unique_pod_are_not_kept() -> None:
    """Only those that pods of other signatures can share are."""

    def sign(self: object, pod: PodInfo) -> object:
        return pod.labels["number"]

    by_node = toy("N", filter={}, score={}, scope=Scope.NODE, sign=alike)
    by_row = toy("R", filter={}, scope=Scope.ROW, sign=sign)
    snapshot, cycle = _cluster(), _remembering(by_node, by_row)
    for number in range(3):
        cycle.schedule_one(make_pod_info("pod", labels={"number": str(number)}), snapshot)
    assert [("filter", NODES), ("score", NODES)] == by_node.asked
    assert [("filter", NODES)] * 3 == by_row.asked
    cycle.schedule_one(make_pod_info("pod", labels={"number": "1"}), snapshot)
    snapshot.nodes.add_pod(GUEST, 0)
    cycle.schedule_one(make_pod_info("pod", labels={"number": "1"}), snapshot)
    assert ("filter", ("a",)) == by_row.asked[-1]


class Images(ScorePlugin[None]):
    """Prefers the node that is named like the pod's image."""

    name: ClassVar = "Images"
    scope: ClassVar = Scope.NODES
    signs_base: ClassVar = True
    points: ClassVar = ("score",)
    weight: ClassVar = 2

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the image; pods without a tag are not signed."""
        image = pod.containers[0].image
        return image if ":" in image else UNSIGNED

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return 9 for that node."""
        wanted = pod.containers[0].image.partition(":")[0]
        return np.array([9 * (name == wanted) for name in nodes.names], np.int64)


def test_pods_that_differ_in_an_added_score_share_the_other_answers() -> None:
    """Of a pod with another image, plugins that look at nodes are not asked."""
    by_node = toy("N", filter={"a": NO}, score={"b": 10, "c": 5}, scope=Scope.NODE, sign=alike)
    snapshot = _cluster()
    cycle = _remembering(by_node, Images)  # type: ignore[arg-type]  # it needs no script

    def place(*images: str) -> list[str]:
        pods = (
            make_pod_info("pod", containers=[{"name": "c", "image": image}]) for image in images
        )
        return [placed(cycle.schedule_one(pod, snapshot)).node_name for pod in pods]

    expected = ["b", "c", "d", "b", "c"]
    assert expected == place("b:1", "c:1", "d:1", "a:1", "c:1")
    assert [("filter", NODES), ("score", NODES)] == by_node.asked
    snapshot.nodes.update_node(make_node("d", labels={"new": "label"}))
    assert expected == place("b:1", "c:1", "d:1", "a:1", "c:1")
    assert expected == place("b", "c", "d", "a", "c")


def test_scores_that_are_not_valid_are_not_taken_over() -> None:
    """Each pod's cycle fails for a wrong score of another plugin."""
    by_node = toy("N", score={"b": 101}, scope=Scope.NODE, sign=alike)
    snapshot, cycle = _cluster(), _remembering(by_node, Images)  # type: ignore[arg-type]  # it needs no script
    for name in NODES:
        pod = make_pod_info("pod", containers=[{"name": "c", "image": f"{name}:1"}])
        assert "invalid score 101" in failed(cycle.schedule_one(pod, snapshot)).message


class ImagesOfState(Images):
    """Reads the image from a state of its own."""

    def score_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Any:
        """Return a pod with the image."""
        return pod

    def score(self, state: Any, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return 9 for the node of the state's image."""
        return super().score(None, state, nodes)


def test_pods_that_differ_in_the_state_of_a_score_do_not_share_it() -> None:
    """The state is part of a plan, which other pods would take over."""
    snapshot, cycle = _cluster(), _remembering(ImagesOfState)  # type: ignore[arg-type]  # it needs no script
    for name in NODES:
        pod = make_pod_info("pod", containers=[{"name": "c", "image": f"{name}:1"}])
        assert name == placed(cycle.schedule_one(pod, snapshot)).node_name


def test_pods_restricted_to_nodes_share_answers_of_scope_node() -> None:
    """A plugin of scope row is called for the named rows only, however many such pods there are."""
    names = PreFilterResult[None](node_names=frozenset({"b"}))
    naming = toy("P", pre_filter=names, filter={}, scope=Scope.NODE, sign=lambda *_: NOT_SHARED)
    by_node = toy("N", filter={}, scope=Scope.NODE, sign=alike)
    by_row = toy("R", filter={}, scope=Scope.ROW, sign=alike)
    snapshot, cycle = _cluster(), _remembering(naming, by_node, by_row)
    for _ in range(3):
        assert "b" == placed(cycle.schedule_one(POD, snapshot)).node_name
    assert [("filter", NODES)] == by_node.asked
    assert [("filter", ("b",))] * 3 == by_row.asked


def test_rejections_of_pods_restricted_to_nodes_are_kept() -> None:
    """Pods of the same template share them."""
    plugin = toy("P", filter=dict.fromkeys(NODES, NO), scope=Scope.NODE, sign=lambda *_: NOT_SHARED)
    snapshot, cycle = _cluster(), _remembering(plugin)
    first, again = (comparable(cycle.schedule_one(POD, snapshot)) for _ in range(2))
    assert first == again
    assert [("filter", NODES)] == plugin.asked


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        pytest.param(Scope.NODE, [], id="node"),
        pytest.param(Scope.NODES, [], id="nodes"),
        pytest.param(Scope.ROW, [("filter", ("a",)), ("score", ("a",))], id="row"),
        pytest.param(
            Scope.CLUSTER,
            [("filter", NODES), ("pre_score", NODES), ("score", NODES)],
            id="cluster",
        ),
    ],
)
def test_a_bound_pod_invalidates_its_row(scope: Scope, expected: list[object]) -> None:
    """Depending on the plugin's scope, its answers for this row, for none or for all."""
    plugin = toy("P", filter={}, pre_score=PreScoreResult(), score={}, scope=scope, sign=alike)
    snapshot, cycle = _after_two_pods(plugin)
    snapshot.nodes.add_pod(GUEST, 0)
    cycle.schedule_one(POD, snapshot)
    assert expected == plugin.asked


def test_remembered_scores_of_infeasible_rows_are_not_checked() -> None:
    """On a feasible row an invalid score fails the cycle."""
    by_node = toy("N", filter={"a": NO}, scope=Scope.NODE, sign=alike)
    lenient = _remembering(by_node, toy("S", score={"a": 5000, "b": 7}))
    strict = _remembering(by_node, toy("S", score={"b": 5000, "c": 7}))
    for _ in range(2):
        assert "b" == placed(lenient.schedule_one(POD, _cluster())).node_name
        assert "invalid score 5000" in failed(strict.schedule_one(POD, _cluster())).message


def test_filter_and_score_may_differ_in_scope() -> None:
    """Filter of scope node, score of scope row."""
    plugin = toy("P", filter={}, score={}, scope=Scope.NODE, score_scope=Scope.ROW, sign=alike)
    snapshot, cycle = _after_two_pods(plugin)
    snapshot.nodes.add_pod(GUEST, 2)
    cycle.schedule_one(POD, snapshot)
    assert [("score", ("c",))] == plugin.asked


@pytest.mark.parametrize("rows", [1, 2])
def test_changed_rows_become_infeasible_and_feasible(rows: int) -> None:
    """Rows change one by one or together."""
    plugin = toy("P", filter=dict.fromkeys(MANY, _full), scope=Scope.ROW, sign=alike)
    snapshot, cycle = _after_two_pods(plugin, names=MANY)
    assert 10 == placed(cycle.schedule_one(POD, snapshot)).feasible
    guests = [make_pod_info(f"guest-{row}") for row in range(rows)]
    for row, guest in enumerate(guests):
        snapshot.nodes.add_pod(guest, row)
    assert 10 - rows == placed(cycle.schedule_one(POD, snapshot)).feasible
    for row, guest in enumerate(guests):
        snapshot.nodes.remove_pod(guest, row)
    assert 10 == placed(cycle.schedule_one(POD, snapshot)).feasible


@pytest.mark.parametrize("change", ["add", "update", "remove"])
def test_a_changed_node_invalidates_all_answers(change: str) -> None:
    """So does an added or removed one."""
    plugin = toy("P", filter={}, scope=Scope.NODE, sign=alike)
    snapshot, cycle = _cluster(), _remembering(plugin)
    cycle.schedule_one(POD, snapshot)
    plugin.asked.clear()
    if change == "add":
        snapshot.nodes.add_node(make_node("e"))
    elif change == "update":
        snapshot.nodes.update_node(make_node("b", labels={"new": "yes"}))
    else:
        snapshot.nodes.remove_node("b")
    cycle.schedule_one(POD, snapshot)
    assert [("filter", tuple(snapshot.nodes.names))] == plugin.asked


def test_all_rows_are_asked_again_if_changes_were_dropped() -> None:
    """The table keeps a bounded number of changes."""
    plugin = toy("P", filter={}, scope=Scope.ROW, sign=alike)
    snapshot, cycle = _after_two_pods(plugin, names=MANY)
    before = snapshot.nodes.changes.version
    while snapshot.nodes.changes.since(before) is not None:
        snapshot.nodes.add_pod(GUEST, 0)
        snapshot.nodes.remove_pod(GUEST, 0)
    cycle.schedule_one(POD, snapshot)
    assert [("filter", tuple(snapshot.nodes.names))] == plugin.asked


def test_pods_of_different_signatures_do_not_share_answers() -> None:
    """Each signature has its own."""

    def sign(self: object, pod: PodInfo) -> object:
        return pod.labels["app"]

    plugin = toy("P", filter={}, scope=Scope.NODE, sign=sign)
    snapshot, cycle = _cluster(), _remembering(plugin)
    for app in ("web", "db", "web", "db"):
        cycle.schedule_one(make_pod_info(app, labels={"app": app}), snapshot)
    assert [("filter", NODES)] * 2 == plugin.asked


class _Annotated(toy("Annotated", filter={}, scope=Scope.ROW)):  # type: ignore[misc]  # dynamic
    """Pods go to the node that their annotation names."""

    def sign(self, pod: PodInfo) -> str:
        """Return the annotation, which is not part of the template."""
        return pod.pod.metadata.annotations["to"]

    def filter(self, state: object, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject the other nodes."""
        return NodeToStatus.of([SUCCESS if name == self.sign(pod) else NO for name in nodes.names])


@pytest.mark.parametrize("names", ["abcabc", "xxaxab", "aaabaa"])
def test_a_sign_may_read_more_than_the_template(names: str) -> None:
    """Equal templates do not make equal signatures: of names and annotations, for example."""
    snapshot, cycle = _cluster(), _remembering(_Annotated)
    decisions = []
    for to in names:
        metadata = replace(POD.pod.metadata, annotations={"to": to})
        pod = PodInfo(replace(POD.pod, metadata=metadata))
        assert pod.template is POD.template
        decisions.append(cycle.schedule_one(pod, snapshot))
    found = [one.node_name if isinstance(one, Placed) else "x" for one in decisions]
    assert [*names] == found


@pytest.mark.parametrize(("scope", "times"), [(Scope.CLUSTER, 2), (Scope.NODE, 1)])
def test_rejections_of_scope_cluster_are_not_kept(scope: Scope, times: int) -> None:
    """They may depend on the time, or on another system."""
    plugin = toy("P", filter=dict.fromkeys(NODES, NO), scope=scope, sign=alike)
    snapshot, cycle = _cluster(), _remembering(plugin)
    for _ in range(2):
        rejected(cycle.schedule_one(POD, snapshot))
    assert times == len(plugin.asked)


def test_answers_for_unsigned_pods_are_not_kept() -> None:
    """The plugin returned no signature."""
    plugin = toy("P", filter={}, scope=Scope.NODE, sign=lambda self, pod: UNSIGNED)
    snapshot, cycle = _cluster(), _remembering(plugin)
    for _ in range(3):
        cycle.schedule_one(POD, snapshot)
    assert [("filter", NODES)] * 3 == plugin.asked


@pytest.mark.parametrize(
    "sign",
    [
        pytest.param(lambda self, pod: {}, id="unhashable"),
        pytest.param(lambda self, pod: 1 / 0, id="raises"),
    ],
)
def test_a_sign_that_raises_disables_memory(sign: object) -> None:
    """The plugin is called each time, and the pod is placed."""
    plugin = toy("P", filter={"a": NO}, scope=Scope.NODE, sign=sign)
    cycle = _remembering(plugin)
    for _ in range(3):
        assert 3 == placed(cycle.schedule_one(POD, _cluster())).feasible


def test_a_change_of_a_signed_kind_invalidates_all_answers() -> None:
    """The plugin's signature reads objects of that kind."""
    node = make_node("other")
    plugin = toy("P", filter={}, scope=Scope.NODE, sign=alike, signed_kinds=(type(node),))
    snapshot, cycle = _cluster(), _remembering(plugin)
    for _ in range(2):
        cycle.schedule_one(POD, snapshot)
    assert [("filter", NODES)] == plugin.asked
    snapshot.objects.put(node)  # type: ignore[attr-defined]  # the builder's store
    cycle.schedule_one(POD, snapshot)
    assert [("filter", NODES)] * 2 == plugin.asked


def test_pods_that_pre_filter_rejects_or_restricts() -> None:
    """The decisions equal those without memory."""
    for result in (
        PreFilterResult[None](status=NO),
        PreFilterResult[None](node_names=frozenset({"a"})),
    ):
        for scope in Scope:
            plugin = toy("P", pre_filter=result, filter={"a": NO}, scope=scope, sign=alike)
            expected = cycle_of(plugin).schedule_one(POD, _cluster())
            cycle = _remembering(plugin)
            for _ in range(3):
                assert comparable(expected) == comparable(cycle.schedule_one(POD, _cluster()))


def test_skip_is_remembered() -> None:
    """Neither filter nor score is called."""
    skip = PreFilterResult[None](status=SKIP)
    plugin = toy(
        "P",
        pre_filter=skip,
        filter=dict.fromkeys(NODES, NO),
        pre_score=PreScoreResult[None](status=SKIP),
        score={"a": 1000},
        scope=Scope.ROW,
        sign=alike,
    )
    cycle = _remembering(plugin)
    for _ in range(3):
        assert 4 == placed(cycle.schedule_one(POD, _cluster())).feasible
    assert {"pre_filter", "pre_score"} == {point for point, _ in plugin.asked}


@pytest.mark.parametrize(
    ("change", "expected"),
    [("pod", []), ("term", ["filter", "score"]), ("object", ["filter", "score"])],
)
def test_a_skip_that_lasts_is_kept(change: str, expected: list[str]) -> None:
    """It ends when an affinity term comes to a node, or an object changes."""
    plugin = toy(
        "P",
        pre_filter=PreFilterResult[None](status=SKIP, lasts=True),
        filter=dict.fromkeys(NODES, NO),
        pre_score=PreScoreResult[None](status=SKIP, lasts=True),
        score={"a": 1000},
    )
    snapshot, cycle = _cluster(), _remembering(plugin)
    for _ in range(3):
        cycle.schedule_one(POD, snapshot)
    plugin.asked.clear()
    if change == "object":
        snapshot.objects.put(make_node("other"))  # type: ignore[attr-defined]  # the builder's store
    else:
        term = {"topologyKey": "zone", "labelSelector": {}}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        anti_affinity = required if change == "term" else None
        snapshot.nodes.add_pod(make_pod_info("guest", pod_anti_affinity=anti_affinity), 0)
    assert 4 == placed(cycle.schedule_one(POD, snapshot)).feasible
    assert [f"pre_{point}" for point in expected] == [point for point, _ in plugin.asked]


@pytest.mark.parametrize("rows", [1, 2])
def test_a_failure_on_a_changed_row_fails_the_cycle(rows: int) -> None:
    """Cycles fail until the row changes back."""

    def answer(pods: list[str]) -> Status:
        return failure("broken") if pods else SUCCESS

    plugin = toy("P", filter=dict.fromkeys(MANY, answer), scope=Scope.ROW, sign=alike)
    snapshot, cycle = _after_two_pods(plugin, names=MANY)
    guests = [make_pod_info(f"guest-{row}") for row in range(rows)]
    for row, guest in enumerate(guests):
        snapshot.nodes.add_pod(guest, row)
    for _ in range(2):
        text = 'running "P" filter plugin: broken'
        assert text == failed(cycle.schedule_one(POD, snapshot)).message
    for row, guest in enumerate(guests):
        snapshot.nodes.remove_pod(guest, row)
    assert 10 == placed(cycle.schedule_one(POD, snapshot)).feasible


def test_a_rejection_by_a_fresh_filter_hides_a_remembered_failure() -> None:
    """If it is the earlier one in the profile."""
    fresh = toy("Fresh", filter={"a": NO})
    kept = toy("Kept", filter={"a": failure("broken")}, scope=Scope.ROW, sign=alike)
    cycle = _remembering(fresh, kept)
    for _ in range(3):
        assert 3 == placed(cycle.schedule_one(POD, _cluster())).feasible


def test_a_score_plugin_that_needs_feasible_nodes() -> None:
    """Such a plugin works with memory, too."""

    class Strict(_Signed):
        name: ClassVar = "Strict"
        points: ClassVar = ("filter", "score")
        script: ClassVar = {"filter": {"a": NO}, "score": {"b": 1, "c": 2, "d": 1}}

        def score(self, state: object, pod: object, nodes: object) -> object:  # type: ignore[override]  # looser
            names = nodes.names  # type: ignore[attr-defined]  # a table
            if "a" in names:
                raise KeyError("a")
            return super().score(state, pod, nodes)  # type: ignore[arg-type]  # a table

    cycle = _remembering(Strict)
    for _ in range(3):
        assert "c" == placed(cycle.schedule_one(POD, _cluster())).node_name


@pytest.mark.parametrize("score_of_a_pod", [101, 1 << 62])
def test_an_invalid_score_on_a_changed_row_fails_the_cycle(score_of_a_pod: int) -> None:
    """Scores of infeasible rows are not checked."""

    class Growing(_Signed):
        name: ClassVar = "Growing"
        points: ClassVar = ("score",)
        weight: ClassVar = 5
        normalize_score = ScorePlugin.normalize_score

        def score(self, state: object, pod: object, nodes: object) -> object:  # type: ignore[override]  # looser
            return nodes.pod_counts * score_of_a_pod  # type: ignore[attr-defined]  # a table

    snapshot, cycle = _after_two_pods(Growing, names="abcd")
    snapshot.nodes.add_pod(GUEST, 1)
    assert f"an invalid score {score_of_a_pod}" in failed(cycle.schedule_one(POD, snapshot)).message


def test_later_decisions_do_not_change_the_statuses_of_earlier_ones() -> None:
    """The rows change between the decisions."""

    def full(pods: list[str]) -> Status:
        return unschedulable(f"{len(pods)} pods")

    plugin = toy("P", filter=dict.fromkeys(NODES, full), scope=Scope.ROW, sign=alike)
    snapshot, cycle = _after_two_pods(plugin)
    first = rejected(cycle.schedule_one(POD, snapshot))
    before = comparable(first)
    snapshot.nodes.add_pod(GUEST, 0)
    second = rejected(cycle.schedule_one(POD, snapshot))
    assert before == comparable(first)
    assert ("P", "1 pods") == rejections(second)["a"]


def test_rejections_for_equal_reasons_share_the_diagnosis() -> None:
    """A pod that was added in between changes nothing."""

    def full(pods: list[str]) -> Status:
        return unschedulable("full" if len(pods) < 2 else "more than full")

    post_filter = PostFilterResult(unschedulable("nobody to evict"), "")
    plugins = [
        toy("P", filter=dict.fromkeys(NODES, full), scope=Scope.ROW, sign=alike),
        toy("Q", post_filter=post_filter),
    ]
    snapshot, cycle = _after_two_pods(*plugins)
    first = rejected(cycle.schedule_one(POD, snapshot))
    snapshot.nodes.add_pod(GUEST, 0)
    second = rejected(cycle.schedule_one(POD, snapshot))
    assert first.diagnosis is second.diagnosis
    assert first.message == second.message
    snapshot.nodes.add_pod(make_pod_info("another"), 0)
    third = rejected(cycle.schedule_one(POD, snapshot))
    assert "more than full" in third.message


def test_a_rejection_of_scope_node_stays_the_first() -> None:
    """Whatever pods are added to the node."""
    plugins = [
        toy("Node", filter={"a": NO}, scope=Scope.NODE, sign=alike),
        toy("Row", filter=dict.fromkeys(NODES, _full), scope=Scope.ROW, sign=alike),
        toy("Rest", filter=dict.fromkeys(NODES[1:], NO)),
    ]
    snapshot, cycle = _after_two_pods(*plugins)
    snapshot.nodes.add_pod(GUEST, 0)
    assert ("Node", "no") == rejections(cycle.schedule_one(POD, snapshot))["a"]


def test_a_later_rejection_of_scope_node_is_not_the_first() -> None:
    """Filters before it are asked, though no row passes any more."""
    plugins = [
        toy("Port", filter=dict.fromkeys(NODES[1:], NO), scope=Scope.ROW, sign=alike),
        toy("Row", filter={"a": NO}, scope=Scope.ROW, sign=alike),
        toy("Node", filter={"a": NO}, scope=Scope.NODE, sign=alike),
    ]
    snapshot, cycle = _cluster(), _remembering(*plugins)
    for _ in range(3):
        assert ("Row", "no") == rejections(cycle.schedule_one(POD, snapshot))["a"]
        snapshot.nodes.add_node(make_node(f"other-{len(snapshot.nodes)}", labels={"x": "y"}))
        snapshot.nodes.remove_node(snapshot.nodes.names[-1])


def test_node_names_are_not_part_of_a_template() -> None:
    """Answers that depend on the name are the pod's own."""

    def sign(self: object, pod: PodInfo) -> object:
        return pod.node_name

    plugin = toy("P", filter={}, scope=Scope.NODE, sign=sign)
    snapshot, cycle = _cluster(), _remembering(plugin)
    for name in ("a", "b", "a"):
        cycle.schedule_one(make_pod_info("pod", node_name=name), snapshot)
    assert 2 == len(plugin.asked)


@pytest.mark.parametrize(("signs_base", "expected"), [(True, ["0"]), (False, ["0", "1", "2"])])
def test_a_base_is_signed_once(*, signs_base: bool, expected: list[str]) -> None:
    """A plugin that signs the base is called for the first pod with it."""
    signed: list[str] = []

    def sign(self: object, pod: PodInfo) -> object:
        signed.append(pod.name)
        return pod.spec.tolerations

    plugin = toy("P", filter={}, scope=Scope.ROW, sign=sign, signs_base=signs_base)
    other = toy("Other", filter={}, scope=Scope.ROW, sign=lambda _, pod: pod.name)
    snapshot, cycle = _cluster(), _remembering(plugin, other)
    for number in range(3):
        cycle.schedule_one(make_pod_info(f"{number}", labels={"a": str(number)}), snapshot)
    assert expected == list(dict.fromkeys(signed))


def test_pods_of_one_base_share_the_result_of_pre_filter() -> None:
    """It depends on the base alone; rows are filtered for each pod."""
    plugin = toy(
        "P",
        pre_filter=PreFilterResult(),
        filter={},
        scope=Scope.ROW,
        sign=alike,
        signs_base=True,
    )
    other = toy("Other", filter={}, scope=Scope.ROW, sign=lambda _, pod: pod.name)
    snapshot, cycle = _cluster(), _remembering(plugin, other)
    for number in range(3):
        cycle.schedule_one(make_pod_info(f"{number}", labels={"a": str(number)}), snapshot)
    assert [("pre_filter", NODES), *[("filter", NODES)] * 3] == plugin.asked


def test_a_subclass_with_its_own_sign_does_not_sign_the_base() -> None:
    """Its signature may read more than the base."""
    parent = toy("P", filter={}, sign=alike, signs_base=True)
    child = type("Child", (parent,), {"sign": alike})
    assert [True, False] == [each.signs_base for each in (parent, child) if issubclass(each, Toy)]


def test_a_change_of_a_signed_kind_renews_signatures() -> None:
    """Pods of equal signatures may differ afterwards."""
    node, snapshot = make_node("other"), _cluster()

    def sign(self: object, pod: PodInfo) -> object:
        return pod.labels["app"] if snapshot.objects.any(type(node)) else ()

    plugin = toy("P", filter={}, scope=Scope.NODE, sign=sign, signed_kinds=(type(node),))
    cycle = _remembering(plugin)
    pods = [make_pod_info("pod", labels={"app": app}) for app in ("web", "db")]
    for pod in pods:
        cycle.schedule_one(pod, snapshot)
    assert [("filter", NODES)] == plugin.asked
    snapshot.objects.put(node)  # type: ignore[attr-defined]  # the builder's store
    for pod in pods:
        cycle.schedule_one(pod, snapshot)
    assert [("filter", NODES)] * 3 == plugin.asked


def test_arrays_of_plugins_are_not_modified() -> None:
    """Renewing rows never writes into an array of a plugin or of the table."""

    class Counts(_Signed):
        name: ClassVar = "Counts"
        points: ClassVar = ("score",)

        def score(self, state: object, pod: object, nodes: object) -> object:  # type: ignore[override]  # looser
            return nodes.pod_counts  # type: ignore[attr-defined]  # a table

    snapshot, cycle = _after_two_pods(Counts)
    for number in range(2):
        snapshot.nodes.add_pod(make_pod_info(f"guest-{number}"), 2)
        assert "c" == placed(cycle.schedule_one(POD, snapshot)).node_name
    snapshot.nodes.check()


def test_the_least_recently_used_answers_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of signatures is bounded."""

    def sign(self: object, pod: PodInfo) -> object:
        return pod.labels["number"]

    def ask(number: int) -> None:
        pod = make_pod_info("pod", labels={"number": str(number)})
        cycle.schedule_one(pod, snapshot)

    for limit in ("_BYTES_MAX", "_NODE_BYTES_MAX"):
        monkeypatch.setattr(f"kubesched.scheduler.memory.{limit}", 0)
    plugin = toy("P", filter={}, scope=Scope.NODE, sign=sign)
    snapshot, cycle = _cluster(), _remembering(plugin)
    for number in (*range(8), 0, 8):
        ask(number)
    assert 9 == len(plugin.asked)
    ask(0)
    assert 9 == len(plugin.asked)
    ask(1)
    assert 10 == len(plugin.asked)
