"""Lists of openb: the objects of their rows, and errors about invalid files."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import cast

import pytest

from kubesched.api.codec import DecodeError
from kubesched.api.core import Node, Pod
from kubesched.simulator.traces import (
    GPU,
    MODEL_LABEL,
    is_openb,
    read_openb,
    run_seconds_of,
    trace_nodes,
    trace_pods,
)

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)


def pods_of(text: str) -> list[Pod]:
    """Read a list of pods."""
    return [cast("Pod", found.object) for found in read_openb(text.encode(), "pods.csv")]


def test_a_node_of_the_list() -> None:
    """It has CPU, memory, 1001 pods and whole GPUs; its GPU model is a label."""
    (found,) = read_openb(f"{NODES}n-1,96000,393216,8,G2\n".encode(), "nodes.csv")
    node = cast("Node", found.object)
    expected = {"cpu": "96000m", "memory": "393216Mi", "pods": "1001", GPU: "8"}
    assert expected == node.status.allocatable
    assert {"kubernetes.io/hostname": "n-1", MODEL_LABEL: "G2"} == node.metadata.labels


def test_a_node_without_gpus() -> None:
    """It has neither the resource nor the label."""
    (found,) = read_openb(f"{NODES}n-1,32000,262144,0,\n".encode(), "nodes.csv")
    node = cast("Node", found.object)
    assert GPU not in node.status.allocatable
    assert {"kubernetes.io/hostname": "n-1"} == node.metadata.labels


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param("p,4000,1024,0,0,,LS,Running,0,9,0", None, id="no GPU"),
        pytest.param("p,4000,1024,1,460,,LS,Running,0,9,0", "1", id="a share is a whole one"),
        pytest.param("p,4000,1024,8,1000,,LS,Running,0,9,0", "8", id="several"),
    ],
)
def test_requests_of_a_pod(row: str, expected: str | None) -> None:
    """They equal the limits; GPUs are whole."""
    (pod,) = pods_of(f"{PODS}{row}\n")
    resources = pod.spec.containers[0].resources
    assert resources.limits == resources.requests
    assert "4000m" == resources.requests["cpu"]
    assert "1024Mi" == resources.requests["memory"]
    assert expected == resources.requests.get(GPU)
    assert "openb" == pod.metadata.namespace


def test_gpu_spec_is_required_affinity() -> None:
    """`A|B` requires one of the two models."""
    (pod,) = pods_of(f"{PODS}p,1,1,1,1000,V100|T4,LS,Running,0,9,0\n")
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity is not None
    selector = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert selector is not None
    (expression,) = selector.node_selector_terms[0].match_expressions
    assert (MODEL_LABEL, "In", ("V100", "T4")) == (
        expression.key,
        expression.operator,
        expression.values,
    )


def test_pods_are_sorted_by_creation_time_then_name() -> None:
    """The phase of the list is ignored."""
    rows = "c,1,1,0,0,,,Failed,5,9,5\nb,1,1,0,0,,,Running,7,9,7\na,1,1,0,0,,,Running,7,9,7\n"
    pods = pods_of(PODS + rows)
    assert ["c", "a", "b"] == [pod.metadata.name for pod in pods]
    assert "1970-01-01T00:00:05Z" == pods[0].metadata.creation_timestamp
    assert "" == pods[0].status.phase


def test_columns_may_be_missing() -> None:
    """Without times, pods have no creation time."""
    pods = pods_of("name,cpu_milli,memory_mib,num_gpu,gpu_milli\nb,1,1,1,1000\na,1,1,1,1000\n")
    assert ["a", "b"] == [pod.metadata.name for pod in pods]
    assert pods[0].metadata.creation_timestamp is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "f: it is empty", id="empty"),
        pytest.param("sn,cpu_milli,gpu\n", "f: line 1: column memory_mib is missing", id="missing"),
        pytest.param(
            NODES.replace("model", "kind"), "f: line 1: column 'kind' is unknown", id="unknown"
        ),
        pytest.param(
            NODES.replace("model", "gpu"), "f: line 1: column gpu is there twice", id="twice"
        ),
        pytest.param(f"{NODES}n,1,1\n", "f: line 2: 3 values for 5 columns", id="short row"),
        pytest.param(
            f"{NODES}a,1,1,0,\nn,1,x,0,\n",
            "f: line 3: column 3 (memory_mib): a whole number is required, not 'x'",
            id="no number",
        ),
        pytest.param(
            f"{NODES}n,-1,1,0,\n",
            "f: line 2: column 2 (cpu_milli): a whole number is required, not '-1'",
            id="negative",
        ),
        pytest.param(
            f"{NODES}n,{'9' * 18},1,0,\n",
            "column 2 (cpu_milli): 999999999999999999 is",
            id="absurd",
        ),
        pytest.param(
            f"{NODES}n,\u0663,1,0,\n", "column 2 (cpu_milli): a whole number", id="other digits"
        ),
        pytest.param(f"{NODES},1,1,0,\n", "column 1 (sn): a name is required", id="no name"),
        pytest.param(
            f"{PODS}p,1,1,0,0,,,,{10**14},1,1\n", "column 9 (creation_time): 1000", id="no time"
        ),
        pytest.param(f'{NODES}"n,1,1,0,\n', "f: line 2: unexpected end of data", id="open quote"),
    ],
)
def test_errors_have_line_and_column(text: str, expected: str) -> None:
    """They also name what is required."""
    with pytest.raises(DecodeError) as raised:
        read_openb(text.encode(), "f")
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param(NODES.encode(), True, id="nodes"),
        pytest.param(b"\xef\xbb\xbfname,cpu_milli,memory_mib", True, id="pods"),
        pytest.param(b"name: cpu_milli", False, id="YAML"),
        pytest.param(b'{"kind": "Node"}', False, id="JSON"),
    ],
)
def test_lists_are_recognised_by_their_header(head: bytes, expected: bool) -> None:
    """The file's name does not matter."""
    assert expected == is_openb(head)


