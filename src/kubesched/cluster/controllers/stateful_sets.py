"""StatefulSetController keeps the pods of each StatefulSet, with stable names and claims.

Upstream: pkg/controller/statefulset (v1.36)
Differs:  revisions are not kept, so rollbacks are impossible and a partition keeps existing pods
          only; claims are never deleted; maxUnavailable is not supported.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.core import FINISHED, Pod
from kubesched.cluster.controllers.controller import BURST, PodsController, pod_of
from kubesched.cluster.controllers.deployments import template_hash
from kubesched.cluster.server import AnyKindServer, Plain
from kubesched.cluster.store import Key

_CLAIMS: Final = "persistentvolumeclaims"
_REVISION: Final = "controller-revision-hash"
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"


class StatefulSetController(PodsController):
    """Reconciles StatefulSets."""

    kind = "statefulsets.apps"
    owner_kind = "StatefulSet"
    written_zeros = ("replicas", "availableReplicas")
    server: AnyKindServer

    def reconcile(self, key: Key, owner: Plain) -> None:
        """Create, delete or replace the next pod, or several with parallel pod management."""
        self.claim(owner)
        pods = self._members(owner)
        start = owner["spec"].get("ordinals", {}).get("start", 0)
        wanted = range(start, start + owner["spec"].get("replicas", 1))
        try:
            if self._complete(key, owner, pods, wanted) and self._shrink(owner, pods, wanted):
                self._roll(owner, pods, wanted)
        finally:
            self._count(key, owner)

    def is_own(self, owner: Plain, pod: Pod, is_selected: bool) -> bool:
        """Whether an owner adopts or keeps a pod: its name must be one of its pods', too."""
        return is_selected and _ordinal_of(pod, owner) is not None

    def _members(self, owner: Plain) -> dict[int, Pod]:
        """Return the pods by ordinal, without those that have names of other pods."""
        pods = ((_ordinal_of(pod, owner), pod) for pod in self.pods.of(owner))
        return {ordinal: pod for ordinal, pod in pods if ordinal is not None}

    def _complete(self, key: Key, owner: Plain, pods: dict[int, Pod], wanted: range) -> bool:
        """Create missing pods; return whether to go on to the others."""
        is_parallel = _is_parallel(owner)
        created = 0
        for ordinal in wanted:
            pod = pods.get(ordinal)
            if pod is None:
                self._create(owner, ordinal)
                created += 1
                if created == BURST:
                    self._enqueue(key)
                    return False
            elif pod.status.phase in FINISHED and not pod.metadata.deletion_timestamp:
                self.pods.delete(pod)
            elif self._is_available(key, owner, pod):
                continue
            if not is_parallel:
                return False
        return True

    def _create(self, owner: Plain, ordinal: int) -> None:
        for claim in claims_of(owner, ordinal):
            metadata = claim["metadata"]
            if self.server.find(_CLAIMS, metadata["namespace"], metadata["name"]) is None:
                self.server.create(_CLAIMS, claim)
        self.pods.create(owner, pod_at(owner, ordinal))

    def _shrink(self, owner: Plain, pods: dict[int, Pod], wanted: range) -> bool:
        """Delete surplus pods, the last one first; return whether none is left."""
        surplus = [pods[ordinal] for ordinal in sorted(pods, reverse=True) if ordinal not in wanted]
        for pod in surplus:
            if not pod.metadata.deletion_timestamp:
                self.pods.delete(pod)
            if not _is_parallel(owner):
                return False
        return not surplus

    def _roll(self, owner: Plain, pods: dict[int, Pod], wanted: range) -> None:
        """Delete the last pod of another template, once all after it are available."""
        strategy = owner["spec"].get("updateStrategy", {})
        if strategy.get("type") == "OnDelete":
            return
        partition = strategy.get("rollingUpdate", {}).get("partition", 0)
        for ordinal in reversed(wanted[partition:]):
            pod = pods.get(ordinal)
            if pod is None or pod.metadata.deletion_timestamp:
                return
            if pod.metadata.labels.get(_REVISION) != _revision_of(owner):
                self.pods.delete(pod)
                return
            if self.unavailable_seconds(owner, pod) != 0:
                return

    def _is_available(self, key: Key, owner: Plain, pod: Pod) -> bool:
        if pod.metadata.deletion_timestamp:
            return False
        wait = self.unavailable_seconds(owner, pod)
        if wait:
            self._enqueue_after(key, wait)
        return wait == 0

    def _count(self, key: Key, owner: Plain) -> None:
        pods = list(self._members(owner).values())
        waits = [self.unavailable_seconds(owner, pod) for pod in pods]
        revision = _revision_of(owner)
        updated = sum(pod.metadata.labels.get(_REVISION) == revision for pod in pods)
        is_done = updated == len(pods)
        current = owner.get("status", {}).get("currentRevision", revision)
        self.update_status(
            key,
            {
                "replicas": len(pods),
                "readyReplicas": sum(wait is not None for wait in waits),
                "availableReplicas": waits.count(0.0),
                "currentReplicas": updated if is_done else len(pods) - updated,
                "updatedReplicas": updated,
                "currentRevision": revision if is_done else current,
                "updateRevision": revision,
            },
        )


def pod_at(owner: Plain, ordinal: int) -> Plain:
    """Return the pod of a StatefulSet with an ordinal."""
    spec, name = owner["spec"], owner["metadata"]["name"]
    pod_name = f"{name}-{ordinal}"
    pod = pod_of(spec["template"], name)
    metadata = {**pod["metadata"], "name": pod_name}
    del metadata["generateName"]
    metadata["labels"] = {
        **metadata.get("labels", {}),
        _POD_NAME: pod_name,
        _POD_INDEX: str(ordinal),
        _REVISION: _revision_of(owner),
    }
    pod_spec = {**pod["spec"], "hostname": pod_name}
    if spec.get("serviceName"):
        pod_spec["subdomain"] = spec["serviceName"]
    own = [template["metadata"]["name"] for template in spec.get("volumeClaimTemplates", ())]
    if own:
        others = [one for one in pod_spec.get("volumes", ()) if one["name"] not in own]
        pod_spec["volumes"] = [
            *others,
            *(
                {"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{pod_name}"}}
                for volume in own
            ),
        ]
    return {"metadata": metadata, "spec": pod_spec}


def claims_of(owner: Plain, ordinal: int) -> list[Plain]:
    """Return the claims of the pod of a StatefulSet with an ordinal."""
    spec, metadata = owner["spec"], owner["metadata"]
    labels = spec.get("selector", {}).get("matchLabels", {})
    return [
        {
            "metadata": {
                "name": f"{template['metadata']['name']}-{metadata['name']}-{ordinal}",
                "namespace": metadata["namespace"],
                "labels": {**template["metadata"].get("labels", {}), **labels},
                "annotations": template["metadata"].get("annotations", {}),
            },
            "spec": template["spec"],
        }
        for template in spec.get("volumeClaimTemplates", ())
    ]


def _is_parallel(owner: Plain) -> bool:
    return bool(owner["spec"].get("podManagementPolicy") == "Parallel")


def _ordinal_of(pod: Pod, owner: Plain) -> int | None:
    """Return the number in the pod's name; None if it is not a name of this StatefulSet's pods."""
    name, _, ordinal = pod.metadata.name.rpartition("-")
    is_own = name == owner["metadata"]["name"] and ordinal.isdecimal() and ordinal.isascii()
    return int(ordinal) if is_own else None


def _revision_of(owner: Plain) -> str:
    return f"{owner['metadata']['name']}-{template_hash(owner)}"
