"""Defaults that the API server would set, and warnings about the input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.cluster import Json, node, pod, run, write
from tests.inputs.test_completed_input_unknown_kinds import classed, of


def _limited(name: str) -> Json:
    found = pod(name)
    found["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "8"}}
    return found


def _listening(name: str, node_name: str = "") -> Json:
    found = pod(name, "1", node_name=node_name, hostNetwork=True)
    found["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    return found


def _offering_its_capacity() -> Json:
    found = node("alpha")
    found["status"] = {"capacity": found["status"]["allocatable"]}
    return found


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([node("alpha"), _limited("a")], "does not fit", id="limits"),
        pytest.param(
            [
                node("alpha"),
                pod("old", "4", node_name="alpha"),
                of("PriorityClass", "high", "scheduling.k8s.io/v1", value=100),
                classed("a", "4"),
            ],
            "would make room for it",
            id="priority class",
        ),
        pytest.param(
            [node("alpha"), _listening("b", node_name="alpha"), _listening("a")],
            "does not fit",
            id="ports of the host",
        ),
        pytest.param([_offering_its_capacity(), pod("a")], "goes to alpha", id="capacity"),
    ],
)
def test_explain_and_simulate_agree_on_manifests(
    objects: list[Json], expected: str, tmp_path: Path
) -> None:
    """Both set the API server's defaults."""
    file = write(tmp_path, objects)
    explained = run("explain", "a", file)
    assert not explained.exit_code, explained.stderr
    assert expected in explained.stdout
    placed = "1 of 1 pod placed" in run("simulate", file).stdout
    assert placed == (expected != "does not fit")


def test_claims_without_uids_are_distinct(tmp_path: Path) -> None:
    """Both pods are placed in one run."""
    api = "resource.k8s.io/v1"
    slices = of(
        "ResourceSlice",
        "alpha-gpus",
        api,
        spec={
            "driver": "gpu.example",
            "nodeName": "alpha",
            "pool": {"name": "alpha", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
        },
    )
    class_ = of("DeviceClass", "gpu", api, spec={})
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    spec = {"devices": {"requests": [request]}}
    claims = [of("ResourceClaim", name, api, spec=spec) for name in ("one", "two")]
    pods = [
        pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": name}])
        for name in ("one", "two")
    ]
    result = run("simulate", write(tmp_path, [node("alpha"), slices, class_, *claims, *pods]))
    assert result.stdout.startswith("2 of 2 pods placed"), result.stdout
    sharing = pod("three", resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}])
    file = write(tmp_path, [node("alpha"), slices, class_, *claims, *pods, sharing])
    result = run("simulate", file)
    assert result.stdout.startswith("3 of 3 pods placed"), result.stdout
    assert "warning" not in result.stderr


@pytest.mark.parametrize(
    ("extra", "warning"),
    [
        pytest.param(
            {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
            "a KubeSchedulerConfiguration among the objects is ignored; pass it with --config",
            id="configuration",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure"},
            "there is a Status among the objects: the command that printed it has failed",
            id="status",
        ),
        pytest.param(
            {"apiVersion": "policy/v0", "kind": "PodDisruptionBudget", "metadata": {"name": "x"}},
            "not read: 1 PodDisruptionBudget of policy/v0; it is read as policy/v1 or"
            " policy/v1beta1",
            id="version",
        ),
    ],
)
def test_warnings_about_files_that_may_be_wrong(extra: Json, warning: str, tmp_path: Path) -> None:
    """Both commands print one line each; kinds that scheduling ignores cause no warning."""
    secret: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    file = write(tmp_path, [node("alpha"), pod("a"), secret, extra])
    for words in (("simulate", file), ("explain", "a", file)):
        result = run(*words)
        assert result.stderr.startswith(f"kubesched: warning: {warning}\n")
        assert "Secret" not in result.stderr


def test_a_gang_of_a_dump_is_placed_as_a_whole(tmp_path: Path) -> None:
    """With the gates on, all pods of a gang get a node, or none."""
    policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    group = of("PodGroup", "train", "scheduling.k8s.io/v1alpha2", spec=policy)
    grouped = [pod(f"p{at}", schedulingGroup={"podGroupName": "train"}) for at in range(3)]
    gates = ("--feature-gates", "GenericWorkload=true,GangScheduling=true")
    alone = write(tmp_path, [node("alpha", "2"), group, *grouped, pod("single")])
    assert run("simulate", alone, *gates).stdout.startswith("1 of 4 pods placed")
    both = write(tmp_path, [node("alpha", "2"), node("beta", "2"), group, *grouped, pod("single")])
    result = run("simulate", both, *gates)
    assert result.stdout.startswith("4 of 4 pods placed"), result.stdout
    assert "warning" not in result.stderr


def test_files_of_further_pods_have_pods(tmp_path: Path) -> None:
    """A file without Pods for `--pods` is most likely the wrong one."""
    dump = write(tmp_path, [node("alpha"), pod("a")], "dump.json")
    wrong = write(tmp_path, [node("beta")], "wrong.json")
    result = run("simulate", dump, "--pods", wrong)
    assert f"kubesched: warning: --pods {wrong}: it holds no Pods\n" in result.stderr


@pytest.mark.parametrize("is_json", [True, False])
@pytest.mark.parametrize("others", [(), ("last",)])
def test_a_page_of_a_list_is_a_part_unless_the_last_one_is_there(
    tmp_path: Path, is_json: bool, others: tuple[str, ...]
) -> None:
    """`kubectl get --raw` prints pages if it is asked for a limit."""
    write(tmp_path, [node("alpha")])
    for name in ("first", *others):
        metadata = {"continue": "abc"} if name == "first" else {"resourceVersion": "1"}
        page = {"apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": [pod(name)]}
        text = json.dumps(page)
        (tmp_path / f"{name}.yaml").write_text(text if is_json else yaml.safe_dump(page))
    result = run("simulate", tmp_path)
    assert not result.exit_code, result.stderr
    is_told = "v1/PodList: only a part of it is there, as its metadata.continue shows"
    assert (is_told in result.stderr) == (not others)
