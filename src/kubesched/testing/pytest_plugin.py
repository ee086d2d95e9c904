"""Fixtures of pytest: clusters in the test's process.

Load them in the `conftest.py` at the root of your tests:

    pytest_plugins = ["kubesched.testing.pytest_plugin"]

The package does not register them as a pytest plugin: pytest would then rewrite the asserts of all
of kubesched wherever it is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kubesched.testing.sandbox_cluster import SandboxCluster


@pytest.fixture
def kubesched_cluster_factory() -> Iterator[Callable[..., SandboxCluster]]:
    """Start clusters; arguments are those of `kubesched.testing.SandboxCluster`.

    All of them are stopped after the test.
    """
    with ExitStack() as started:

        def start(**options: Any) -> SandboxCluster:
            # Imported on first use, so that tests without a cluster start fast.
            from kubesched.testing.sandbox_cluster import SandboxCluster  # noqa: PLC0415

            return started.enter_context(SandboxCluster(**options))

        yield start


@pytest.fixture
def kubesched_cluster(kubesched_cluster_factory: Callable[..., SandboxCluster]) -> SandboxCluster:
    """A cluster of three nodes with scheduler and controllers, for one test."""
    return kubesched_cluster_factory()
