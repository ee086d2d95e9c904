"""Pods of a trace with their times."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kubesched.api.codec import DecodeError
from kubesched.simulator.traces import run_seconds_of, trace_nodes, trace_pods

NODES = "sn,cpu_milli,memory_mib,gpu,model\nnode-1,4000,8192,0,\n"
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase"
PODS = f"""{HEAD},creation_time,deletion_time,scheduled_time
late,1000,512,0,0,,BE,Running,300,500,350
early,1000,512,0,0,,BE,Running,100,400,100
endless,1000,512,0,0,,BE,Pending,200,,
"""


def _file(directory: Path, text: str, name: str = "trace.csv") -> str:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_arrival_and_run_times_of_a_trace(tmp_path: Path) -> None:
    """Arrivals count from the first pod; a pod's run time from its binding."""
    pods = trace_pods(_file(tmp_path, PODS))
    got = [(at, pod.metadata.name, run_seconds_of(pod)) for at, pod in pods]
    assert got == [(0.0, "early", 300.0), (100.0, "endless", None), (200.0, "late", 150.0)]
    assert all(not pod.metadata.uid and not pod.metadata.creation_timestamp for _, pod in pods)


def test_speed_and_count_of_a_trace(tmp_path: Path) -> None:
    """At speed ten everything takes a tenth; the earliest pods are kept."""
    pods = trace_pods(_file(tmp_path, PODS), speed=10.0, count=2)
    got = [(at, pod.metadata.name, run_seconds_of(pod)) for at, pod in pods]
    assert got == [(0.0, "early", 30.0), (10.0, "endless", None)]


def test_a_compressed_trace(tmp_path: Path) -> None:
    """It is the same trace."""
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress(PODS.encode()))
    assert trace_pods(_file(tmp_path, PODS)) == trace_pods(str(path))


def test_a_trace_without_times(tmp_path: Path) -> None:
    """All pods arrive at once, and run for ever."""
    text = "name,cpu_milli,memory_mib,num_gpu\na,1000,512,0\nb,1000,512,0\n"
    pods = trace_pods(_file(tmp_path, text))
    assert [(at, run_seconds_of(pod)) for at, pod in pods] == [(0.0, None), (0.0, None)]


def test_nodes_of_a_trace(tmp_path: Path) -> None:
    """They are those of the list."""
    assert [node.metadata.name for node in trace_nodes(_file(tmp_path, NODES))] == ["node-1"]


def test_errors_about_wrong_lists_name_the_file(tmp_path: Path) -> None:
    """A list of the other kind, or no list."""
    with pytest.raises(DecodeError, match="expected nodes"):
        trace_nodes(_file(tmp_path, PODS))
    with pytest.raises(DecodeError, match="expected pods"):
        trace_pods(_file(tmp_path, NODES))
    with pytest.raises(DecodeError, match=r"none\.csv.*cannot be read"):
        trace_pods(str(tmp_path / "none.csv"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("late,1,1,0,0,,,,1,2,1", "line 5: column 1 (name): 'late' is in trace.csv: line 2 alre"),
        ("p,1,1,0,0,,,,300,200,", "column 10 (deletion_time): it is before the creation_time"),
        ("p,1,1,0,0,,,,1,200,201", "column 10 (deletion_time): it is before the scheduled_time"),
        ("p,1,1,0,0,,,,1,2.5,1", "column 10 (deletion_time): a whole number is required, not"),
    ],
)
def test_rows_that_cannot_be_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, message: str
) -> None:
    """A pod would be left out, or run for ever or not at all."""
    monkeypatch.chdir(tmp_path)
    Path("trace.csv").write_text(f"{PODS}{row}\n", encoding="utf-8")
    with pytest.raises(DecodeError) as raised:
        trace_pods("trace.csv")
    assert message in str(raised.value)
