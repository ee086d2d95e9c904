"""Controllers of claims: they bind claims to volumes, create those of single pods, free devices.

Missing volumes are provisioned in name only: with any provisioner but
`kubernetes.io/no-provisioner` a claim gets a volume of its own; no data is stored anywhere.

Upstream: pkg/controller/volume/{persistentvolume,pvcprotection,pvprotection}; external-provisioner,
          pkg/controller/volume/ephemeral, pkg/controller/resourceclaim (v1.36)
Reads:    claims and volumes, their class, size, access modes, mode and selector; what the scheduler
          wrote: `volume.kubernetes.io/selected-node`, `spec.claimRef`
Differs:  a provisioned volume is reachable from the zone of the selected node, or from everywhere;
          allowed topologies, capacities and expansion are not supported. Reservations of pod groups
          stay until somebody else removes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kubesched.api.codec import encode_json
from kubesched.api.core import FINISHED, Node, Pod
from kubesched.api.meta import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
)
from kubesched.api.quantity import parse_quantity
from kubesched.api.resource import FINALIZER, POD_CLAIM_ANNOTATION
from kubesched.api.selectors import matches_label_selector
from kubesched.api.volume import (
    CSIPersistentVolumeSource,
    HostPathVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from kubesched.api.well_known import (
    BETA_STORAGE_CLASS,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    ZONE,
)
from kubesched.cluster.controllers.controller import (
    Controller,
    KeyIndex,
    controller_of_plain,
    with_owner,
)
from kubesched.cluster.server import AnyKindServer, Plain, annotated, key_of_plain, reference_to
from kubesched.cluster.store import Key

_CLAIMS: Final = "persistentvolumeclaims"
_VOLUMES: Final = "persistentvolumes"
_CLASSES: Final = "storageclasses.storage.k8s.io"
_CLAIM_FINALIZER: Final = "kubernetes.io/pvc-protection"
_VOLUME_FINALIZER: Final = "kubernetes.io/pv-protection"
_IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_DEVICE_CLAIMS: Final = "resourceclaims.resource.k8s.io"
_TEMPLATES: Final = "resourceclaimtemplates.resource.k8s.io"


# Volumes and their claims.


class VolumeController(Controller):
    """Reconciles claims and volumes."""

    server: AnyKindServer

    def __init__(self, server: AnyKindServer) -> None:
        super().__init__(server)
        # Volumes by the claim that they are meant for, None for any; pods by the claims they use.
        self._volumes: KeyIndex[Key | None] = KeyIndex()
        self._pods: KeyIndex[Key] = KeyIndex()
        self._followed = (
            server.follow(_CLASSES, self._class_changed),
            server.follow(_VOLUMES, self._volume_changed),
            server.follow(_CLAIMS, self._claim_changed),
            server.watch(Pod, self._pod_changed),
        )

    # Watching.

    def _class_changed(self, _key: Key, _before: Plain | None, after: Plain | None) -> None:
        if after is not None:
            self._look_at_pending_claims()

    def _volume_changed(self, key: Key, before: Plain | None, after: Plain | None) -> None:
        self._enqueue(key)
        old = None if before is None else _claim_of(before)
        new = None if after is None else _claim_of(after)
        if after is None or old != new:
            self._volumes.drop(old, key)
        if after is not None:
            self._volumes.add(new, key)
            # A volume that is meant for one claim, such as a provisioned one, suits no other.
            if new is None and (before is None or old is not None):
                self._look_at_pending_claims()

    def _look_at_pending_claims(self) -> None:
        for claim in self.server.list(_CLAIMS):
            if not _is_bound(claim):
                self._enqueue(key_of_plain(_CLAIMS, claim))

    def _claim_changed(self, key: Key, before: Plain | None, after: Plain | None) -> None:
        if after is not None:
            self._enqueue(key)
        elif before is not None and before["spec"].get("volumeName"):
            self._enqueue(Key(_VOLUMES, "", before["spec"]["volumeName"]))

    def _pod_changed(self, key: Key, before: Pod | None, after: Pod | None) -> None:
        used = _claims_in_use(after)
        for claim in _claims_in_use(before):
            if claim not in used:
                self._pods.drop(claim, key)
                self._enqueue(claim)
        for claim in used:
            self._pods.add(claim, key)

    def _reconcile(self, key: Key) -> None:
        found = self.server.find(*key)
        if found is None:
            return
        if key.kind == _CLAIMS:
            self._reconcile_claim(key, found)
        else:
            self._reconcile_volume(key, found)

    # Claims.

    def _reconcile_claim(self, key: Key, claim: Plain) -> None:
        if claim["metadata"].get("deletionTimestamp"):
            if not self._pods.of(key):
                self.server.release(key, _CLAIM_FINALIZER)
            return
        if _is_bound(claim):
            return
        name = claim["spec"].get("volumeName")
        if name:
            volume = self.server.find(_VOLUMES, "", name)
            if (
                volume is not None
                and _is_free_for(volume, claim)
                and (volume["spec"].get("claimRef") or _fits(volume, claim))
            ):
                self._bind(key, claim, volume)
            return
        class_ = self._class_of(claim)
        volume = self._volume_for(key, claim, is_delayed=_is_delayed(class_))
        if volume is not None:
            self._bind(key, claim, volume)
        elif class_ is None:
            self._assign_class(key, claim)
        elif class_["provisioner"] != NO_PROVISIONER:
            node_name = claim["metadata"].get("annotations", {}).get(SELECTED_NODE)
            if node_name or not _is_delayed(class_):
                self._bind(key, claim, self._provision(claim, class_, node_name or ""))

    def _assign_class(self, key: Key, claim: Plain) -> None:
        """Give a claim that names no class the default one, if there is one by now."""
        classed = with_default_class(claim, self.server.list(_CLASSES))
        if classed is not claim:
            self.server.write(key, classed)

    def _class_of(self, claim: Plain) -> Plain | None:
        name = claim["spec"].get("storageClassName")
        return self.server.find(_CLASSES, "", name) if name else None

    def _volume_for(self, key: Key, claim: Plain, *, is_delayed: bool) -> Plain | None:
        """Return the volume that waits for a claim; else the smallest that is large enough."""
        waiting = self._free_volumes(key, claim)
        # Without a node the scheduler has not yet chosen between the others.
        others = () if waiting or is_delayed else self._free_volumes(None, claim)
        fitting = (volume for volume in others if _fits(volume, claim))
        return waiting[0] if waiting else min(fitting, key=_size_of, default=None)

    def _free_volumes(self, meant_for: Key | None, claim: Plain) -> list[Plain]:
        found = (self.server.find(*key) for key in self._volumes.of(meant_for))
        return [
            volume
            for volume in found
            if volume is not None
            and not volume["metadata"].get("deletionTimestamp")
            and _is_free_for(volume, claim)
        ]

    def _provision(self, claim: Plain, class_: Plain, node_name: str) -> Plain:
        known = self.server.find(_VOLUMES, "", f"pvc-{claim['metadata']['uid']}")
        if known is not None:
            return known
        volume = provisioned_volume(
            msgspec.convert(claim, PersistentVolumeClaim),
            class_["metadata"]["name"],
            class_["provisioner"],
            self.server.read(Node, "", node_name) if node_name else None,
            reclaim_policy=class_.get("reclaimPolicy", "Delete"),
        )
        return self.server.create(_VOLUMES, msgspec.json.decode(encode_json(volume)))

    def _bind(self, key: Key, claim: Plain, volume: Plain) -> None:
        volume_key = Key(_VOLUMES, "", volume["metadata"]["name"])
        spec = volume["spec"]
        written = {**volume, "spec": {**spec, "claimRef": reference_to(claim)}}
        if not spec.get("claimRef"):
            written["metadata"] = annotated(volume, {BOUND_BY_CONTROLLER: "yes"})
        self.server.write(volume_key, {**written, "status": {"phase": "Bound"}})
        annotations = {BIND_COMPLETED: "yes"}
        if not claim["spec"].get("volumeName"):
            annotations[BOUND_BY_CONTROLLER] = "yes"
        self.server.write(
            key,
            {
                **claim,
                "metadata": annotated(claim, annotations),
                "spec": {**claim["spec"], "volumeName": volume_key.name},
                "status": {
                    **claim.get("status", {}),
                    "phase": "Bound",
                    "accessModes": spec["accessModes"],
                    "capacity": spec["capacity"],
                },
            },
        )

    # Volumes.

    def _reconcile_volume(self, key: Key, volume: Plain) -> None:
        claim_key = _claim_of(volume)
        claim = None if claim_key is None else self.server.find(*claim_key)
        is_mine = (
            claim is not None
            and _is_free_for(volume, claim)
            and claim["spec"].get("volumeName") in {None, "", key.name}
        )
        is_used = is_mine and _is_bound(volume)
        if volume["metadata"].get("deletionTimestamp"):
            if not is_used:
                self.server.release(key, _VOLUME_FINALIZER)
        elif not is_mine and volume["spec"].get("claimRef", {}).get("uid"):
            self._reclaim(key, volume)
        elif not is_used:
            if claim_key is not None and is_mine:
                self._enqueue(claim_key)
            if volume.get("status", {}).get("phase") != "Available":
                self.server.patch_status(key, {**volume.get("status", {}), "phase": "Available"})

    def _reclaim(self, key: Key, volume: Plain) -> None:
        """Delete a volume whose claim is gone, or keep it for its owner."""
        provisioned = _PROVISIONED_BY in volume["metadata"].get("annotations", {})
        if provisioned and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self.server.delete(key, volume["metadata"]["uid"])
        elif volume.get("status", {}).get("phase") != "Released":
            self.server.patch_status(key, {**volume.get("status", {}), "phase": "Released"})


def with_default_class(claim: Plain, classes: Iterable[Plain]) -> Plain:
    """Return a claim that names no class with the default one."""
    annotations = claim["metadata"].get("annotations", {})
    if BETA_STORAGE_CLASS in annotations or claim["spec"].get("storageClassName") is not None:
        return claim
    name = default_class_name(msgspec.convert(one["metadata"], ObjectMeta) for one in classes)
    return claim if name is None else {**claim, "spec": {**claim["spec"], "storageClassName": name}}


def default_class_name(classes: Iterable[ObjectMeta]) -> str | None:
    """Return the name of the newest default class, of several the first by name; None if none."""
    defaults = [one for one in classes if one.annotations.get(_IS_DEFAULT) == "true"]
    defaults.sort(key=lambda metadata: metadata.name)
    newest = max(defaults, key=lambda metadata: metadata.creation_timestamp or "", default=None)
    return None if newest is None else newest.name


def _is_bound(claim_or_volume: Plain) -> bool:
    return bool(claim_or_volume.get("status", {}).get("phase") == "Bound")


def _is_delayed(class_: Plain | None) -> bool:
    return class_ is not None and class_.get("volumeBindingMode") == "WaitForFirstConsumer"


def _claims_in_use(pod: Pod | None) -> list[Key]:
    """Return the claims that a pod uses; none before it has a node or after it has finished."""
    if pod is None or not pod.spec.node_name or pod.status.phase in FINISHED:
        return []
    metadata, names = pod.metadata, []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{metadata.name}-{volume.name}")
    return [Key(_CLAIMS, metadata.namespace, name) for name in names]


def _claim_of(volume: Plain) -> Key | None:
    """Return the claim that a volume is meant for, None if for any."""
    reference = volume["spec"].get("claimRef")
    if not reference:
        return None
    # No claim is without a namespace, so a reference without one is to none.
    return Key(_CLAIMS, reference.get("namespace", ""), reference.get("name", ""))


def _is_free_for(volume: Plain, claim: Plain) -> bool:
    """Whether a volume has no claim, or is meant for this one."""
    uid = volume["spec"].get("claimRef", {}).get("uid", "")
    return _claim_of(volume) in {None, key_of_plain(_CLAIMS, claim)} and (
        uid in {"", claim["metadata"]["uid"]}
    )


def _fits(volume: Plain, claim: Plain) -> bool:
    spec, wanted = volume["spec"], claim["spec"]
    selector = wanted.get("selector")
    if selector and not matches_label_selector(
        msgspec.convert(selector, LabelSelector), volume["metadata"].get("labels", {})
    ):
        return False
    size = parse_quantity(wanted["resources"]["requests"]["storage"])
    return (
        spec.get("storageClassName", "") == (wanted.get("storageClassName") or "")
        and spec.get("volumeMode", "Filesystem") == wanted.get("volumeMode", "Filesystem")
        and set(wanted["accessModes"]) <= set(spec["accessModes"])
        and parse_quantity(spec["capacity"]["storage"]).compare(size) >= 0
    )


def _size_of(volume: Plain) -> int:
    return parse_quantity(volume["spec"]["capacity"]["storage"]).value()


def provisioned_volume(
    claim: PersistentVolumeClaim,
    class_name: str,
    provisioner: str,
    node: Node | None,
    *,
    reclaim_policy: str = "",
) -> PersistentVolume:
    """Return the volume that a provisioner makes for a claim.

    It is reachable from the zone of `node`, the selected one; without a zone from everywhere.
    """
    metadata, spec = claim.metadata, claim.spec
    name = f"pvc-{metadata.uid or metadata.name}"
    # The names of drivers have no slash.
    is_driver = "/" not in provisioner
    zone = None if node is None else node.metadata.labels.get(ZONE)
    affinity = None
    if zone:
        expression = NodeSelectorRequirement(key=ZONE, operator="In", values=(zone,))
        terms = (NodeSelectorTerm(match_expressions=(expression,)),)
        affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
    requests = spec.resources.requests
    return PersistentVolume(
        metadata=ObjectMeta(name=name, annotations={_PROVISIONED_BY: provisioner}),
        spec=PersistentVolumeSpec(
            access_modes=spec.access_modes,
            capacity={"storage": requests["storage"]} if "storage" in requests else {},
            claim_ref=ObjectReference(
                kind="PersistentVolumeClaim",
                api_version="v1",
                namespace=metadata.namespace,
                name=metadata.name,
                uid=metadata.uid,
            ),
            persistent_volume_reclaim_policy=reclaim_policy,
            storage_class_name=class_name,
            volume_mode=spec.volume_mode or "Filesystem",
            node_affinity=affinity,
            csi=CSIPersistentVolumeSource(driver=provisioner, volume_handle=name)
            if is_driver
            else None,
            host_path=None if is_driver else HostPathVolumeSource(path=f"/var/lib/volumes/{name}"),
        ),
    )


# Claims of single pods.


class PodClaimController(Controller):
    """Reconciles pods with ephemeral volumes or claim templates."""

    server: AnyKindServer

    def __init__(self, server: AnyKindServer) -> None:
        super().__init__(server)
        self._waiting: dict[Key, None] = {}
        self._followed = [server.watch(Pod, self._pod_changed)]
        if _TEMPLATES in server.kinds():
            self._followed.append(server.follow(_TEMPLATES, self._template_changed))

    def _pod_changed(self, key: Key, _before: Pod | None, after: Pod | None) -> None:
        if after is None:
            self._waiting.pop(key, None)
        elif has_own_claims(after):
            self._enqueue(key)

    def _template_changed(self, _key: Key, _before: Plain | None, after: Plain | None) -> None:
        if after is not None:
            for key in self._waiting:
                self._enqueue(key)

    def _reconcile(self, key: Key) -> None:
        self._waiting.pop(key, None)
        pod = self.server.find(*key)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        if pod.get("status", {}).get("phase") in FINISHED:
            return
        for claim in volume_claims_of(pod):
            if self.server.find(*key_of_plain(_CLAIMS, claim)) is None:
                self.server.create(_CLAIMS, claim)
        self._create_device_claims(key, pod)

    def _create_device_claims(self, key: Key, pod: Plain) -> None:
        status = pod.get("status", {})
        found = {one["name"]: one for one in status.get("resourceClaimStatuses", ())}
        known = len(found)
        try:
            for asked in pod["spec"].get("resourceClaims", ()):
                template_name = asked.get("resourceClaimTemplateName")
                if not template_name or asked["name"] in found:
                    continue
                template = self.server.find(_TEMPLATES, key.namespace, template_name)
                if template is None:
                    self._waiting[key] = None
                    continue
                claim = device_claim_of(pod, asked["name"], template)
                name = self.server.create(_DEVICE_CLAIMS, claim)["metadata"]["name"]
                found[asked["name"]] = {"name": asked["name"], "resourceClaimName": name}
        finally:
            # Otherwise, each attempt after a refused claim would create the others again.
            if len(found) > known:
                statuses = list(found.values())
                self.server.patch_status(key, {**status, "resourceClaimStatuses": statuses})


def has_own_claims(pod: Pod) -> bool:
    """Whether a pod may have claims that are created for it alone."""
    return bool(pod.spec.resource_claims) or any(one.ephemeral for one in pod.spec.volumes)


def volume_claims_of(pod: Plain) -> list[Plain]:
    """Return the claims of a pod's ephemeral volumes."""
    found = []
    for volume in pod["spec"].get("volumes", ()):
        template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
        if template is not None:
            name = f"{pod['metadata']['name']}-{volume['name']}"
            metadata = {**template.get("metadata", {}), "name": name}
            found.append(with_owner(pod, {"metadata": metadata, "spec": template.get("spec", {})}))
    return found


