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
from kubesched.cluster.controllers.controller import (
    ObjectsController,
    controller_of_plain,
    scaled,
    with_conditions,
    with_owner,
)
from kubesched.cluster.server import Plain, key_of_plain
from kubesched.cluster.store import Key

REVISION: Final = "deployment.kubernetes.io/revision"
_OWN_ANNOTATIONS: Final = (REVISION, "kubectl.kubernetes.io/last-applied-configuration")
_SETS: Final = "replicasets.apps"
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH: Final = 10


class DeploymentController(ObjectsController):
    """Reconciles Deployments."""

    kind = "deployments.apps"
    owner_kind = "Deployment"
    written_zeros = ("terminatingReplicas",)
    owned = _SETS

    def reconcile(self, key: Key, owner: Plain) -> None:
        """Create the ReplicaSet of the template, and scale it up step by step."""
        spec, named = owner["spec"], template_hash(owner)
        sets = self._claim(owner)
        if spec.get("paused"):
            sets = self._scaled_while_paused(spec, sets)
        new = next((one for one in sets if _hash_of(one) == named), None)
        old = [one for one in sets if one is not new]
        if new is None and not spec.get("paused"):
            wanted = current_replica_set(owner)
            wanted["metadata"]["annotations"] = {REVISION: str(_newest_revision(old) + 1)}
            found = self.server.find(_SETS, key.namespace, wanted["metadata"]["name"])
            if found is not None and controller_of_plain(found) is None:
                # One that was released has this name.
                collisions = owner.get("status", {}).get("collisionCount", 0) + 1
                self.update_status(key, {"collisionCount": collisions})
                return
            new = self.create_owned(owner, wanted)
        if new is not None:
            self._mark_newest(owner, new, old)
            if not spec.get("paused"):
                new, old = self._scale(spec, new, old)
        self._clean_up(spec, old)
        self._count(key, owner, new, old)

    def _owned_changed(self, key: Key, before: Plain | None, after: Plain | None) -> None:
        super()._owned_changed(key, before, after)
        if after is not None and controller_of_plain(after) is None:
            self.enqueue_selecting(key.namespace, after["metadata"].get("labels", {}))

    def _claim(self, owner: Plain) -> list[Plain]:
        """Adopt and release ReplicaSets; return those that are not being deleted, oldest first."""
        claimed, metadata, selector = [], owner["metadata"], self.selector_of(owner)
        for one in self.server.list(_SETS, metadata["namespace"]):
            controller = controller_of_plain(one)
            is_other = controller is not None and controller["uid"] != metadata["uid"]
            if is_other or one["metadata"].get("deletionTimestamp"):
                continue
            if not selector.matches(one["metadata"].get("labels", {})):
                self.server.disown(key_of_plain(_SETS, one), metadata["uid"])
            elif controller is None:
                adopted = with_owner(owner, one)
                claimed.append(self.server.write(key_of_plain(_SETS, one), adopted))
            else:
                claimed.append(one)
        return claimed

    def _mark_newest(self, owner: Plain, new: Plain, old: list[Plain]) -> None:
        """Give the current template the highest revision, on both objects."""
        revision = str(max(_revision_of(new), _newest_revision(old) + 1))
        self.server.annotate(key_of_plain(_SETS, new), REVISION, revision)
        self.server.annotate(key_of_plain(self.kind, owner), REVISION, revision)
        # `kubectl rollout` shows the cause of a change, and restores all, from the ReplicaSet.
        for name, value in owner["metadata"].get("annotations", {}).items():
            if name not in _OWN_ANNOTATIONS:
                self.server.annotate(key_of_plain(_SETS, new), name, value)

    # Rolling out.

    def _scaled_while_paused(self, spec: Plain, sets: list[Plain]) -> list[Plain]:
        """Scale the ReplicaSet that has pods, or else the newest; several stay as they are."""
        active = [one for one in sets if _replicas(one)] or sorted(sets, key=_revision_of)[-1:]
        if len(active) != 1:
            return sets
        wanted = spec.get("replicas", 1)
        return [self._resized(one, wanted) if one is active[0] else one for one in sets]

    def _scale(self, spec: Plain, new: Plain, old: list[Plain]) -> tuple[Plain, list[Plain]]:
        """Take the next step of a roll-out; return the ReplicaSets as they are then."""
        wanted = spec.get("replicas", 1)
        if spec.get("strategy", {}).get("type") == "Recreate":
            old = [self._resized(one, 0) for one in old]
            is_free = not any(map(_pods_left, old))
            return self._resized(new, wanted if is_free else 0), old
        surge, unavailable = _limits(spec, wanted)
        room = max(wanted + surge - sum(map(_replicas, (new, *old))), 0)
        new = self._resized(new, min(wanted, _replicas(new) + room))
        return new, self._shrunk(new, old, wanted - unavailable)

    def _shrunk(self, new: Plain, old: list[Plain], least: int) -> list[Plain]:
        """Scale old ReplicaSets down, those with unavailable pods first."""
        coming = max(_replicas(new) - _available(new), 0)
        budget = sum(map(_replicas, (new, *old))) - least - coming
        left = []
        for one in old:
            part = min(max(_replicas(one) - _available(one), 0), max(budget, 0))
            left.append(_replicas(one) - part)
            budget -= part
        spare = min(budget, sum(map(_available, (new, *old))) - least)
        for at, replicas in enumerate(left):
            part = min(replicas, max(spare, 0))
            left[at] -= part
            spare -= part
        return [self._resized(one, replicas) for one, replicas in zip(old, left, strict=True)]

    def _resized(self, replica_set: Plain, replicas: int) -> Plain:
        if _replicas(replica_set) == replicas:
            return replica_set
        return self.server.scale(key_of_plain(_SETS, replica_set), replicas)

    def _clean_up(self, spec: Plain, old: list[Plain]) -> None:
        limit = spec.get("revisionHistoryLimit", 10)
        idle = [one for one in old if not _replicas(one) and not _counted(one, "replicas")]
        idle.sort(key=_revision_of)
        for one in idle[: max(len(idle) - limit, 0)]:
            self.delete_owned(one)

    # Status.

    def _count(self, key: Key, owner: Plain, new: Plain | None, old: list[Plain]) -> None:
        newest = [] if new is None else [new]
        sets = [*old, *newest]
        wanted = owner["spec"].get("replicas", 1)
        replicas = sum(_counted(one, "replicas") for one in sets)
        updated = sum(_counted(one, "replicas") for one in newest)
        available = sum(map(_available, sets))
        _, unavailable = _limits(owner["spec"], wanted)
        name = newest[0]["metadata"]["name"] if newest else ""
        conditions = _conditions(
            name,
            is_paused=bool(owner["spec"].get("paused")),
            is_enough=available >= wanted - unavailable,
            is_done=updated == replicas == available == wanted,
        )
        now, before = self.server.timestamp(), owner.get("status", {})
        self.update_status(
            key,
            {
                "replicas": replicas,
                "updatedReplicas": updated,
                "readyReplicas": sum(_counted(one, "readyReplicas") for one in sets),
                "availableReplicas": available,
                "terminatingReplicas": sum(_counted(one, "terminatingReplicas") for one in sets),
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
        "metadata": {"name": f"{deployment['metadata']['name']}-{named}", "labels": labels},
        "spec": {
            "replicas": 0,
            "minReadySeconds": spec.get("minReadySeconds", 0),
            "selector": {**selector, "matchLabels": matched},
            "template": {**spec["template"], "metadata": {**metadata, "labels": labels}},
        },
    }


def template_hash(workload: Plain) -> str:
    """Return a hash of the template of a workload's pods, another one after each collision."""
    collisions = str(workload.get("status", {}).get("collisionCount", ""))
    template = msgspec.json.encode(workload["spec"]["template"], order="sorted")
    digest = sha256(template + collisions.encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:_HASH_LENGTH])


