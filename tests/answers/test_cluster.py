"""The Python API: clusters from files and objects, and the answers about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

import kubesched
from kubesched import Cluster, UserError
from kubesched.answers.why import PodState
from kubesched.api.meta import KubeObject
from kubesched.config.types import API_VERSION, KIND
from kubesched.explain.report import PodExplanation
from kubesched.explain.sentences import headline
from kubesched.framework import (
    CycleState,
    FilterPlugin,
    NodeTable,
    NodeToStatus,
    PermitPlugin,
    PodInfo,
    Status,
    failure,
    unschedulable,
)
from kubesched.simulator.cluster import ClusterState
from tests.cli.cluster import document, node, owned, pod, shop, write

OTHER: Final = pod("other", "1", schedulerName="another")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the shop's dump."""
    return write(tmp_path, shop())


def test_answers_equal_those_of_the_commands(file: Path) -> None:
    """Each method returns the document that its command prints."""
    cluster = Cluster.from_files(file)
    assert cluster.explain("shop/web-1").to_dict() == document("explain", "shop/web-1", file)
    assert cluster.why("web-1").to_dict() == document("why", "web-1", file)
    assert cluster.simulate().to_dict() == document("simulate", file)


def test_questions_do_not_change_the_cluster(file: Path) -> None:
    """A simulation after other questions has the same report."""
    cluster = Cluster.from_files(file)
    first = cluster.simulate()
    cluster.why("web-1")
    cluster.place(pod("another", "1"))
    assert cluster.simulate() == first


