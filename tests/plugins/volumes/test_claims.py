"""The claims of pods, and which pods the changes of claims may concern."""

from __future__ import annotations

import pytest

from kubesched.plugins.volumes.claims import BY_CLAIM, after_claim_change, after_named_claim_change
from kubesched.testing.builders import make_pod
from tests.plugins.volume_objects import claim_volumes, make_claim


@pytest.mark.parametrize("name", ["a", "b", "p-e", "other"])
@pytest.mark.parametrize("namespace", ["default", "elsewhere"])
def test_pods_are_filed_by_the_claims_whose_changes_queue_them(namespace: str, name: str) -> None:
    """By those that they name, and by those of their ephemeral volumes."""
    volumes: list[dict[str, object]] = [*claim_volumes("a", "b"), {"name": "e", "ephemeral": {}}]
    pod = make_pod("p", volumes=volumes)
    new = make_claim(name, metadata={"namespace": namespace})
    found = set(BY_CLAIM.of_change(None, new) or ()) & set(BY_CLAIM.of_pod(pod))
    assert after_claim_change(pod, None, new) == bool(found)
    assert after_named_claim_change(pod, None, new) == (bool(found) and name != "p-e")


def test_other_changes_concern_all_pods() -> None:
    """As for the hints."""
    assert BY_CLAIM.of_change(None, None) is None
    assert after_claim_change(make_pod("p"), None, None)
