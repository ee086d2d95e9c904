"""Translates in-tree volumes to the CSI volumes that replace them.

Upstream: staging/src/k8s.io/csi-translation-lib (v1.36)
Reads:    pod.spec.volumes; persistentvolume.spec, .metadata.labels, .metadata.annotations
Rejects:  volumes without a handle, with `TranslationError`.
Differs:  only driver, handle and node affinity are translated, which is all that scheduling reads;
          an inline vSphere volume with a storage policy is translated, where upstream crashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from kubesched.api.core import (
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    Volume,
)
from kubesched.api.storage import CSINode
from kubesched.api.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
_ZONE_DELIMITER: Final = "__"
_RESOURCE_GROUP: Final = "kubernetes.io/azure-file-resource-group"
_SECRET_NAME: Final = re.compile(r"azure-storage-account-(.+)-secret")


class TranslationError(Exception):
    """The volume has no CSI counterpart; the text has the reason."""


class CsiVolume(msgspec.Struct, frozen=True):
    """A CSI volume.

    Attributes:
        driver: The CSI driver's name.
        handle: The driver's name for the volume.
        node_affinity: The nodes that can use it; None means all.
    """

    driver: str
    handle: str
    node_affinity: NodeSelector | None = None


class InTreePlugin(msgspec.Struct, frozen=True):
    """An in-tree volume plugin, and the CSI driver that replaces it.

    Attributes:
        name: The name of the plugin and of its provisioner.
        driver: The CSI driver's name.
        field: The plugin's field in a volume source.
        is_migrated: Whether the scheduler treats its volumes as CSI volumes.
        topology_key: The driver's node label for the zone, or "".
    """

    name: str
    driver: str
    field: str
    is_migrated: bool
    topology_key: str = ""


_GCE: Final = InTreePlugin(
    "kubernetes.io/gce-pd",
    "pd.csi.storage.gke.io",
    "gce_persistent_disk",
    is_migrated=True,
    topology_key="topology.gke.io/zone",
)
_AWS: Final = InTreePlugin(
    "kubernetes.io/aws-ebs",
    "ebs.csi.aws.com",
    "aws_elastic_block_store",
    is_migrated=True,
    topology_key="topology.ebs.csi.aws.com/zone",
)
_CINDER: Final = InTreePlugin(
    "kubernetes.io/cinder",
    "cinder.csi.openstack.org",
    "cinder",
    is_migrated=True,
    topology_key="topology.cinder.csi.openstack.org/zone",
)
_AZURE_DISK: Final = InTreePlugin(
    "kubernetes.io/azure-disk", "disk.csi.azure.com", "azure_disk", is_migrated=True
)
_AZURE_FILE: Final = InTreePlugin(
    "kubernetes.io/azure-file", "file.csi.azure.com", "azure_file", is_migrated=False
)
_VSPHERE: Final = InTreePlugin(
    "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "vsphere_volume", is_migrated=False
)
_PORTWORX: Final = InTreePlugin(
    "kubernetes.io/portworx-volume", "pxd.portworx.com", "portworx_volume", is_migrated=True
)
_PLUGINS: Final = (_GCE, _AWS, _CINDER, _AZURE_DISK, _AZURE_FILE, _VSPHERE, _PORTWORX)
_BY_NAME: Final = {plugin.name: plugin for plugin in _PLUGINS}


def plugin_of_inline_volume(volume: Volume) -> InTreePlugin | None:
    """Return the in-tree plugin of a pod's volume, or None."""
    for plugin in _PLUGINS:
        if getattr(volume, plugin.field) is not None:
            return plugin
    return None


def plugin_of_volume(volume: PersistentVolume) -> InTreePlugin | None:
    """Return the in-tree plugin of a persistent volume, or None."""
    for plugin in _PLUGINS:
        if getattr(volume.spec, plugin.field) is not None:
            return plugin
    return None


def plugin_named(provisioner: str) -> InTreePlugin | None:
    """Return the in-tree plugin with this provisioner name, or None."""
    return _BY_NAME.get(provisioner)


