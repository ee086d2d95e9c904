"""Scenarios of users: how their files are recognized, and errors in templates."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kubesched.inputs.errors import UserError
from kubesched.inputs.scenario_input import (
    is_scenario,
    read_scenario,
    with_scheduler,
    workload_warnings,
)
from kubesched.inputs.sources import SchedulerOptions

TEXT = "version: 1\nduration: 1h\n"


@pytest.mark.parametrize(
    "data",
    [TEXT.encode("utf-8-sig"), TEXT.encode("utf-16"), gzip.compress(TEXT.encode())],
    ids=["bom", "utf-16", "gzip"],
)
def test_encoded_and_compressed_files(tmp_path: Path, data: bytes) -> None:
    """They are read as files of clusters are."""
    file = tmp_path / "scenario.yaml"
    file.write_bytes(data)
    assert is_scenario(file)
    assert 3600.0 == read_scenario(file).scenario.duration


def test_unknown_fields_of_templates() -> None:
    """Without the fields, pods would go elsewhere."""
    node = {"name": "a", "template": {"spec": {"unschedulabel": True}}}
    spec = {"nodeSelectr": {"a": "b"}, "containers": [{"name": "c", "resource": {}}]}
    web = {"name": "web", "deployment": {}, "template": {"spec": spec}}
    raw = {"version": 1, "duration": "1h", "nodes": [node], "workloads": [web]}
    with pytest.raises(UserError) as raised:
        read_scenario(raw)
    assert [
        "nodes[0].template.spec.unschedulabel: unknown field",
        "workloads[0].template.spec.nodeSelectr: unknown field",
        "workloads[0].template.spec.containers[0].resource: unknown field",
    ] == list(raised.value.messages)


def test_errors_of_a_configuration_in_a_scenario_name_the_file(tmp_path: Path) -> None:
    """As those of a configuration in a file of its own."""
    file = tmp_path / "scenario.yaml"
    file.write_text(f"{TEXT}scheduler: {{configuration: {{profile: []}}}}\n", encoding="utf-8")
    with pytest.raises(UserError) as raised:
        with_scheduler(read_scenario(file), SchedulerOptions())
    assert {f"{file}: "} == {message[: len(str(file)) + 2] for message in raised.value.messages}


def test_extenders_that_the_configuration_lacks(tmp_path: Path) -> None:
    """Their behaviour would have no effect; with another configuration it need not have any."""
    scheduler = {
        "configuration": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [{"urlPrefix": "http://a", "filterVerb": "filter"}],
        },
        "extenders": [{"urlPrefix": "http://a"}, {"urlPrefix": "http://a/"}],
    }
    play = read_scenario({"version": 1, "duration": "1h", "scheduler": scheduler})
    with pytest.raises(UserError) as raised:
        with_scheduler(play, SchedulerOptions())
    words = 'Invalid value: "http://a/": the configuration has http://a'
    assert (f"scheduler.extenders[1].urlPrefix: {words}",) == raised.value.messages
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    )
    other = with_scheduler(play, SchedulerOptions(config=file))
    assert 2 == len(other.scenario.scheduler.extenders)


def test_a_configuration_without_a_kind(tmp_path: Path) -> None:
    """The error names the field: a scenario itself has no kind."""
    file = tmp_path / "scenario.yaml"
    file.write_text(f"{TEXT}scheduler: {{configuration: {{profiles: []}}}}\n", encoding="utf-8")
    with pytest.raises(UserError) as raised:
        with_scheduler(read_scenario(file), SchedulerOptions())
    words = "kind: Required value: must be KubeSchedulerConfiguration"
    assert f"{file}: scheduler.configuration: {words}" == raised.value.messages[0]


def test_unknown_fields_of_objects(tmp_path: Path) -> None:
    """They are warnings, as in clusters."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeSelectr: {}}\n"
    (tmp_path / "pod.yaml").write_text(pod, encoding="utf-8")
    file = tmp_path / "scenario.yaml"
    file.write_text(f"{TEXT}objects: [pod.yaml]\n", encoding="utf-8")
    wanted = f"{tmp_path}/pod.yaml: Pod p: unknown field spec.nodeSelectr"
    assert [wanted] == workload_warnings(read_scenario(file))


def test_workloads_without_a_profile() -> None:
    """Their pods are in no figure of the report."""
    other = {"name": "b", "deployment": {}, "template": {"spec": {"schedulerName": "other"}}}
    own = {"name": "a", "deployment": {}}
    raw = {"version": 1, "duration": "1h", "workloads": [own, other]}
    (warning,) = workload_warnings(with_scheduler(read_scenario(raw), SchedulerOptions()))
    assert warning == (
        "pods of b get no node and are not counted: their schedulerName is other, and the profiles "
        "are for default-scheduler"
    )


def test_names_in_events_that_no_node_has() -> None:
    """The event would have no effect, and the report would not tell."""
    names = ["worker-1", "worker-2", "w?rker-*", "wroker-*"]
    raw = {
        "version": 1,
        "duration": "1h",
        "nodes": [{"name": "worker", "count": 2, "allocatable": {"cpu": 1}}],
        "events": [{"at": "1m", "cordon": {}}, {"at": "1m", "drain": {"names": names}}],
    }
    assert [
        "events[1].drain: no node is called worker-2",
        "events[1].drain: no node is called wroker-*",
    ] == workload_warnings(read_scenario(raw))


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_the_duration_must_be_positive(seconds: float) -> None:
    """From Python too."""
    play = read_scenario({"version": 1, "duration": "1h"})
    with pytest.raises(UserError, match="it must be longer than 0s"):
        play.changed(None, seconds)
