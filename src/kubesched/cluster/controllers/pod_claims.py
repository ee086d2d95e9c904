"""PodClaimController creates claims for the ephemeral volumes and the devices of single pods.

Upstream: pkg/controller/volume/ephemeral, pkg/controller/resourceclaim (v1.36)
Differs:  claims on devices go with their pod only; reservations of pods that have ended stay until
          the pod is deleted.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.core import Pod
from kubesched.cluster.controllers.indexes import with_owner
from kubesched.cluster.controllers.work_queue import Following, WorkQueue
from kubesched.cluster.kubelets import FINISHED
from kubesched.cluster.server import AnyKindServer, Plain
from kubesched.cluster.store import Key

_VOLUME_CLAIMS: Final = "persistentvolumeclaims"
_DEVICE_CLAIMS: Final = "resourceclaims.resource.k8s.io"
_TEMPLATES: Final = "resourceclaimtemplates.resource.k8s.io"
_POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"


class PodClaimController(Following):
    """Reconciles pods with ephemeral volumes or claim templates."""

    def __init__(self, server: AnyKindServer) -> None:
        """Set up; nothing happens before `start`."""
        self._server = server
        self._queue = WorkQueue(self._reconcile)
        self._waiting: dict[Key, None] = {}
        self._followed = [server.watch(Pod, self._pod_changed)]
        if _TEMPLATES in server.kinds():
            self._followed.append(server.follow(_TEMPLATES, self._template_changed))

    def _pod_changed(self, key: Key, _before: Pod | None, after: Pod | None) -> None:
        if after is None:
            self._waiting.pop(key, None)
        elif after.spec.resource_claims or any(one.ephemeral for one in after.spec.volumes):
            self._queue.add(key)

    def _template_changed(self, _key: Key, _before: Plain | None, after: Plain | None) -> None:
        if after is not None:
            for key in self._waiting:
                self._queue.add(key)

    def _reconcile(self, key: Key) -> None:
        pod = self._server.read(Pod, key.namespace, key.name)
        plain = self._server.find(*key)
        self._waiting.pop(key, None)
        if (
            pod is None
            or plain is None
            or pod.metadata.deletion_timestamp
            or pod.status.phase in FINISHED
        ):
            return
        for volume in plain["spec"].get("volumes", ()):
            if "ephemeral" in volume:
                name = f"{key.name}-{volume['name']}"
                self._create_volume_claim(plain, name, volume["ephemeral"]["volumeClaimTemplate"])
        self._create_device_claims(key, plain)

    def _create_volume_claim(self, pod: Plain, name: str, template: Plain) -> None:
        if self._server.find(_VOLUME_CLAIMS, pod["metadata"]["namespace"], name) is None:
            metadata = {**template.get("metadata", {}), "name": name}
            claim = with_owner(pod, {"metadata": metadata, "spec": template["spec"]})
            self._server.create(_VOLUME_CLAIMS, claim)

    def _create_device_claims(self, key: Key, pod: Plain) -> None:
        status = pod.get("status", {})
        found = {one["name"]: one for one in status.get("resourceClaimStatuses", ())}
        known = len(found)
        for asked in pod["spec"].get("resourceClaims", ()):
            template_name = asked.get("resourceClaimTemplateName")
            if not template_name or asked["name"] in found:
                continue
            template = self._server.find(_TEMPLATES, key.namespace, template_name)
            if template is None:
                self._waiting[key] = None
                continue
            claim = self._create_device_claim(pod, asked["name"], template["spec"])
            name = claim["metadata"]["name"]
            found[asked["name"]] = {"name": asked["name"], "resourceClaimName": name}
        if len(found) > known:
            statuses = list(found.values())
            self._server.patch_status(key, {**status, "resourceClaimStatuses": statuses})

    def _create_device_claim(self, pod: Plain, name: str, template: Plain) -> Plain:
        given = template.get("metadata", {})
        metadata = {
            **given,
            "generateName": f"{pod['metadata']['name']}-{name}-",
            "annotations": {**given.get("annotations", {}), _POD_CLAIM_NAME: name},
        }
        claim = with_owner(pod, {"metadata": metadata, "spec": template["spec"]})
        return self._server.create(_DEVICE_CLAIMS, claim)