def is_migrated_on(plugin: InTreePlugin, csi_node: CSINode | None) -> bool:
    """Whether a node reports that its CSI driver serves the plugin's volumes."""
    if csi_node is None:
        return False
    migrated = csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "")
    return plugin.name in migrated.split(",")


def translate_inline_volume(volume: Volume, namespace: str) -> CsiVolume:
    """Translate an in-tree volume of a pod, whose namespace holds the secrets.

    Raises:
        TranslationError: The volume has no CSI counterpart.
    """
    plugin = plugin_of_inline_volume(volume)
    if plugin is None:
        text = f'could not find in-tree plugin translation logic for "{volume.name}"'
        raise TranslationError(text)
    if plugin is _AZURE_FILE:
        source: AzureFileVolumeSource = getattr(volume, plugin.field)
        handle = _azure_file_handle("", source, volume.name, namespace or "default")
        return CsiVolume(plugin.driver, handle)
    if plugin is _GCE:
        return CsiVolume(plugin.driver, _gce_handle(volume.gce_persistent_disk, "zones"))
    return CsiVolume(plugin.driver, _HANDLES[plugin.field](getattr(volume, plugin.field)))


def translate_volume(volume: PersistentVolume) -> CsiVolume:
    """Translate an in-tree persistent volume.

    Raises:
        TranslationError: The volume has no CSI counterpart.
    """
    plugin = plugin_of_volume(volume)
    if plugin is None:
        text = f'could not find in-tree plugin translation logic for "{volume.metadata.name}"'
        raise TranslationError(text)
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    if plugin.topology_key:
        required = translate_zones(required, volume.metadata.labels, plugin.topology_key)
    elif plugin is _VSPHERE:
        required = translate_vsphere_topology(required, volume.metadata.labels)
    return CsiVolume(plugin.driver, _handle_of_volume(plugin, volume), required)


def _handle_of_volume(plugin: InTreePlugin, volume: PersistentVolume) -> str:
    source = getattr(volume.spec, plugin.field)
    if plugin is _GCE:
        return _gce_volume_handle(volume)
    if plugin is not _AZURE_FILE:
        return _HANDLES[plugin.field](source)
    namespace = source.secret_namespace
    if namespace is None:
        claim = volume.spec.claim_ref
        namespace = claim.namespace if claim is not None else ""
    if not namespace:
        text = "could not find a secret namespace in PersistentVolumeSource or ClaimRef"
        raise TranslationError(text)
    group = volume.metadata.annotations.get(_RESOURCE_GROUP, "")
    return _azure_file_handle(group, source, volume.metadata.name, namespace)


def _gce_volume_handle(volume: PersistentVolume) -> str:
    labels = volume.metadata.labels
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(_ZONE_DELIMITER)
    disk = volume.spec.gce_persistent_disk
    if len(zones) > 1:
        return _gce_handle(disk, "regions", _gce_region(zones))
    return _gce_handle(disk, "zones", zones[0] or "UNSPECIFIED")


def _gce_handle(disk: object, kind: str, place: str = "UNSPECIFIED") -> str:
    name: str = getattr(disk, "pd_name", "")
    return f"projects/UNSPECIFIED/{kind}/{place}/disks/{name}"


def _gce_region(zones: list[str]) -> str:
    regions: dict[str, None] = {}
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, "
                f"expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions["-".join(parts[:2])] = None
    if len(regions) != 1:
        listed = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, "
            f"got: map[{listed}]"
        )
    return next(iter(regions))


def _aws_handle(source: object) -> str:
    """Return the id of `aws://<zone>/<id>`; other texts are returned unchanged."""
    volume_id: str = getattr(source, "volume_id", "")
    if not volume_id.startswith("aws://"):
        return volume_id
    try:
        bare = unquote(urlsplit(volume_id).path).strip("/")
    except ValueError:
        bare = ""
    if not re.fullmatch(r"vol-[^/]*", bare):
        raise TranslationError(
            "failed to translate Kubernetes ID to EBS Volume ID "
            f"Invalid format for AWS volume ({volume_id})"
        )
    return bare


