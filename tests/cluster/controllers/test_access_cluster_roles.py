"""Aggregated roles have the rules of the roles that they select."""

from __future__ import annotations

import asyncio
from typing import Any

from kubesched.cluster.store import Key
from tests.cluster.sandbox_world import World
from tests.cluster.test_controllers import controlled

KIND = "clusterroles.rbac.authorization.k8s.io"


def _add_role(world: World, name: str, resource: str, **labels: str) -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": [resource]}
    world.client.create(KIND, {"metadata": {"name": name, "labels": labels}, "rules": [rule]})


def _resources(world: World) -> list[Any]:
    role = world.client.find(KIND, "", "all")
    assert role is not None
    return [resource for rule in role.get("rules") or () for resource in rule["resources"]]


@controlled
async def test_aggregated_rules_follow_the_selected_roles(world: World) -> None:
    """When roles are added and deleted; others do not matter."""
    selectors = [{"matchLabels": {"to": "all"}}]
    rule = {"aggregationRule": {"clusterRoleSelectors": selectors}, "rules": []}
    world.client.create(KIND, {"metadata": {"name": "all"}, **rule})
    seen = []
    for name, resource in (("a", "pods"), ("b", "nodes")):
        _add_role(world, name, resource, to="all")
        _add_role(world, f"not-{name}", "secrets")
        await asyncio.sleep(1)
        seen.append(_resources(world))
    world.client.delete(Key(KIND, "", "a"))
    await asyncio.sleep(1)
    assert [["pods"], ["pods", "nodes"], ["nodes"]] == [*seen, _resources(world)]
