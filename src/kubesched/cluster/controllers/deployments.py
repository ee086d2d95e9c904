"""DeploymentController keeps a ReplicaSet per template of each Deployment, and rolls out changes.

Upstream: pkg/controller/deployment (v1.36)
Differs:  a deployment that is scaled while it rolls is not scaled in proportion; progress has no
          deadline; the hash in names of replica sets differs from upstream's.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec

from kubesched.api.well_known import TEMPLATE_HASH
from kubesched.cluster.controllers.owner_controller import (
    ObjectsController,
    scaled,
    with_conditions,
)
from kubesched.cluster.server import Plain, key_of_plain
from kubesched.cluster.store import Key

REVISION: Final = "deployment.kubernetes.io/revision"
_SETS: Final = "replicasets.apps"
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH: Final = 10


class DeploymentController(ObjectsController):
    """Reconciles Deployments."""

    kind = "deployments.apps"
    owner_kind = "Deployment"
    owned = _SETS

    def reconcile(self, key: Key, owner: Plain) -> None:
        """Create the ReplicaSet of the template, and scale it up step by step."""
        sets = self._sets(owner)
        new = next((one for one in sets if _hash_of(one) == template_hash(owner)), None)
        if new is None and not owner["spec"].get("paused"):
            new = self._create(owner, sets)
        if new is not None:
            self._mark_newest(owner, new, sets)
            self._scale(owner, new)
            self._clean_up(owner, new)
        self._count(key, owner, new)

    def _sets(self, owner: Plain) -> list[Plain]:
        found = self.owned_by(owner)
        return [one for one in found if not one["metadata"].get("deletionTimestamp")]

    def _create(self, owner: Plain, sets: list[Plain]) -> Plain:
        revision = 1 + max((_revision_of(one) for one in sets), default=0)
        wanted = current_replica_set(owner)
        wanted["metadata"]["annotations"] = {REVISION: str(revision)}
        return self.create_owned(owner, wanted)

    def _mark_newest(self, owner: Plain, new: Plain, sets: list[Plain]) -> None:
        """Give the current template the highest revision, on both objects."""
        others = [_revision_of(one) for one in sets if one is not new]
        newest = max(others, default=0)
        revision = _revision_of(new)
        if revision <= newest:
            revision = newest + 1
            self.server.annotate(key_of_plain(_SETS, new), REVISION, str(revision))
        self.server.annotate(key_of_plain(self.kind, owner), REVISION, str(revision))

    # Rolling out.

    def _scale(self, owner: Plain, new: Plain) -> None:
        spec = owner["spec"]
        sets = self._sets(owner)
        new = next(one for one in sets if _uid(one) == _uid(new))
        old = [one for one in sets if one is not new]
        wanted = spec.get("replicas", 1)
        if spec.get("strategy", {}).get("type") == "Recreate":
            for one in old:
                self._resize(one, 0)
            is_free = not any(_counted(one, "replicas") for one in old)
            self._resize(new, wanted if is_free else 0)
            return
        surge, unavailable = _limits(spec, wanted)
        if not spec.get("paused") or not any(map(_replicas, old)):
            total = sum(map(_replicas, sets))
            room = max(wanted + surge - total, 0)
            self._resize(new, min(wanted, _replicas(new) + room))
        if not spec.get("paused"):
            self._shrink(owner, new, wanted - unavailable)

    def _shrink(self, owner: Plain, new: Plain, least: int) -> None:
        """Scale old ReplicaSets down, those with unavailable pods first."""
        sets = self._sets(owner)
        [new] = [one for one in sets if _uid(one) == _uid(new)]
        old = [one for one in sets if one is not new]
        total = sum(map(_replicas, sets))
        coming = max(_replicas(new) - _available(new), 0)
        budget = total - least - coming
        left = {_uid(one): _replicas(one) for one in old}
        for one in old:
            part = min(max(left[_uid(one)] - _available(one), 0), max(budget, 0))
            left[_uid(one)] -= part
            budget -= part
        spare = min(budget, sum(map(_available, sets)) - least)
        for one in old:
            part = min(left[_uid(one)], max(spare, 0))
            left[_uid(one)] -= part
            spare -= part
        for one in old:
            self._resize(one, left[_uid(one)])

    def _resize(self, replica_set: Plain, replicas: int) -> None:
        if _replicas(replica_set) != replicas:
            self.server.scale(key_of_plain(_SETS, replica_set), replicas)

    def _clean_up(self, owner: Plain, new: Plain) -> None:
        limit = owner["spec"].get("revisionHistoryLimit", 10)
        idle = [
            one
            for one in self._sets(owner)
            if _uid(one) != _uid(new) and not _replicas(one) and not _counted(one, "replicas")
        ]
        idle.sort(key=_revision_of)
        for one in idle[: max(len(idle) - limit, 0)]:
            self.delete_owned(one)

    # Status.

    def _count(self, key: Key, owner: Plain, new: Plain | None) -> None:
        sets = self._sets(owner)
        newest = [one for one in sets if new is not None and _uid(one) == _uid(new)]
        wanted = owner["spec"].get("replicas", 1)
        replicas = sum(_counted(one, "replicas") for one in sets)
        updated = sum(_counted(one, "replicas") for one in newest)
        available = sum(map(_available, sets))
        _, unavailable = _limits(owner["spec"], wanted)
        name = newest[0]["metadata"]["name"] if newest else ""
        conditions = _conditions(
            name,
            is_enough=available >= wanted - unavailable,
            is_done=updated == replicas == available == wanted,
        )
        now, before = self.server.timestamp(), owner.get("status", {})
        self.write_status(
            key,
            {
                "replicas": replicas,
                "updatedReplicas": updated,
                "readyReplicas": sum(_counted(one, "readyReplicas") for one in sets),
                "availableReplicas": available,
                "unavailableReplicas": max(sum(map(_replicas, sets)) - available, 0),
                "conditions": with_conditions(before, conditions, now),
            },
        )


def current_replica_set(deployment: Plain) -> Plain:
    """Return the ReplicaSet of a Deployment's current template, with 0 replicas."""
    spec = deployment["spec"]
    named = template_hash(deployment)
    label = {TEMPLATE_HASH: named}
    metadata = spec["template"].get("metadata", {})
    labels = {**metadata.get("labels", {}), **label}
    selector = spec.get("selector", {})
    matched = {**selector.get("matchLabels", {}), **label}
    return {
        "metadata": {
            "name": f"{deployment['metadata']['name']}-{named}",
            "labels": labels,
        },
        "spec": {
            "replicas": 0,
            "minReadySeconds": spec.get("minReadySeconds", 0),
            "selector": {**selector, "matchLabels": matched},
            "template": {**spec["template"], "metadata": {**metadata, "labels": labels}},
        },
    }


