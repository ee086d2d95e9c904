"""Kinds that the files lack are reported as unknown, not taken for empty."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kubesched.app.scheduler_informers import watched_kinds
from kubesched.config.feature_gates import FeatureGates
from kubesched.explain.saving import KUBECTL_NAMES, SAVE_COMMAND, SAVE_KNOWN_COMMAND
from kubesched.plugins.registry import in_tree_setup
from kubesched.simulator.cluster import ClusterState
from tests.cli.cluster import Json, document, node, owned, pod, run, write

ROOT = Path(__file__).resolve().parents[2]
HOST = "kubernetes.io/hostname"
VOLUMES = ["PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode", "CSIDriver"]
VOLUMES += ["CSIStorageCapacity", "VolumeAttachment"]


def explained(directory: Path, objects: Sequence[Json]) -> Any:
    """Return the explanation of pod `p`."""
    return document("explain", "p", write(directory, objects), code=0)


def simulated(directory: Path, objects: Sequence[Json]) -> Any:
    """Return the report of a simulation."""
    return document("simulate", write(directory, objects), code=0)


def kinds(report: Any) -> list[str]:
    """Return the unknown kinds."""
    return [one["kind"] for one in report["unknown"]]


def of(kind: str, name: str, api: str = "v1", **fields: Any) -> Json:
    """Return an object in the pods' namespace."""
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", **fields.pop("metadata", {})},
        **fields,
    }


def classed(name: str = "p", cpu: str = "1") -> Json:
    """Return a pod that names a class and has no priority yet."""
    made = pod(name, cpu, priorityClassName="high")
    del made["spec"]["priority"]
    return made


def using(claim: str) -> Json:
    """Return pod `p` with a volume from a claim."""
    return pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])


def labelled(name: str = "p", **spec: Any) -> Json:
    """Return a pod that services may select."""
    made = pod(name, **spec)
    made["metadata"]["labels"] = {"app": "web"}
    return made


def storage_class(provisioner: str, mode: str = "WaitForFirstConsumer") -> Json:
    """Return class `c`."""
    api = "storage.k8s.io/v1"
    return of("StorageClass", "c", api, provisioner=provisioner, volumeBindingMode=mode)


