"""Every rule of a completed configuration, with upstream's text and path."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import read_configuration
from kubesched.config.types import API_VERSION, KIND

_CASES = yaml.safe_load(
    (Path(__file__).parent / "testdata" / "validation.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["name"])
def test_rules(case: dict[str, Any]) -> None:
    """A configuration has these errors, or none."""
    given = {"apiVersion": API_VERSION, "kind": KIND, **case["given"]}
    _, errors = read_configuration(given, FeatureGates())
    assert case.get("errors", []) == list(map(str, errors))