def template_hash(workload: Plain) -> str:
    """Return a hash of the template of a workload's pods."""
    digest = sha256(msgspec.json.encode(workload["spec"]["template"], order="sorted")).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:_HASH_LENGTH])


def _hash_of(replica_set: Plain) -> str:
    return str(replica_set["metadata"].get("labels", {}).get(TEMPLATE_HASH, ""))


def _revision_of(replica_set: Plain) -> int:
    text = replica_set["metadata"].get("annotations", {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _uid(obj: Plain) -> str:
    return str(obj["metadata"]["uid"])


def _replicas(replica_set: Plain) -> int:
    return int(replica_set["spec"].get("replicas", 1))


def _available(replica_set: Plain) -> int:
    return _counted(replica_set, "availableReplicas")


def _counted(replica_set: Plain, field: str) -> int:
    """Return a number of its status."""
    return int(replica_set.get("status", {}).get(field, 0))


def _limits(spec: Plain, wanted: int) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable as numbers of pods."""
    strategy = spec.get("strategy", {})
    if strategy.get("type") == "Recreate":
        return 0, wanted
    rolling = strategy.get("rollingUpdate", {})
    surge = scaled(rolling.get("maxSurge", "25%"), wanted)
    unavailable = scaled(rolling.get("maxUnavailable", "25%"), wanted, rounds_up=False)
    if not surge and not unavailable:
        unavailable = 1
    return surge, min(unavailable, wanted)


def _conditions(newest: str, *, is_enough: bool, is_done: bool) -> list[Plain]:
    """Return the conditions of a Deployment; `newest` is the name of its newest ReplicaSet."""
    has = "has" if is_enough else "does not have"
    does = "has successfully progressed" if is_done else "is progressing"
    return [
        {
            "type": "Available",
            "status": "True" if is_enough else "False",
            "reason": f"MinimumReplicas{'Available' if is_enough else 'Unavailable'}",
            "message": f"Deployment {has} minimum availability.",
        },
        {
            "type": "Progressing",
            "status": "True",
            "reason": "NewReplicaSetAvailable" if is_done else "ReplicaSetUpdated",
            "message": f'ReplicaSet "{newest}" {does}.',
        },
    ]
