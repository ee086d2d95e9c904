"""Random streams are independent and repeatable."""

from __future__ import annotations

import subprocess
import sys

from kubesched.simulator.faults import RandomStreams


def test_a_stream_depends_on_seed_and_name() -> None:
    """Equal ones draw equal numbers."""
    draws = [RandomStreams(7).stream("arrivals").random() for _ in range(2)]
    assert draws[0] == draws[1]
    assert draws[0] != RandomStreams(8).stream("arrivals").random()
    assert draws[0] != RandomStreams(7).stream("faults").random()


def test_streams_are_independent() -> None:
    """Draws from one do not change the others."""
    quiet, busy = RandomStreams(1), RandomStreams(1)
    for _ in range(100):
        busy.stream("a").random()
    assert quiet.stream("b").random() == busy.stream("b").random()


def test_a_stream_continues() -> None:
    """The same name returns the same stream."""
    random_streams = RandomStreams(1)
    first = random_streams.stream("a").random()
    assert first != random_streams.stream("a").random()
    assert random_streams.stream("a") is random_streams.stream("a")


def test_numbers_do_not_depend_on_the_hash_seed() -> None:
    """PYTHONHASHSEED does not matter."""
    code = (
        "from kubesched.simulator.faults import RandomStreams;"
        " print(RandomStreams(3).stream('x').random())"
    )
    outputs = {
        subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "src"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert outputs == {f"{RandomStreams(3).stream('x').random()}\n"}