def test_the_example_is_generated_by_its_script(tmp_path: Path) -> None:
    """Both are committed."""
    example = Path(__file__).parents[2] / "examples" / "openb-like"
    script = tmp_path / "generate.py"
    source = (example / "generate.py").read_text(encoding="utf-8")
    script.write_text(source, encoding="utf-8")
    scope = {"__name__": "__main__", "__file__": str(script)}
    exec(compile(source, script, "exec"), scope)  # noqa: S102 - our own script
    for name in ("nodes.csv", "pods.csv"):
        assert (example / name).read_bytes() == (tmp_path / name).read_bytes()


# Pods with their times.

ONE_NODE = "sn,cpu_milli,memory_mib,gpu,model\nnode-1,4000,8192,0,\n"
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase"
THREE_PODS = f"""{HEAD},creation_time,deletion_time,scheduled_time
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
    pods = trace_pods(_file(tmp_path, THREE_PODS))
    got = [(at, pod.metadata.name, run_seconds_of(pod)) for at, pod in pods]
    assert got == [(0.0, "early", 300.0), (100.0, "endless", None), (200.0, "late", 150.0)]
    assert all(not pod.metadata.uid and not pod.metadata.creation_timestamp for _, pod in pods)


def test_speed_and_count_of_a_trace(tmp_path: Path) -> None:
    """At speed ten everything takes a tenth; the earliest pods are kept."""
    pods = trace_pods(_file(tmp_path, THREE_PODS), speed=10.0, count=2)
    got = [(at, pod.metadata.name, run_seconds_of(pod)) for at, pod in pods]
    assert got == [(0.0, "early", 30.0), (10.0, "endless", None)]


def test_a_compressed_trace(tmp_path: Path) -> None:
    """It is the same trace."""
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress(THREE_PODS.encode()))
    assert trace_pods(_file(tmp_path, THREE_PODS)) == trace_pods(str(path))


def test_a_trace_without_times(tmp_path: Path) -> None:
    """All pods arrive at once, and run for ever."""
    text = "name,cpu_milli,memory_mib,num_gpu\na,1000,512,0\nb,1000,512,0\n"
    pods = trace_pods(_file(tmp_path, text))
    assert [(at, run_seconds_of(pod)) for at, pod in pods] == [(0.0, None), (0.0, None)]


def test_nodes_of_a_trace(tmp_path: Path) -> None:
    """They are those of the list."""
    assert [node.metadata.name for node in trace_nodes(_file(tmp_path, ONE_NODE))] == ["node-1"]


def test_errors_about_wrong_lists_name_the_file(tmp_path: Path) -> None:
    """A list of the other kind, or no list."""
    with pytest.raises(DecodeError, match="expected nodes"):
        trace_nodes(_file(tmp_path, THREE_PODS))
    with pytest.raises(DecodeError, match="expected pods"):
        trace_pods(_file(tmp_path, ONE_NODE))
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
    Path("trace.csv").write_text(f"{THREE_PODS}{row}\n", encoding="utf-8")
    with pytest.raises(DecodeError) as raised:
        trace_pods("trace.csv")
    assert message in str(raised.value)
