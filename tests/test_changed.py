"""The choice of tests for a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from .changed import FAST, selection


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a tree with some tests."""
    for name in ("queue/test_gates.py", "queue/test_gates_twin.py", "test_queue.py"):
        file = tmp_path / "tests" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    for at in range(11):
        (tmp_path / "tests" / f"test_many_{at}.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param([], FAST, id="nothing"),
        pytest.param(
            ["src/kubesched/queue/gates.py"],
            ["tests/queue/test_gates.py", "tests/queue/test_gates_twin.py"],
            id="module",
        ),
        pytest.param(["src/kubesched/queue/__init__.py"], ["tests/test_queue.py"], id="package"),
        pytest.param(["src/kubesched/__init__.py"], FAST, id="the-package"),
        pytest.param(["tests/queue/test_gates.py"], ["tests/queue/test_gates.py"], id="test"),
        pytest.param(["tests/queue/test_gone.py"], FAST, id="removed-test"),
        pytest.param(["src/kubesched/queue/moves.py"], FAST, id="module-without-tests"),
        pytest.param(["tests/queue/scene.py"], FAST, id="helper"),
        pytest.param(["tests/test_queue.py", "README.md"], FAST, id="document"),
        pytest.param(["src/kubesched/many.py"], FAST, id="many"),
    ],
)
def test_tests_are_selected_by_name(root: Path, changed: list[str], expected: list[str]) -> None:
    """All fast ones if there are none of the name."""
    assert list(expected) == list(selection(changed, root))