def test_a_page_shows_the_cluster_as_it_is(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The explanation and the view are those of their own questions; the cluster is loaded once."""
    cluster = Cluster.from_files(file)
    explanation, view = cluster.explain("web-1", all_filters=True), cluster.view(causes=False)
    loaded: list[ClusterState] = []
    load = ClusterState.load

    def counted(state: ClusterState, objects: Iterable[KubeObject]) -> None:
        loaded.append(state)
        load(state, objects)

    monkeypatch.setattr(ClusterState, "load", counted)
    _, *more = cluster.why_page("web-1")
    assert [explanation, view] == more
    assert (explanation, view) == cluster.explain_page("web-1", all_filters=True)
    assert 2 == len(loaded)


def test_the_page_of_a_pod_with_a_node_has_the_pod_there() -> None:
    """It is explained in the cluster without it."""
    cluster = Cluster.from_objects([node("alpha", "2"), pod("web-1", "2", node_name="alpha")])
    assert (cluster.why("web-1"),) == cluster.why_page("web-1")
    explanation, view = cluster.explain_page("web-1")
    assert "alpha" == explanation.node
    assert cluster.view(causes=False) == view


def test_trials_equal_those_of_the_commands(file: Path, tmp_path: Path) -> None:
    """So do the methods that try changes: fit, drain, top, upgrade and compact."""
    cluster = Cluster.from_files(file)
    manifest = pod("one-more", "1")
    manifests = write(tmp_path, [manifest], "more.json")
    fits = document("fit", manifests, "--cluster", file)
    assert cluster.fit(manifest).to_dict() == cluster.fit(manifests).to_dict() == fits
    assert cluster.drain("beta").to_dict() == document("drain", "beta", file)
    assert cluster.top("zones").to_dict() == document("top", "zones", file)
    room = document("top", file, "--room-like", "web-1")
    assert cluster.top(room_like="web-1").to_dict() == room
    beta = "kubernetes.io/hostname=beta"
    assert cluster.upgrade(beta).to_dict() == document("upgrade", "-l", beta, file)
    assert cluster.compact().to_dict() == document("compact", file)


def test_plans_are_files_or_values(file: Path, tmp_path: Path) -> None:
    """Paths in a plan are relative to its file, or else to the working directory."""
    cluster = Cluster.from_files(file)
    manifests = write(tmp_path, [pod("one-more", "1")], "more.json")
    plan = tmp_path / "plan.yaml"
    plan.write_text("steps: [{cordon: alpha}, {apply: more.json}]", encoding="utf-8")
    values = {"steps": [{"cordon": "alpha"}, {"apply": str(manifests)}]}
    expected = document("whatif", plan, file)
    found = cluster.whatif(plan)
    assert expected == found.to_dict()
    assert found.moved == cluster.whatif(values).moved


def test_replicas_for_all_workloads_or_by_name(file: Path) -> None:
    """A number is for all workloads, a mapping or a list names them."""
    cluster = Cluster.from_files(file)
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}}
    template = {"spec": {"restartPolicy": "Never", **pod("x", "1")["spec"]}}
    job["spec"] = {"template": template}
    found = [
        cluster.fit(job, replicas=replicas) for replicas in (13, "13", {"job": 13}, ["job=13"])
    ]
    assert [13] * 4 == [one.workloads[0].wanted for one in found]
    with pytest.raises(UserError, match=r"--replicas jbo=3: no workload .* did you mean job"):
        cluster.fit(job, replicas={"jbo": 3})


def test_node_templates_are_a_string_or_a_list(file: Path) -> None:
    """One template need not be in a list."""
    cluster = Cluster.from_files(file)
    shape = "cpu=64,memory=64Gi"
    found = [cluster.fit(pod("x", "40"), node_templates=one) for one in (shape, [shape])]
    assert found[0].missing_nodes is not None
    assert found[0] == found[1]


def test_fit_reports_progress(file: Path) -> None:
    """The numbers grow, up to that of all pods that were placed."""
    seen: list[int] = []
    report = Cluster.from_files(file).fit(pod("x", "1m"), more=True, watch=seen.append)
    assert report.more is not None
    assert sorted(seen) == seen
    assert 0 < report.more.count < seen[-1]


@pytest.mark.parametrize(
    "ask",
    [
        lambda cluster, watch: cluster.drain("a", "b", watch=watch),
        lambda cluster, watch: cluster.whatif({"steps": [{"drain": "a"}, {"drain": "b"}]}, watch),
    ],
)
def test_drain_and_whatif_report_progress(ask: Callable[[Cluster, object], object]) -> None:
    """With the numbers of nodes or steps done, of all, and of scheduling cycles."""
    pods = [owned(pod(f"w-{on}", node_name=on), "w") for on in "ab"]
    cluster = Cluster.from_objects([*map(node, "abc"), *pods])
    seen: list[tuple[int, ...]] = []
    ask(cluster, lambda *numbers: seen.append(numbers))
    assert [(0, 2, 0), (0, 2, 1), (1, 2, 2)] == seen


def test_top_reports_progress_of_counting_room() -> None:
    """Where a filter looks at other nodes, pods are placed one after another."""
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    constraint = {**spread, "whenUnsatisfiable": "DoNotSchedule"}
    web = pod("web", topologySpreadConstraints=[constraint])
    seen: list[int] = []
    report = Cluster.from_objects([node("a", "3"), web]).top(room_like="web", watch=seen.append)
    assert report.room is not None
    assert [*range(1, report.room.total + 1)] == seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda cluster: cluster.drain(), "drain: give either the names of nodes or a selector"),
        (lambda cluster: cluster.upgrade(at_once=0), "at_once: 0 nodes are too few"),
        (lambda cluster: cluster.top("podz"), "podz: there is no such group; there are nodes, "),
        (lambda cluster: cluster.whatif("none.yaml"), "none.yaml: it cannot be read: No such"),
    ],
)
def test_wrong_arguments_are_user_errors(
    file: Path, ask: Callable[[Cluster], object], message: str
) -> None:
    """The message is the command's."""
    with pytest.raises(UserError) as raised:
        ask(Cluster.from_files(file))
    assert str(raised.value).startswith(message)


def test_compact_and_upgrade_need_nodes() -> None:
    """Without nodes both raise a UserError."""
    for ask in (Cluster.compact, Cluster.upgrade):
        with pytest.raises(UserError, match="the cluster has no nodes"):
            ask(Cluster.from_objects([]))


def test_repr_counts_nodes_and_pods() -> None:
    """It also says where the objects come from."""
    cluster = Cluster.from_objects([node("a", "2"), pod("b", "1"), pod("c", "1")])
    assert "<Cluster of 1 node, 2 pods, from objects>" == repr(cluster)


def test_warnings_about_inputs_are_kept(tmp_path: Path) -> None:
    """Warnings about manifests are among them."""
    cluster = Cluster.from_objects([node("a", "2")])
    cluster.fit(write(tmp_path, [{**pod("p", "1"), "spce": {}}]))
    assert ["unknown field spce"] == [
        text.rpartition(": Pod shop/p: ")[2] for text in cluster.warnings
    ]


def test_a_cluster_from_objects() -> None:
    """Objects are dicts, as in a manifest."""
    cluster = Cluster.from_objects(
        [node("a", "2"), pod("big", "4"), pod("there", "1", node_name="a")]
    )
    assert cluster.why("big").state is PodState.UNSCHEDULABLE
    assert cluster.place(pod("small", "1")).node == "a"
    assert [one.pod for one in cluster.simulate([pod("small", "1")]).placements] == ["shop/small"]


@pytest.mark.parametrize(
    ("objects", "error"),
    [
        ([node("a", "2"), node("a", "2")], "Node a is in objects[0] already"),
        ([{"kind": "Node"}], "objects[0]"),
    ],
)
def test_errors_name_the_wrong_object(objects: list[dict[str, Any]], error: str) -> None:
    """The position in the list identifies it."""
    with pytest.raises(Exception, match=r"objects\[") as raised:
        Cluster.from_objects(objects)
    assert error in str(raised.value)


def test_a_list_of_kubectl_is_one_object() -> None:
    """It has to be in a list; else its keys were read as objects."""
    found: Any = {"apiVersion": "v1", "kind": "List", "items": [node("a", "2")]}
    assert 1 == Cluster.from_objects([found]).simulate().summary.nodes
    with pytest.raises(UserError, match="objects: expected a list of objects, not one object"):
        Cluster.from_objects(found)


def test_an_unknown_name_is_a_user_error(file: Path) -> None:
    """The message suggests a similar name."""
    with pytest.raises(UserError, match="did you mean shop/web-1"):
        Cluster.from_files(file).why("web-i")
    with pytest.raises(UserError, match="name at least one file"):
        Cluster.from_files()


def test_an_unknown_profile_is_a_user_error(file: Path) -> None:
    """The keyword `profile` is the option `--profile` of the commands."""
    with pytest.raises(UserError, match="no such profile"):
        Cluster.from_files(file, profile="other")


def test_exported_names_exist() -> None:
    """Other names raise AttributeError."""
    for name in kubesched.__all__:
        assert getattr(kubesched, name)
    with pytest.raises(AttributeError, match="no attribute 'Clusters'"):
        kubesched.Clusters  # noqa: B018 - looked up only


def test_the_chosen_profile_places_all_pods(tmp_path: Path) -> None:
    """Pods that name another scheduler are placed, too."""
    objects = [node("a", "2"), OTHER]
    file = write(tmp_path, objects)
    for cluster in (
        Cluster.from_objects(objects, profile="default-scheduler"),
        Cluster.from_files(file, profile="default-scheduler"),
    ):
        assert [one.pod for one in cluster.simulate().placements] == ["shop/other"]


def test_with_scheduler_leaves_the_first_cluster_alone() -> None:
    """The new cluster does not use the first one's profile, either."""
    first = Cluster.from_objects([node("a", "2"), OTHER], profile="default-scheduler")
    assert [] == [one.pod for one in first.with_scheduler().simulate().placements]
    assert first.simulate() == first.with_scheduler(profile="default-scheduler").simulate()
    with pytest.raises(UserError, match="no such profile"):
        first.with_scheduler(profile="other")


_GANGS: Final = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"


def _group(policy: dict[str, Any], key: str = "") -> dict[str, Any]:
    """Return a pod group, with a topology if a key is given."""
    constraints = {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "shop"},
        "spec": {"schedulingPolicy": policy, **constraints},
    }


