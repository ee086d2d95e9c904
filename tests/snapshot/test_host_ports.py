from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.snapshot.host_ports import ANY_ADDRESS, NO_PORTS, HostPort, host_ports_of
from kubesched.testing.builders import make_pod

PORTS = st.builds(
    HostPort,
    st.sampled_from([ANY_ADDRESS, "127.0.0.1", "10.0.0.1"]),
    st.sampled_from(["TCP", "UDP"]),
    st.sampled_from([80, 443]),
)


def conflict(one: HostPort, other: HostPort) -> bool:
    """Two ports, by the definition."""
    same = (one.protocol, one.port) == (other.protocol, other.port)
    return same and (ANY_ADDRESS in {one.address, other.address} or one.address == other.address)


@given(st.lists(PORTS, max_size=6), PORTS)
def test_conflicts_equal_pairwise_comparison(used: list[HostPort], wanted: HostPort) -> None:
    """A port conflicts if and only if it overlaps with one in use."""
    assert any(conflict(port, wanted) for port in used) == NO_PORTS.plus(used).conflicts(wanted)


@given(st.sets(PORTS, max_size=6), st.sets(PORTS, max_size=4))
def test_minus_undoes_plus(used: set[HostPort], added: set[HostPort]) -> None:
    """Adding and removing free ports restores the value."""
    before = NO_PORTS.plus(used - added)
    assert before == before.plus(added).minus(added)


@given(st.lists(PORTS, max_size=6), st.lists(PORTS, max_size=4))
def test_minus_leaves_no_holder(used: list[HostPort], freed: list[HostPort]) -> None:
    """Removing a port removes it for all its users, and no other port."""
    left = NO_PORTS.plus(used).minus(freed)
    assert sorted({repr(port) for port in used if port not in freed}) == sorted(map(repr, left))


@given(st.permutations([("TCP", 80), ("UDP", 80), ("TCP", 81)]))
def test_order_does_not_tell_values_apart(numbers: list[tuple[str, int]]) -> None:
    """Nodes with the same ports in use have equal values, in any order of arrival."""
    ports = [HostPort(address, *number) for number in numbers for address in ("a", "b")]
    assert NO_PORTS.plus(ports) == NO_PORTS.plus(reversed(ports))
    assert hash(NO_PORTS.plus(ports)) == hash(NO_PORTS.plus(reversed(ports)))
    assert NO_PORTS.plus(ports) != NO_PORTS.plus(ports[1:])


def test_emptied_is_no_ports() -> None:
    """A node without ports has the same value as before its first one."""
    port = HostPort(ANY_ADDRESS, "TCP", 80)
    assert NO_PORTS is NO_PORTS.plus([port]).minus([port])
    assert NO_PORTS is NO_PORTS.minus([port])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [{"ports": [{"containerPort": 80}]}]}, (), id="no-host-port"),
        pytest.param(
            {"containers": [{"ports": [{"hostPort": 80}]}]},
            (HostPort(ANY_ADDRESS, "TCP", 80),),
            id="defaults",
        ),
        pytest.param(
            {
                "containers": [
                    {"ports": [{"hostPort": 53, "hostIP": "10.0.0.1", "protocol": "UDP"}]}
                ]
            },
            (HostPort("10.0.0.1", "UDP", 53),),
            id="all-named",
        ),
        pytest.param({"initContainers": [{"ports": [{"hostPort": 80}]}]}, (), id="init-container"),
        pytest.param(
            {"initContainers": [{"restartPolicy": "Always", "ports": [{"hostPort": 80}]}]},
            (HostPort(ANY_ADDRESS, "TCP", 80),),
            id="sidecar",
        ),
    ],
)
def test_host_ports_of(spec: dict[str, object], expected: tuple[HostPort, ...]) -> None:
    """Containers and sidecars count, init containers and ports without a host port do not."""
    assert expected == host_ports_of(make_pod(containers=[], spec=spec).spec)