def _azure_disk_handle(source: AzureDiskVolumeSource) -> str:
    if source.kind is not None and source.kind.lower() != "managed":
        raise TranslationError(f"kind({source.kind}) is not supported in csi migration")
    return source.disk_uri


def _azure_file_handle(
    group: str, source: AzureFileVolumeSource, volume_name: str, namespace: str
) -> str:
    found = _SECRET_NAME.search(source.secret_name)
    account = found.group(1) if found else source.secret_name
    return f"{group}#{account}#{source.share_name}#{volume_name}#{namespace}"


_Handle: TypeAlias = Callable[..., str]
_HANDLES: Final[dict[str, _Handle]] = {
    "aws_elastic_block_store": _aws_handle,
    "cinder": lambda source: source.volume_id,
    "azure_disk": _azure_disk_handle,
    "vsphere_volume": lambda source: source.volume_path,
    "portworx_volume": lambda source: source.volume_id,
}


# Topology.

_VSPHERE_ZONE: Final = "topology.csi.vmware.com/zone"
_VSPHERE_REGION: Final = "topology.csi.vmware.com/region"


def translate_zones(
    required: NodeSelector | None, labels: Mapping[str, str], topology_key: str
) -> NodeSelector | None:
    """Replace the zone label by `topology_key`; add the zone if only the volume's labels have it.

    A beta region label in the affinity is replaced by the current one.
    """
    zone, region = _topology_labels(required, labels)
    if _has_values(required, zone):
        required = _replace_key(required, zone, topology_key)
    elif zone in labels:
        required = _add_values(required, topology_key, labels[zone].split(_ZONE_DELIMITER))
    if region == BETA_REGION and _has_values(required, region):
        required = _replace_key(required, region, REGION)
    return required


def translate_vsphere_topology(
    required: NodeSelector | None, labels: Mapping[str, str]
) -> NodeSelector | None:
    """Replace zone and region labels by the driver's keys, each as in `translate_zones`."""
    zone, region = _topology_labels(required, labels)
    for key, driver_key in ((zone, _VSPHERE_ZONE), (region, _VSPHERE_REGION)):
        if _has_values(required, key):
            required = _replace_key(required, key, driver_key)
        elif labels.get(key):
            required = _add_values(required, driver_key, [labels[key]])
    return required


def _topology_labels(required: NodeSelector | None, labels: Mapping[str, str]) -> tuple[str, str]:
    """Return the zone and region keys of the volume, from its affinity or else its labels."""
    keys = [requirement.key for requirement in _requirements(required)]
    for used in (keys, labels):
        if ZONE in used:
            return ZONE, REGION
        if BETA_ZONE in used:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _requirements(required: NodeSelector | None) -> Iterator[NodeSelectorRequirement]:
    if required is not None:
        for term in required.node_selector_terms:
            yield from term.match_expressions


def _has_values(required: NodeSelector | None, key: str) -> bool:
    return any(
        requirement.key == key and requirement.values for requirement in _requirements(required)
    )


def _replace_key(required: NodeSelector | None, old: str, new: str) -> NodeSelector | None:
    if required is None:
        return None
    return NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(
                match_expressions=tuple(
                    NodeSelectorRequirement(key=new, operator=one.operator, values=one.values)
                    if one.key == old
                    else one
                    for one in term.match_expressions
                ),
                match_fields=term.match_fields,
            )
            for term in required.node_selector_terms
        )
    )


def _add_values(required: NodeSelector | None, key: str, values: list[str]) -> NodeSelector | None:
    """Require one of the values in every term; return the selector unchanged if all are empty."""
    kept = tuple(sorted({value.strip() for value in values} - {""}))
    if not kept:
        return required
    demand = NodeSelectorRequirement(key=key, operator="In", values=kept)
    terms = required.node_selector_terms if required is not None else ()
    return NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(
                match_expressions=(*term.match_expressions, demand),
                match_fields=term.match_fields,
            )
            for term in terms or (NodeSelectorTerm(),)
        )
    )
