"""Streams of random numbers: independent, repeatable."""

from __future__ import annotations

import subprocess
import sys

from kubesched.simulator.random_streams import RandomStreams


def test_same_seed_same_stream() -> None:
    """A stream depends on seed and name alone."""
    draws = [RandomStreams(7).stream("arrivals").random() for _ in range(2)]
    assert draws[0] == draws[1]
    assert draws[0] != RandomStreams(8).stream("arrivals").random()
    assert draws[0] != RandomStreams(7).stream("faults").random()


def test_drawing_in_one_moves_no_other() -> None:
    """One more draw in a stream leaves the others as they are."""
    quiet, busy = RandomStreams(1), RandomStreams(1)
    for _ in range(100):
        busy.stream("a").random()
    assert quiet.stream("b").random() == busy.stream("b").random()


def test_asking_again_goes_on() -> None:
    """A stream is handed out where it stands."""
    random_streams = RandomStreams(1)
    first = random_streams.stream("a").random()
    assert first != random_streams.stream("a").random()
    assert random_streams.stream("a") is random_streams.stream("a")


def test_hash_seed_does_not_matter() -> None:
    """The numbers are the same under any PYTHONHASHSEED."""
    code = (
        "from kubesched.simulator.random_streams import RandomStreams;"
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