def claim(volume: str = "") -> Json:
    """Return claim `data` of class `c`, bound if it has a volume."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    spec = {"storageClassName": "c", "volumeName": volume, "accessModes": ["ReadWriteOnce"]}
    return of("PersistentVolumeClaim", "data", spec=spec, metadata={"annotations": annotations})


def selecting(kind: str) -> Json:
    """Return required affinity of a given kind that selects namespaces by label."""
    term = {
        "topologyKey": HOST,
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": {"matchLabels": {"team": "x"}},
    }
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


DEVICES: Json = {"resourceClaims": [{"name": "c", "resourceClaimName": "gpu"}]}
GPU_CLAIM = of(
    "ResourceClaim",
    "gpu",
    "resource.k8s.io/v1",
    spec={"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}},
)
NODES = [node("alpha"), node("beta", "8")]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([using("data")], VOLUMES, id="claims"),
        pytest.param(
            [using("data"), claim("v")],
            ["PersistentVolume", "CSINode", "VolumeAttachment"],
            id="volumes",
        ),
        pytest.param(
            [using("data"), claim()],
            ["PersistentVolume", *VOLUMES[2:]],
            id="classes",
        ),
        pytest.param(
            [using("data"), claim(), storage_class("x", "Immediate")], None, id="known rejection"
        ),
        pytest.param(
            [pod("p", **DEVICES)], ["ResourceClaim", "ResourceSlice", "DeviceClass"], id="devices"
        ),
        pytest.param(
            [pod("p", **DEVICES), GPU_CLAIM],
            ["ResourceSlice", "DeviceClass"],
            id="classes of devices",
        ),
        pytest.param([pod("p", affinity=selecting("podAffinity"))], ["Namespace"], id="affinity"),
        pytest.param([], ["Node"], id="nodes"),
    ],
)
def test_rejections_that_depend_on_missing_kinds(
    objects: list[Json], expected: list[str] | None, tmp_path: Path
) -> None:
    """The outcome is unknown, with the kinds; a rejection that no kind could change is certain."""
    nodes = NODES if objects else []
    report = explained(tmp_path, [*nodes, *(objects or [pod("p")])])
    assert (expected or []) == kinds(report)
    if expected in (None, ["Node"]):
        assert "Unschedulable" == report["outcome"]
        assert report["message"]
        return
    assert ("Unknown", "") == (report["outcome"], report["message"])
    assert not (report["preFilter"] or {}).get("reasons")
    assert all(verdict["unknown"] for verdict in report["nodes"])
    assert not any(verdict["rejections"] for verdict in report["nodes"])


def test_each_kind_has_reason_and_command(tmp_path: Path) -> None:
    """The document has what the text says."""
    objects = [*NODES, using("data"), claim("v")]
    expected = {
        "kind": "PersistentVolume",
        "decides": "Fit",
        "why": "claims are bound to them",
        "command": "kubectl get pv -A -o json",
    }
    assert expected == explained(tmp_path, objects)["unknown"][0]


def test_text_about_missing_kinds(tmp_path: Path) -> None:
    """The headline gives no verdict; one command lists all kinds."""
    result = run("explain", "p", write(tmp_path, [*NODES, using("data"), claim("v")]))
    assert (
        "Whether pod shop/p fits is not known.\n"
        "\n"
        "Not known, because the input has none of these\n"
        "  PersistentVolumes: claims are bound to them\n"
        "  CSINodes: they limit the volumes of a node\n"
        "  VolumeAttachments: they count towards the limit of a node's volumes\n"
        "  to know, also read what this prints: "
        "kubectl get pv,csinodes,volumeattachments -A -o json\n"
    ) == result.stdout


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([pod("p")], [], id="no labels, no service"),
        pytest.param([labelled()], ["Service"], id="services"),
        pytest.param([labelled(), of("Service", "s")], [], id="known services"),
        pytest.param(
            [pod("p", affinity=selecting("podAntiAffinity"))], ["Namespace"], id="anti-affinity"
        ),
        pytest.param(
            [pod("p"), labelled("q", node_name="beta", affinity=selecting("podAntiAffinity"))],
            ["Namespace"],
            id="anti-affinity of others",
        ),
        pytest.param(
            [
                labelled(
                    topologySpreadConstraints=[
                        {"topologyKey": HOST, "maxSkew": 9, "whenUnsatisfiable": "ScheduleAnyway"}
                    ]
                )
            ],
            [],
            id="own constraints",
        ),
        pytest.param([labelled(nodeName="beta")], ["Service"], id="bound"),
        pytest.param([classed()], ["PriorityClass"], id="priority"),
        pytest.param([pod("p", priorityClassName="high", priority=5)], [], id="known priority"),
    ],
)
def test_placements_that_depend_on_missing_kinds(
    objects: list[Json], expected: list[str], tmp_path: Path
) -> None:
    """With the missing kinds, a pod that fits may not fit, or go to another node."""
    report = explained(tmp_path, [*NODES, *objects])
    assert ("Schedulable", expected) == (report["outcome"], kinds(report))


def test_missing_owners_change_spreading(tmp_path: Path) -> None:
    """Of the kinds that own pods only the pod's own matters."""
    asked = owned(pod("p"), "r")
    assert ["Service", "ReplicaSet"] == kinds(explained(tmp_path, [*NODES, asked]))


def test_spreading_does_not_matter_with_one_feasible_node(tmp_path: Path) -> None:
    """No kind is reported as missing."""
    assert [] == kinds(explained(tmp_path, [node("alpha"), labelled()]))


BUDGET = of(
    "PodDisruptionBudget", "b", "policy/v1", spec={"selector": {"matchLabels": {"app": "web"}}}
)