def _member(name: str, node_name: str = "") -> dict[str, Any]:
    """Return a pod of the group that requests 2 cpus."""
    return pod(name, "2", node_name=node_name, schedulingGroup={"podGroupName": "g"})


def _gang(cpu: str) -> Cluster:
    """Return a node with an amount of cpu, a gang of pods of 2 cpus, and a pod of no gang."""
    pods = [_member(f"g-{at}") for at in range(3)]
    objects = [node("n", cpu), _group({"gang": {"minCount": 3}}), *pods, pod("other", "1")]
    return Cluster.from_objects(objects, feature_gates=_GANGS)


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        (
            {"gang": {"minCount": 2}},
            "gang does not: at least 2 pods of PodGroup g must fit together",
        ),
        ({"basic": {}}, "group does not: pods of PodGroup g must fit"),
    ],
)
def test_the_topology_of_a_group(policy: dict[str, Any], rule: str) -> None:
    """A running pod decides in which zone the others are; room elsewhere is none."""
    nodes = [node("a", "3", labels={"zone": "a"}), node("b", "9", labels={"zone": "b"})]
    objects = [*nodes, _group(policy, "zone"), _member("g-0", node_name="a"), _member("g-1")]
    cluster = Cluster.from_objects(objects, feature_gates=_GANGS)
    assert f"Pod shop/g-1 fits alone, but its {rule} where zone is the same" in (
        cluster.why("g-1").sentence
    )
    with pytest.raises(UserError, match="PodGroup g must be where zone is the same"):
        cluster.top(room_like="g-1")
    without = Cluster.from_objects(objects, feature_gates=_GANGS.rpartition(",")[0])
    assert without.why("g-1").state is PodState.FITS
    assert without.top(room_like="g-1").room is not None


