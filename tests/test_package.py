"""The package as a whole."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest


def test_nothing_is_printed_without_logging_set_up() -> None:
    """Logged errors do not appear on stderr."""
    code = "import logging, kubesched; logging.getLogger('kubesched.x').error('words')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - our own command
    assert b"" == done.stderr


@pytest.mark.parametrize("package", ["kubesched", "kubesched.testing"])
def test_public_names_are_listed(package: str) -> None:
    """`dir` has them before they are imported, for completion in a shell or notebook."""
    module = importlib.import_module(package)
    assert sorted(module.__all__) == dir(module)