@pytest.mark.parametrize(
    ("others", "expected", "violations"),
    [
        pytest.param([], ["PodDisruptionBudget"], None, id="none"),
        pytest.param([BUDGET], [], 1, id="one"),
        pytest.param(
            [{"apiVersion": "policy/v1", "kind": "PodDisruptionBudgetList", "items": []}],
            [],
            0,
            id="an empty list of its kind",
        ),
    ],
)
def test_victims_depend_on_budgets(
    others: list[Json], expected: list[str], violations: int | None, tmp_path: Path
) -> None:
    """Missing budgets are reported; an empty list of them means that there are none."""
    busy = labelled("busy", cpu="3", node_name="alpha")
    report = explained(tmp_path, [node("alpha"), busy, pod("p", "3", priority=9), *others])
    assert ("Unschedulable", expected) == (report["outcome"], kinds(report))
    [candidate] = report["preemption"]["candidates"]
    assert violations == candidate["pdbViolations"]


def test_rejections_that_no_kind_could_change(tmp_path: Path) -> None:
    """All nodes are too small, whatever namespaces there are."""
    asked = pod("p", "99", affinity=selecting("podAntiAffinity"))
    report = explained(tmp_path, [*NODES, asked])
    assert ("Unschedulable", []) == (report["outcome"], kinds(report))


def test_each_node_is_certain_or_unknown(tmp_path: Path) -> None:
    """A node that is too small is certain, beside nodes that are unknown."""
    asked = pod("p", "6", affinity=selecting("podAffinity"))
    report = explained(tmp_path, [*NODES, asked])
    assert "Unknown" == report["outcome"]
    assert [False, True] == [verdict["unknown"] for verdict in report["nodes"]]
    assert ["NodeResourcesFit", None] == [
        verdict["rejections"][0]["plugin"] if verdict["rejections"] else None
        for verdict in report["nodes"]
    ]


def test_resources_that_no_node_offers(tmp_path: Path) -> None:
    """A DeviceClass could provide them."""
    asked = pod("p")
    asked["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    report = explained(tmp_path, [*NODES, asked])
    assert ("Unknown", ["DeviceClass"]) == (report["outcome"], kinds(report))
    why = "no node offers example.com/gpu, and they say whether devices do"
    assert why == report["unknown"][0]["why"]


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"volumes": using("data")["spec"]["volumes"]}, id="claims"),
        pytest.param(DEVICES, id="devices"),
        pytest.param({"requests": {"x.io/gpu": "1"}}, id="resource"),
    ],
)
def test_known_filters_reject_every_node(asked: Json, tmp_path: Path) -> None:
    """What is not known does not hide that every node rejects the pod for another reason."""
    made = pod("p", "9", **{name: found for name, found in asked.items() if name != "requests"})
    made["spec"]["containers"][0]["resources"]["requests"] |= asked.get("requests", {})
    file = write(tmp_path, [*NODES, made])
    head = "As far as is known, pod shop/p fits none of 2 nodes"
    assert f"{head}." == run("explain", "p", file).stdout.splitlines()[0]
    text = run("why", "p", file).stdout
    assert f"{head}: 2 have too little cpu." == text.splitlines()[0]
    assert "Not known, because the input has none of these" in text
    assert "requested 9, free 4 of 4" in text


def test_pods_gated_by_missing_claims(tmp_path: Path) -> None:
    """A pod is not reported as gated if the input has no claims at all."""
    report = simulated(tmp_path, [*NODES, pod("p", **DEVICES)])
    [gated] = report["gated"]
    assert (True, "") == (gated["unknown"], gated["message"])
    assert ["ResourceClaim", "ResourceSlice", "DeviceClass"] == kinds(report)


def test_a_claim_missing_among_others_does_not_exist(tmp_path: Path) -> None:
    """The kind is known if there are other claims."""
    other = {**GPU_CLAIM, "metadata": {"name": "other", "namespace": "shop"}}
    report = explained(tmp_path, [*NODES, pod("p", **DEVICES), other])
    assert ("Gated", []) == (report["outcome"], kinds(report))
    report = explained(tmp_path, [*NODES, using("gone"), claim()])
    assert ("Unschedulable", []) == (report["outcome"], kinds(report))


def test_kinds_that_a_feature_gate_needs(tmp_path: Path) -> None:
    """DeviceTaintRules matter if the gate makes the plugin read them."""
    file = write(tmp_path, [*NODES, pod("p", **DEVICES)])
    gates = "DRADeviceTaints=true,DRADeviceTaintRules=true"
    expected = ["ResourceClaim", "ResourceSlice", "DeviceClass", "DeviceTaintRule"]
    assert expected == kinds(document("explain", "p", file, "--feature-gates", gates))