def device_claim_of(pod: Plain, name: str, template: Plain) -> Plain:
    """Return the ResourceClaim for a pod's `spec.resourceClaims` entry of a name."""
    spec = template.get("spec", {})
    given = spec.get("metadata", {})
    metadata = {
        **given,
        "generateName": f"{pod['metadata']['name']}-{name}-",
        "annotations": {**given.get("annotations", {}), POD_CLAIM_ANNOTATION: name},
    }
    return with_owner(pod, {"metadata": metadata, "spec": spec.get("spec", {})})


# Devices.


class ResourceClaimController(Controller):
    """Frees the devices of ResourceClaims that no pod needs, and deletes those of ended pods."""

    server: AnyKindServer

    def __init__(self, server: AnyKindServer) -> None:
        super().__init__(server)
        # Claims by the UIDs of pods that they are reserved for, or were created for.
        self._claims: KeyIndex[str] = KeyIndex()
        self._followed = [server.watch(Pod, self._pod_changed)]
        if _DEVICE_CLAIMS in server.kinds():
            self._followed.append(server.follow(_DEVICE_CLAIMS, self._claim_changed))

    def _pod_changed(self, _key: Key, before: Pod | None, after: Pod | None) -> None:
        if before is not None and (after is None or _is_done(after)):
            for key in self._claims.of(before.metadata.uid):
                self._enqueue(key)

    def _claim_changed(self, key: Key, before: Plain | None, after: Plain | None) -> None:
        for uid in _pod_uids(before):
            self._claims.drop(uid, key)
        for uid in _pod_uids(after):
            self._claims.add(uid, key)
        if after is not None:
            self._enqueue(key)

    def _reconcile(self, key: Key) -> None:
        claim = self.server.find(*key)
        if claim is None:
            return
        status = claim.get("status", {})
        reserved = status.get("reservedFor", [])
        users = [one for one in reserved if self._is_in_use(key.namespace, one)]
        if users:
            if users != reserved:
                self.server.patch_status(key, {**status, "reservedFor": users})
        elif reserved or claim["metadata"].get("deletionTimestamp"):
            free = {name: status[name] for name in status if name not in _OF_ALLOCATED}
            if free != status:
                self.server.patch_status(key, free)
            self.server.release(key, FINALIZER)
        elif (owner := _owning_pod(claim)) is not None:
            pod = self.server.read(Pod, key.namespace, owner["name"])
            # The garbage collector deletes the claims of pods that are gone.
            if pod is not None and pod.metadata.uid == owner["uid"] and _is_done(pod):
                self.server.delete(key, claim["metadata"]["uid"])

    def _is_in_use(self, namespace: str, user: Plain) -> bool:
        """Whether a user of a claim needs it; of users that are not pods, that is not known."""
        if user["resource"] != "pods" or user.get("apiGroup"):
            return True
        pod = self.server.read(Pod, namespace, user["name"])
        return pod is not None and pod.metadata.uid == user["uid"] and not _is_done(pod)


_OF_ALLOCATED: Final = ("allocation", "devices", "reservedFor")


def _pod_uids(claim: Plain | None) -> set[str]:
    if claim is None:
        return set()
    uids = {one["uid"] for one in claim.get("status", {}).get("reservedFor", ())}
    owner = _owning_pod(claim)
    return uids if owner is None else uids | {owner["uid"]}


def _owning_pod(claim: Plain) -> Plain | None:
    """Return the reference to the pod that a claim was created for, None if there is none."""
    owner = controller_of_plain(claim)
    return owner if owner is not None and owner["kind"] == "Pod" else None


def _is_done(pod: Pod) -> bool:
    """Whether a pod will not run any more."""
    is_dropped = bool(pod.metadata.deletion_timestamp) and not pod.spec.node_name
    return pod.status.phase in FINISHED or is_dropped
