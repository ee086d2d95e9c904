"""One browser for all tests of a process, and the pages that several tests look at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from kubesched import Cluster
from kubesched.page.render import render
from tests.page.browsing import browser, chromium
from tests.page.clusters import cluster

_MISSING = "there is no chromium; Debian's package of that name has it"


@pytest.fixture(scope="module")
def window() -> Iterator[BrowserContext]:
    """A headless Chromium; tests that need one are skipped without it, but not in CI.

    While it runs, this thread can run no event loop: simulate before, or in another thread.
    """
    if not chromium():
        if os.environ.get("CI"):
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    with browser() as found:
        yield found


@pytest.fixture(scope="session")
def map_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a cluster with 120 nodes."""
    file = tmp_path_factory.mktemp("page") / "map.html"
    view = Cluster.from_objects(cluster(120, 900)).view()
    file.write_text(render([view], "kubesched top"), encoding="utf-8")
    return file