def test_simulations_count_uncertain_pods_separately(tmp_path: Path) -> None:
    """They are not counted as pods that do not fit."""
    objects = [*NODES, using("data"), pod("huge", "99"), labelled("web")]
    report = simulated(tmp_path, objects)
    assert {"shop/p": True, "shop/huge": False} == {
        found["pod"]: found["unknown"] for found in report["unplaced"]
    }
    order = ["Service", *VOLUMES]
    assert order == kinds(report)
    text = run("simulate", write(tmp_path, objects)).stdout
    assert text.startswith(
        "As far as is known, 1 of 3 pods placed, on 1 of 2 nodes.\n"
        "1 pod did not fit.\n"
        "Whether shop/p fits is not known.\n"
        "\n"
        "Not known, because the input has none of these\n"
        "  Services: they select the pods to spread\n"
    )
    unplaced = run("simulate", write(tmp_path, objects), "--show", "unplaced").stdout
    assert "not found" not in unplaced
    assert "not known" in unplaced


def test_victims_in_simulations_depend_on_budgets(tmp_path: Path) -> None:
    """The report says so."""
    busy = pod("busy", "3", node_name="alpha")
    report = simulated(tmp_path, [node("alpha"), busy, pod("p", "3", priority=9)])
    assert ["PodDisruptionBudget"] == kinds(report)
    assert ["Victims"] == [one["decides"] for one in report["unknown"]]


def test_the_suggested_command_lists_all_kinds() -> None:
    """They are those that a live scheduler watches."""
    gates = FeatureGates()
    cluster = ClusterState(in_tree_setup(gates))
    plugins = cluster.profiles["default-scheduler"].plugins.values()
    watched = {kind.kind for kind in watched_kinds(plugins, gates)}
    assert watched - KUBECTL_NAMES.keys() == set()


def test_documentation_recommends_this_command() -> None:
    """Every page that saves a whole cluster has it."""
    texts = {
        str(page): page.read_text(encoding="utf-8")
        for place in ("README.md", "docs/**/*.md", "examples/**/*.md", "examples/*.py")
        for page in ROOT.glob(place)
    }
    texts["--help"] = run("--help").stdout
    saving = {
        (page, line.strip())
        for page, text in texts.items()
        for line in text.splitlines()
        if "kubectl get" in line and ("> cluster.json" in line or "nodes,pods" in line)
    }
    assert {SAVE_COMMAND, SAVE_KNOWN_COMMAND} == {line for _, line in saving}
    assert "--help" in {page for page, _ in saving}


def test_lists_that_follow_each_other_in_one_file(tmp_path: Path) -> None:
    """The second command prints them in this form."""
    lists = [
        {"apiVersion": "v1", "kind": "List", "items": items} for items in (NODES, [], [pod("p")])
    ]
    file = tmp_path / "cluster.json"
    file.write_text("".join(f"{json.dumps(one, indent=4)}\n" for one in lists))
    assert "Schedulable" == document("explain", "p", file)["outcome"]


def test_complete_files_leave_nothing_unknown(tmp_path: Path) -> None:
    """With --complete, kinds that the files lack have no objects, for both commands."""
    objects = [node("alpha"), using("data"), pod("q", priorityClassName="high")]
    file = write(tmp_path, objects)
    for command in (("explain", "p"), ("simulate",)):
        open_ended, complete = (document(*command, file, *flags) for flags in ((), ("--complete",)))
        assert open_ended["unknown"]
        assert not complete["unknown"]
    explained = run("explain", "p", file, "--complete").stdout
    assert 'persistentvolumeclaim "data" not found' in explained


def test_complete_files_without_nodes_have_none(tmp_path: Path) -> None:
    """The pod fits nowhere, and that is known."""
    report = document("explain", "p", write(tmp_path, [pod("p")]), "--complete")
    assert [] == kinds(report)
    assert "0/0 nodes are available" in report["message"] or "no nodes" in report["message"]
