"""Requests of pods against a table of facts and a naive twin on fractions."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.api.pod_requests import pod_limit_amounts, pod_request_amounts, pod_requests
from kubesched.testing.builders import make_pod

MEBI = 1024 * 1024
Plain = dict[str, Any]


def _asking(requests: dict[str, str], name: str = "c", *, sidecar: bool = False) -> Plain:
    plain: Plain = {"name": name, "resources": {"requests": requests}}
    return {**plain, "restartPolicy": "Always"} if sidecar else plain


def _container(name: str = "c", *, sidecar: bool = False, **requests: str) -> Plain:
    return _asking(requests, name, sidecar=sidecar)


def _pod(status: Plain | None = None, **spec: Any) -> Pod:
    return msgspec.convert({"spec": spec, "status": status or {}}, Pod)


def _reported(name: str, allocated: Plain | None = None, **requests: str) -> Plain:
    plain: Plain = {"name": name, "resources": {"requests": requests}}
    return plain if allocated is None else {**plain, "allocatedResources": allocated}


PENDING_INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(_pod(), {}, id="nothing"),
        pytest.param(
            _pod(containers=[_container(cpu="100m"), _container(cpu="0.2", memory="1Mi")]),
            {"cpu": 300, "memory": MEBI},
            id="sum",
        ),
        pytest.param(
            _pod(containers=[_container(cpu="0.4m")] * 3), {"cpu": 2}, id="rounded at the end"
        ),
        pytest.param(
            _pod(containers=[_container(cpu="1")], initContainers=[_container("i", cpu="3")]),
            {"cpu": 3000},
            id="init container needs more",
        ),
        pytest.param(
            _pod(
                containers=[_container(cpu="1")],
                initContainers=[
                    _container("i", cpu="2"),
                    _container("s", sidecar=True, cpu="1"),
                    _container("j", cpu="2"),
                ],
            ),
            {"cpu": 3000},
            id="init container beside a sidecar",
        ),
        pytest.param(
            _pod(
                containers=[_container(cpu="1")],
                initContainers=[_container("s", sidecar=True, cpu="1")] * 2,
            ),
            {"cpu": 3000},
            id="sidecars add up",
        ),
        pytest.param(
            _pod(containers=[_container(cpu="1")], overhead={"cpu": "1", "memory": "1"}),
            {"cpu": 2000, "memory": 1},
            id="overhead",
        ),
        pytest.param(
            _pod(
                containers=[_asking({"cpu": "1", "example.com/gpu": "1", "foo": "1"})],
                resources={"requests": {"cpu": "5", "example.com/gpu": "7"}},
                overhead={"cpu": "1"},
            ),
            {"cpu": 6000, "example.com/gpu": 1},
            id="the pod as a whole replaces what it may, and unknown names do not count",
        ),
        pytest.param(
            _pod(containers=[_container(cpu="1")], resources={"limits": {"cpu": "5"}}),
            {"cpu": 1000},
            id="limits of the whole are no requests",
        ),
        pytest.param(
            _pod(
                {"containerStatuses": [_reported("c", cpu="9")]}, containers=[_container(cpu="1")]
            ),
            {"cpu": 1000},
            id="status is not read",
        ),
    ],
)
def test_requests(pod: Pod, expected: dict[str, int]) -> None:
    """The requests of an incoming pod."""
    assert expected == pod_requests(pod)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            _pod(
                {"containerStatuses": [_reported("c", cpu="9")]}, containers=[_container(cpu="1")]
            ),
            {"cpu": 9000},
            id="actuated",
        ),
        pytest.param(
            _pod(
                {"containerStatuses": [_reported("c", {"cpu": "4"}, cpu="2")]},
                containers=[_container(cpu="1")],
            ),
            {"cpu": 4000},
            id="allocated",
        ),
        pytest.param(
            _pod(
                {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "4"}}]},
                containers=[_container(cpu="1")],
            ),
            {"cpu": 1000},
            id="allocated does not count without actuated",
        ),
        pytest.param(
            _pod(
                {"containerStatuses": [_reported("c", cpu="2")], "conditions": PENDING_INFEASIBLE},
                containers=[_container(cpu="8", memory="1")],
            ),
            {"cpu": 2000},
            id="infeasible resize",
        ),
        pytest.param(
            _pod(
                {"initContainerStatuses": [_reported("i", cpu="9"), _reported("s", cpu="3")]},
                initContainers=[_container("i", cpu="1"), _container("s", sidecar=True, cpu="1")],
            ),
            {"cpu": 3000},
            id="sidecars can be resized, init containers cannot",
        ),
        pytest.param(
            _pod(
                {"resources": {"requests": {"cpu": "7"}}, "allocatedResources": {"memory": "3"}},
                resources={"requests": {"cpu": "5", "memory": "1"}},
            ),
            {"cpu": 7000, "memory": 3},
            id="the pod as a whole",
        ),
        pytest.param(
            _pod(
                {"resources": {"requests": {"cpu": "7"}}, "conditions": PENDING_INFEASIBLE},
                resources={"requests": {"cpu": "9", "memory": "1"}},
            ),
            {"cpu": 7000, "memory": 0},
            id="infeasible resize of the whole",
        ),
    ],
)
def test_requests_with_status(pod: Pod, expected: dict[str, int]) -> None:
    """The requests that count on the node during a resize."""
    assert expected == pod_requests(pod, use_status=True)


@pytest.mark.parametrize(
    ("pod", "pod_level", "expected"),
    [
        pytest.param(
            _pod(containers=[_container(cpu="0"), _container(memory="1")]),
            True,
            {"cpu": 100, "memory": 200 * MEBI + 1},
            id="an explicit zero is not missing",
        ),
        pytest.param(
            _pod(containers=[_container()], initContainers=[_container("i")] * 2),
            True,
            {"cpu": 100, "memory": 200 * MEBI},
            id="init containers too",
        ),
        pytest.param(
            _pod(containers=[_container()] * 2, resources={"requests": {"cpu": "1"}}),
            True,
            {"cpu": 1000, "memory": 400 * MEBI},
            id="only what the whole does not name",
        ),
        pytest.param(
            _pod(
                containers=[_container(memory="5"), _container()],
                resources={"requests": {"cpu": "1"}},
            ),
            True,
            {"cpu": 1000, "memory": 5},
            id="nor what some container names",
        ),
        pytest.param(
            _pod(containers=[_container()] * 2, resources={"requests": {"cpu": "1"}}),
            False,
            {"cpu": 200, "memory": 400 * MEBI},
            id="the whole is not read",
        ),
        pytest.param(
            _pod(containers=[_container()], overhead={"cpu": "1"}),
            True,
            {"cpu": 1100, "memory": 200 * MEBI},
            id="overhead on top",
        ),
    ],
)
def test_requests_with_defaults(pod: Pod, pod_level: bool, expected: dict[str, int]) -> None:
    """Containers without cpu or memory requests count as 100m and 200Mi."""
    assert expected == pod_requests(pod, pod_level=pod_level, default_missing=True)


def _limited(name: str = "c", sidecar: bool = False, **limits: str) -> Plain:
    plain: Plain = {"name": name, "resources": {"limits": limits}}
    return {**plain, "restartPolicy": "Always"} if sidecar else plain


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            _pod(
                containers=[_limited(cpu="1")],
                initContainers=[_limited("s", sidecar=True, cpu="1"), _limited("i", cpu="2")],
                overhead={"cpu": "1", "memory": "1"},
            ),
            {"cpu": 4000},
            id="overhead where there is a limit",
        ),
        pytest.param(
            _pod(
                containers=[_limited(cpu="1", memory="9")],
                resources={"limits": {"cpu": "5"}, "requests": {}},
            ),
            {"cpu": 5000, "memory": 9},
            id="the pod as a whole",
        ),
    ],
)
def test_limits(pod: Pod, expected: dict[str, int]) -> None:
    """Limits are added as requests are."""
    assert expected == {
        name: amount.milli_value() if name == "cpu" else amount.value()
        for name, amount in pod_limit_amounts(pod).items()
    }


def test_all_names_are_there_exactly() -> None:
    """Exact amounts include resources that do not count for scheduling."""
    amounts = pod_request_amounts(_pod(containers=[_container(foo="1500m")]))
    assert {"foo": 1500} == {name: amount.milli_value() for name, amount in amounts.items()}


_lists = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]),
    st.integers(0, 5000).map(lambda milli: f"{milli}m"),
)
_containers = st.lists(st.tuples(st.booleans(), _lists), max_size=4)
_Milli = dict[str, Fraction]


def _milli(requests: dict[str, str], missing: bool) -> _Milli:
    numbers = {name: Fraction(text[:-1]) for name, text in requests.items()}
    defaults = {"cpu": Fraction(100), "memory": Fraction(200 * MEBI * 1000)} if missing else {}
    return {**defaults, **numbers}


@given(_containers, _containers, _lists, _lists, st.booleans())
def test_requests_equal_their_twin(
    containers: list[tuple[bool, dict[str, str]]],
    inits: list[tuple[bool, dict[str, str]]],
    whole: dict[str, str],
    overhead: dict[str, str],
    missing: bool,
) -> None:
    """The specification, step by step, per resource."""
    pod = _pod(
        containers=[_asking(r) for _, r in containers],
        initContainers=[_asking(r, "i", sidecar=s) for s, r in inits],
        resources={"requests": whole},
        overhead=overhead,
    )
    by_pod = {
        name: Fraction(text[:-1]) for name, text in whole.items() if name != "example.com/gpu"
    }
    plain = _twin(containers, inits, by_pod, overhead, ())
    lacking = tuple(n for n in ("cpu", "memory") if not by_pod or n not in plain) if missing else ()
    expected = _twin(containers, inits, by_pod, overhead, lacking)
    assert {
        name: -(-number // (1 if name == "cpu" else 1000)) for name, number in expected.items()
    } == pod_requests(pod, default_missing=missing)


def _twin(
    containers: list[tuple[bool, dict[str, str]]],
    inits: list[tuple[bool, dict[str, str]]],
    by_pod: _Milli,
    overhead: dict[str, str],
    lacking: tuple[str, ...],
) -> _Milli:
    total: _Milli = {}
    for name in ("cpu", "memory", "example.com/gpu"):
        default = name in lacking

        def ask(
            requests: dict[str, str], name: str = name, default: bool = default
        ) -> Fraction | None:
            return (
                _milli(requests, missing=default).get(name) if default or name in requests else None
            )

        main = [ask(requests) for _, requests in containers]
        side = [ask(requests) for sidecar, requests in inits if sidecar]
        uses: list[Fraction | None] = []
        for index, (_, requests) in enumerate(inits):
            before = [ask(r) for s, r in inits[:index] if s]
            uses.append(_sum([*before, ask(requests)]))
        number = _most([_sum(main + side), *uses])
        number = by_pod.get(name, number)
        extra = Fraction(overhead[name][:-1]) if name in overhead else None
        number = _sum([number, extra])
        if number is not None:
            total[name] = number
    return total


def _sum(numbers: list[Fraction | None]) -> Fraction | None:
    present = [number for number in numbers if number is not None]
    return sum(present, Fraction(0)) if present else None


def _most(numbers: list[Fraction | None]) -> Fraction | None:
    present = [number for number in numbers if number is not None]
    return max(present) if present else None


@pytest.mark.parametrize(
    "quantity", ["0", "0.4m", "1", "1500m", "1.5Gi", "100M", "1e3", 2, "-1", "9E", "1E30"]
)
@pytest.mark.parametrize("name", ["cpu", "memory", "example.com/gpu"])
def test_a_single_container_requests_what_its_sum_would_be(name: str, quantity: str | int) -> None:
    """Requests that need no adding up equal those that are added up."""
    containers = [{"name": "one", "resources": {"requests": {name: quantity}}}]
    alone = make_pod(spec={"containers": containers})
    added = make_pod(spec={"containers": containers, "overhead": {"pods": 0}})
    assert pod_requests(added) == pod_requests(alone)