def _hash_of(replica_set: Plain) -> str:
    return str(replica_set["metadata"].get("labels", {}).get(TEMPLATE_HASH, ""))


def _revision_of(replica_set: Plain) -> int:
    text = replica_set["metadata"].get("annotations", {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _newest_revision(sets: list[Plain]) -> int:
    return max(map(_revision_of, sets), default=0)


def _replicas(replica_set: Plain) -> int:
    return int(replica_set["spec"].get("replicas", 1))


def _available(replica_set: Plain) -> int:
    return _counted(replica_set, "availableReplicas")


def _counted(replica_set: Plain, field: str) -> int:
    """Return a number of its status."""
    return int(replica_set.get("status", {}).get(field, 0))


def _pods_left(replica_set: Plain) -> int:
    """Return the number of its pods, with those that are being deleted."""
    return _counted(replica_set, "replicas") + _counted(replica_set, "terminatingReplicas")


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


def _conditions(newest: str, *, is_paused: bool, is_enough: bool, is_done: bool) -> list[Plain]:
    """Return the conditions of a Deployment; `newest` is the name of its newest ReplicaSet."""
    has = "has" if is_enough else "does not have"
    does = "has successfully progressed" if is_done else "is progressing"
    progressing = {
        "status": "True",
        "reason": "NewReplicaSetAvailable" if is_done else "ReplicaSetUpdated",
        "message": f'ReplicaSet "{newest}" {does}.',
    }
    paused = {
        "status": "Unknown",
        "reason": "DeploymentPaused",
        "message": "Deployment is paused",
    }
    return [
        {
            "type": "Available",
            "status": "True" if is_enough else "False",
            "reason": f"MinimumReplicas{'Available' if is_enough else 'Unavailable'}",
            "message": f"Deployment {has} minimum availability.",
        },
        {"type": "Progressing", **(paused if is_paused else progressing)},
    ]