@pytest.mark.parametrize(
    ("priority", "state"), [(9, PodState.PREEMPTS), (0, PodState.UNSCHEDULABLE)]
)
def test_a_gang_that_preempts_as_a_whole(priority: int, state: PodState) -> None:
    """Its pods may not preempt singly, but need no change."""
    group = _group({"gang": {"minCount": 2}})
    group["spec"]["priority"] = priority
    low = [pod(f"low-{at}", "2", node_name=at) for at in ("a", "b")]
    pods = [{**one, "spec": {**one["spec"], "priority": priority}} for one in map(_member, "xy")]
    objects = [node("a", "2"), node("b", "2"), group, *low, *pods]
    gates = f"{_GANGS},WorkloadAwarePreemption=true"
    report = Cluster.from_objects(objects, feature_gates=gates).why("x")
    assert state is report.state
    assert bool(report.changes) == (state is PodState.UNSCHEDULABLE)
    note = "The gang would evict shop/low-a and shop/low-b."
    assert (note in report.notes) == (state is PodState.PREEMPTS)


def test_a_pod_that_fits_only_beside_its_gang() -> None:
    """It evicts nobody: the pod to which it has an affinity is placed first."""
    term = {"labelSelector": {"matchLabels": {"role": "leader"}}, "topologyKey": "zone"}
    zone = node("a", "4")
    zone["metadata"]["labels"] = {"zone": "1"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    leader, worker = _member("x"), _member("y")
    leader["metadata"]["labels"], leader["spec"]["priority"] = {"role": "leader"}, 9
    worker["spec"]["affinity"] = affinity
    objects = [zone, _group({"gang": {"minCount": 2}}), leader, worker]
    report = Cluster.from_objects(objects, feature_gates=_GANGS).why("y")
    assert (PodState.FITS, ()) == (report.state, report.changes)


def test_nodes_that_a_gang_lacks() -> None:
    """Its other pods go to the existing nodes, on which they waited for the last one."""
    spec = _member("x")["spec"]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "shop"},
        "spec": {"parallelism": 3, "template": {"metadata": {}, "spec": spec}},
    }
    objects = [node("a", "4"), _group({"gang": {"minCount": 3}})]
    cluster = Cluster.from_objects(objects, feature_gates=_GANGS)
    found = cluster.fit(job, node_templates="cpu=2,memory=8Gi").missing_nodes
    assert found is not None
    assert [1] == [one.count for one in found.nodes]


