"""Translates in-tree volumes to the CSI volumes that replace them.

Upstream: staging/src/k8s.io/csi-translation-lib (v1.36)
Reads:    pod.spec.volumes; persistentvolume.spec, .metadata.labels
Rejects:  volumes without a handle, with `TranslationError`.
Differs:  only the handle and node affinity of volumes that count as migrated are translated, which
          is all that scheduling reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec.structs import replace

from kubesched.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.storage import CSINode
from kubesched.api.volume import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    GCEPersistentDiskVolumeSource,
    PersistentVolume,
    PersistentVolumeSpec,
    Volume,
)
from kubesched.api.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
_ZONE_DELIMITER: Final = "__"


class TranslationError(Exception):
    """The volume has no CSI counterpart; the text has the reason."""


class InTreePlugin(msgspec.Struct, frozen=True):
    """An in-tree volume plugin, and the CSI driver that replaces it.

    Attributes:
        name: The name of the plugin and of its provisioner.
        driver: The CSI driver's name.
        field: The plugin's field in a volume source.
        handle: Returns the driver's name for a volume, given the field and the labels of the
            persistent volume; None if the scheduler does not treat the plugin's volumes as CSI
            volumes.
        topology_key: The driver's node label for the zone, or "".
    """

    name: str
    driver: str
    field: str
    handle: Callable[..., str] | None = None
    topology_key: str = ""

    @property
    def is_migrated(self) -> bool:
        """Whether the scheduler treats its volumes as CSI volumes."""
        return self.handle is not None


def _gce_handle(disk: GCEPersistentDiskVolumeSource, labels: Mapping[str, str]) -> str:
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(_ZONE_DELIMITER)
    if len(zones) > 1:
        place = f"regions/{_gce_region(zones)}"
    else:
        place = f"zones/{zones[0] or 'UNSPECIFIED'}"
    return f"projects/UNSPECIFIED/{place}/disks/{disk.pd_name}"


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


def _aws_handle(disk: AWSElasticBlockStoreVolumeSource, _labels: Mapping[str, str]) -> str:
    """Return the id of `aws://<zone>/<id>`; other texts are returned unchanged."""
    if not disk.volume_id.startswith("aws://"):
        return disk.volume_id
    try:
        bare = unquote(urlsplit(disk.volume_id).path).strip("/")
    except ValueError:
        bare = ""
    if not re.fullmatch(r"vol-[^/]*", bare):
        raise TranslationError(
            "failed to translate Kubernetes ID to EBS Volume ID "
            f"Invalid format for AWS volume ({disk.volume_id})"
        )
    return bare


def _azure_disk_handle(disk: AzureDiskVolumeSource, _labels: Mapping[str, str]) -> str:
    if disk.kind is not None and disk.kind.lower() != "managed":
        raise TranslationError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


_PLUGINS: Final = (
    InTreePlugin(
        "kubernetes.io/gce-pd",
        "pd.csi.storage.gke.io",
        "gce_persistent_disk",
        _gce_handle,
        "topology.gke.io/zone",
    ),
    InTreePlugin(
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        "aws_elastic_block_store",
        _aws_handle,
        "topology.ebs.csi.aws.com/zone",
    ),
    InTreePlugin(
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        "cinder",
        lambda source, _labels: source.volume_id,
        "topology.cinder.csi.openstack.org/zone",
    ),
    InTreePlugin(
        "kubernetes.io/azure-disk", "disk.csi.azure.com", "azure_disk", _azure_disk_handle
    ),
    InTreePlugin("kubernetes.io/azure-file", "file.csi.azure.com", "azure_file"),
    InTreePlugin("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "vsphere_volume"),
    InTreePlugin(
        "kubernetes.io/portworx-volume",
        "pxd.portworx.com",
        "portworx_volume",
        lambda source, _labels: source.volume_id,
    ),
)
_BY_NAME: Final = {plugin.name: plugin for plugin in _PLUGINS}


def plugin_of(source: Volume | PersistentVolumeSpec) -> InTreePlugin | None:
    """Return the in-tree plugin of a volume, or None."""
    for plugin in _PLUGINS:
        if getattr(source, plugin.field) is not None:
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


def csi_identity(
    source: Volume | PersistentVolumeSpec, labels: Mapping[str, str] = {}
) -> tuple[str, str] | None:
    """Return the driver and handle of an in-tree volume; None if it is not a CSI volume.

    `labels` are those of the persistent volume. Raises TranslationError if the volume has no CSI
    counterpart.
    """
    plugin = plugin_of(source)
    if plugin is None or plugin.handle is None:
        return None
    return plugin.driver, plugin.handle(getattr(source, plugin.field), labels)


def csi_node_affinity(volume: PersistentVolume) -> NodeSelector | None:
    """Return the nodes that can use an in-tree volume through its CSI driver; None means all.

    Raises TranslationError if the volume has no CSI counterpart.
    """
    labels = volume.metadata.labels
    # Upstream translates the volume as a whole, and fails without a handle.
    csi_identity(volume.spec, labels)
    plugin, affinity = plugin_of(volume.spec), volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    if plugin is None or not plugin.topology_key:
        return required
    return _translate_zones(required, labels, plugin.topology_key)


def _translate_zones(
    required: NodeSelector | None, labels: Mapping[str, str], topology_key: str
) -> NodeSelector | None:
    """Replace the zone label by `topology_key`; add the zone if only the volume's labels have it.

    A beta region label in the affinity is replaced by the current one.
    """
    zone, region = _topology_labels(required, labels)
    replaced = _replace_key(required, zone, topology_key)
    if replaced is not None:
        required = replaced
    elif zone in labels:
        required = _add_values(required, topology_key, labels[zone].split(_ZONE_DELIMITER))
    if region == BETA_REGION:
        required = _replace_key(required, region, REGION) or required
    return required


def _topology_labels(required: NodeSelector | None, labels: Mapping[str, str]) -> tuple[str, str]:
    """Return the zone and region keys of the volume, from its affinity or else its labels."""
    terms = () if required is None else required.node_selector_terms
    keys = {requirement.key for term in terms for requirement in term.match_expressions}
    for used in (keys, labels):
        if ZONE in used:
            return ZONE, REGION
        if BETA_ZONE in used:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _replace_key(required: NodeSelector | None, old: str, new: str) -> NodeSelector | None:
    """Return the selector with another key; None if no requirement has the key and values."""
    terms: list[NodeSelectorTerm] = []
    has_values = False
    for term in () if required is None else required.node_selector_terms:
        renamed = [replace(r, key=new) if r.key == old else r for r in term.match_expressions]
        has_values |= any(r.key == old and r.values for r in term.match_expressions)
        terms.append(replace(term, match_expressions=tuple(renamed)))
    return NodeSelector(node_selector_terms=tuple(terms)) if has_values else None


def _add_values(required: NodeSelector | None, key: str, values: list[str]) -> NodeSelector | None:
    """Require one of the values in every term; return the selector unchanged if all are empty."""
    kept = tuple(sorted({value.strip() for value in values} - {""}))
    if not kept:
        return required
    demand = NodeSelectorRequirement(key=key, operator="In", values=kept)
    terms = (required and required.node_selector_terms) or (NodeSelectorTerm(),)
    return NodeSelector(
        node_selector_terms=tuple(
            replace(term, match_expressions=(*term.match_expressions, demand)) for term in terms
        )
    )
