"""Fixtures for the tests of the queue."""

from __future__ import annotations

import pytest

from .scene import Scene


@pytest.fixture
def scene() -> Scene:
    """An empty queue."""
    return Scene()
