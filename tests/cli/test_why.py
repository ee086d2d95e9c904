"""`kubesched why`: what it prints, and which pods it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.inputs.status_line import StatusLine

from .cluster import GPU_TAINT, Json, document, node, owned, pod, refused, run, write


def _of_deployment(name: str, cpu: str, node_name: str = "") -> Json:
    made = owned(pod(name, cpu, node_name=node_name), "web-5d")
    made["metadata"]["labels"] = {"pod-template-hash": "5d"}
    return made


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Return a dump of two nodes, of which one is tainted, and of pods of a Deployment."""
    return write(
        tmp_path,
        [
            node("alpha", "2"),
            node("beta", "8", taints=[GPU_TAINT]),
            _of_deployment("web-5d-1", "1", "alpha"),
            _of_deployment("web-5d-2", "2"),
        ],
    )


def test_text(cluster: Path) -> None:
    """The sentence, the changes, the causes with the nearest misses first, the events."""
    result = run("why", "web-5d-2", cluster, "--complete", "--top", "3")
    assert result.exit_code == 0
    assert result.stdout == (
        "Pod shop/web-5d-2 fits none of 2 nodes: 1 has too little cpu, 1 has a taint that\n"
        "it does not tolerate.\n"
        "\n"
        "Any one of these makes it fit, the smallest first\n"
        "  1. lower the cpu request of container main from 2 to 1\n"
        "      then it goes to alpha\n"
        "  2. tolerate the taint dedicated=gpu:NoSchedule\n"
        "      then it goes to beta\n"
        "  3. remove the taint dedicated=gpu:NoSchedule from node beta\n"
        "      then it goes to beta\n"
        "  and 2 more; --top 5 shows all\n"
        "\n"
        "Why not, the nearest misses first\n"
        "  1 node: Insufficient cpu\n"
        "      alpha: cpu: requested 2, free 1 of 2\n"
        "  1 node: node(s) had untolerated taint(s)\n"
        "      beta: taint dedicated=gpu:NoSchedule\n"
        "\n"
        "Tried again after\n"
        "  NodeResourcesFit: Pod deleted, Pod requests lowered, Node added, Node\n"
        "    allocatable updated, DeviceClass added, DeviceClass updated\n"
        "  TaintToleration: Node added, Node taints updated, Pod tolerations updated\n"
    )


def test_the_same_change_of_several_nodes_is_listed_once(tmp_path: Path) -> None:
    """The other nodes are named beside it."""
    nodes = [node(name, taints=[GPU_TAINT]) for name in ("alpha", "beta")]
    result = run("why", "web", write(tmp_path, [*nodes, pod("web")]), "--complete")
    assert (
        "  2. remove the taint dedicated=gpu:NoSchedule from node alpha\n"
        "      then it goes to alpha; beta would do, too\n\n"
    ) in result.stdout


@pytest.mark.parametrize("name", ["deploy/web", "deployment.apps/web", "Deployment/web"])
def test_a_workload_stands_for_a_pending_pod(cluster: Path, name: str) -> None:
    """The pending pod is taken, and the answer notes it; `kubectl get -o name` adds the group."""
    report = document("why", name, cluster, "--complete")
    assert report["kind"] == "WhyReport"
    assert report["pod"] == "shop/web-5d-2"
    assert report["notes"] == [f"1 of 2 pods of {name} have no node; this is one."]


@pytest.mark.parametrize("name", ["web-5d-2", "shop/web-5d-2", "pod/web-5d-2", "Pod/web-5d-2"])
def test_names_of_pods(cluster: Path, name: str) -> None:
    """A pod is named with and without its namespace, and as kubectl does."""
    report = document("why", name, cluster)
    assert report["pod"] == "shop/web-5d-2"


def test_a_namespace_may_be_named_like_a_kind(tmp_path: Path) -> None:
    """Where the namespace has pods, the text names a pod."""
    within = pod("web-1", "1")
    within["metadata"]["namespace"] = "svc"
    cluster = write(tmp_path, [node("alpha", "2"), within])
    report = document("why", "svc/web-1", cluster)
    assert "svc/web-1" == report["pod"]


def test_the_namespace_in_a_name_goes_before_the_option(cluster: Path) -> None:
    """The option is about names without one."""
    report = document("why", "shop/web-5d-2", cluster, "-n", "other")
    assert report["pod"] == "shop/web-5d-2"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["deploy/wep"], "a Deployment of that name; did you mean deployment/web?"),
        (["sts/web"], "a StatefulSet of that name; did you mean deployment/web?"),
        (["node/alpha"], "node/alpha: a pod is asked for, not a Node; `kubesched top` shows"),
        (["Node/alpha"], "`kubesched drain alpha` where its pods would go"),
        (["svc/web"], "svc/web: a Service needs no node; name a pod or its workload; did you"),
        (["cj/x"], "cj/x: the pods of a CronJob belong to Jobs; name a pod or its workload; there"),
        (["nowhere/alpha"], "there are no pods in namespace nowhere, but in shop"),
        (["web-5d-3"], "pod web-5d-3: there is no such pod; did you mean"),
        (["web-5d-2", "-n", "other"], "there is no such pod; did you mean shop/web-5d-2?"),
        (["web"], "pod web: there is no such pod; did you mean deployment/web?"),
        (["shop/web-5d"], "there is no such pod; did you mean replicaset/web-5d?"),
        (["deploy/web", "-n", "other"], "deploy/web: it is not in other, but in shop"),
    ],
)
def test_users_mistakes(cluster: Path, arguments: list[str], error: str) -> None:
    """The error names what is wrong."""
    assert error in refused("why", arguments[0], cluster, *arguments[1:])


def test_progress(cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows what takes time, as in a cluster of 5,000 nodes."""
    shown: list[str] = []
    monkeypatch.setattr(StatusLine, "show", lambda _, text: shown.append(text()))
    run("why", "shop/web-5d-2", cluster, "--html", tmp_path / "why.html")
    expected = ["Reading: 1 object", "Asking about shop/web-5d-2", "Drawing the cluster"]
    assert expected == shown


def test_a_bound_pod(cluster: Path) -> None:
    """There is nothing to explain."""
    result = run("why", "web-5d-1", cluster)
    assert result.stdout == ("Pod shop/web-5d-1 is on node alpha since 2026-01-01T00:00:00Z.\n")


def test_the_last_attempt_has_the_message_but_no_time(tmp_path: Path) -> None:
    """A condition keeps the time at which the pod was first not scheduled."""
    waits = pod("waits", "9")
    times = {"lastTransitionTime": "2026-06-01T00:00:00Z"}
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes", **times}
    waits["status"] = {"conditions": [condition]}
    result = run("why", "waits", write(tmp_path, [node("alpha", "2"), waits]), "--complete")
    assert "Last attempt, not scheduled since 2026-06-01T00:00:00Z\n  0/1 nodes\n" in result.stdout
