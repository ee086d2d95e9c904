"""How all tests run: no time limits per example, and in CI the same examples every time."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from kubesched.api import scheme

# Reports are wrapped, as on a terminal.
os.environ["COLUMNS"] = "80"

# A shell makes what it starts in the background ignore Ctrl-C; tests that send it would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["kubesched.testing.pytest_plugin"]

# A busy machine is not a bug; what takes long is marked slow and measured in benchmarks.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one process more than there are cores, for some tests wait."""
    return (os.cpu_count() or 1) + 1


# Little of what tests make is garbage in cycles.
gc.set_threshold(50_000)


@pytest.fixture(autouse=True)
def _no_custom_kinds() -> Iterator[None]:
    """Forget the custom resources that a test's plugins declare."""
    yield
    scheme._CUSTOM.clear()


def pytest_collection_finish() -> None:
    """Never visit what is there before the first test when garbage is collected."""
    gc.freeze()