class Unmeasured(FilterPlugin[None]):
    """Fails on every node."""

    name: ClassVar = "Unmeasured"

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Return a failure, which is no rejection."""
        return NodeToStatus.everywhere(len(nodes), failure("there are no measurements"))


def test_why_names_a_failure_on_all_nodes() -> None:
    """Whether the pod fits is not known, as `explain` says too."""
    asked = Cluster.from_objects([node("a", "4"), pod("web", "1")], plugins=Unmeasured)
    failed = 'running "Unmeasured" filter plugin: there are no measurements'
    sentence = f"Pod shop/web cannot be judged: {failed}."
    assert [sentence] * 2 == [asked.why("web").sentence, headline(asked.explain("web"))]


class Refuser(PermitPlugin):
    """Lets no pod go."""

    name: ClassVar = "Refuser"

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Refuse it."""
        return unschedulable("no"), 0.0


def test_what_is_not_asked_is_named(tmp_path: Path) -> None:
    """Plugins at Permit may refuse a pod that fits, extenders a node."""
    objects = [node("a", "4"), pod("p", "1")]
    note = "Refuser may still refuse it on the chosen node; `kubesched simulate` shows whether."
    asked = Cluster.from_objects(objects, plugins=Refuser)
    assert ((note,), (note,)) == (asked.why("p").notes, asked.explain("p").notes)
    head = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"
    config = tmp_path / "config.yaml"
    config.write_text(f"{head}extenders: [{{urlPrefix: 'http://x/', filterVerb: f}}]\n")
    warning = "not called: the extenders http://x/, which may refuse or prefer nodes"
    assert [warning] == Cluster.from_objects(objects, config=config).warnings


def test_room_for_devices_is_not_counted() -> None:
    """Nodes do not list extended resources that devices provide."""
    names = {"metadata": {"name": "gpus"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    devices = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", **names}
    asking = pod("p", "1")
    asking["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    cluster = Cluster.from_objects([node("a", "4"), devices, asking])
    with pytest.raises(UserError, match="devices of DeviceClass gpus provide"):
        cluster.top(room="example.com/gpu=1")


_DOES_NOT_FIT: Final = (
    "Pod shop/g-0 fits alone, but its gang does not: at least 3 pods of PodGroup g must fit "
    "together, and 2 of 3 pending ones do (Insufficient cpu)."
)


@pytest.mark.parametrize(
    ("cpu", "state", "sentence"),
    [
        pytest.param(
            "6", "Fits", "Pod shop/g-0 fits together with its gang, and would go to n.", id="fits"
        ),
        pytest.param("5", "GangUnschedulable", _DOES_NOT_FIT, id="does not fit"),
        pytest.param(
            "1",
            "Unschedulable",
            "Pod shop/g-0 does not fit the only node, which has too little cpu.",
            id="the pod does not fit",
        ),
    ],
)
def test_why_of_a_pod_of_a_gang(cpu: str, state: str, sentence: str) -> None:
    """If the pod fits alone, the gang is placed; other pending pods do not take its room."""
    report = _gang(cpu).why("shop/g-0")
    assert (state, sentence) == (report.state, report.sentence)
    assert ("this is about the pod alone" in "".join(report.notes)) == (state == "Unschedulable")


@pytest.mark.parametrize(
    ("cpu", "sentence"),
    [
        ("6", "Pod shop/g-0 fits together with its gang, and would go to n."),
        ("5", _DOES_NOT_FIT),
        ("1", "Pod shop/g-0 does not fit the only node."),
    ],
)
def test_explain_opens_with_the_gang(cpu: str, sentence: str) -> None:
    """A pod that fits alone has no node if its gang does not fit; the page agrees."""
    cluster = _gang(cpu)
    assert sentence == headline(cluster.explain("shop/g-0"))
    assert sentence == headline(cluster.explain_page("shop/g-0")[0])


def test_the_page_of_why_explains_the_gang() -> None:
    """Its explanation does not open with a node either."""
    report, *others = _gang("5").why_page("shop/g-0")
    explanation = others[0]
    assert isinstance(explanation, PodExplanation)
    assert report.sentence == headline(explanation)
